"""Keys of few values: groups that are found by number are those that the oracle finds, whatever numbers are made of."""

import datetime
import random

import pyarrow as pa
import pytest

from engine.accumulators.aggregate_functions import argument_column, result_schema
from engine.accumulators.aggregate_layout import aggregate_layout
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.hash_aggregate import HashAggregate
from engine.aggregate.table_insert import table_of as group_table_of
from tests.aggregate.group_oracle import MEMORIES, input_table, make_calls, oracle, rows_of, single, two_phases

CALLS = make_calls(("count_all", "sum", "first", "max"))
INT64 = (-(2**63), 2**63 - 1)


def table_of(key_types, choices, rows=4000, null_share=0.0, seed=7):
    """Rows of keys, each drawn from its choices."""
    rng = random.Random(seed)
    names = tuple(f"k{index}" for index in range(len(choices)))
    keys = [[None if rng.random() < null_share else rng.choice(list(some)) for _ in range(rows)] for some in choices]
    columns = [*keys, *([n % 89 for n in range(rows)] for _ in range(3))]
    return input_table(names, key_types, CALLS, [None, *[pa.int64()] * 3], columns), names


def coded(table, names, rows, seed=3, index_type=None):
    """The same rows as codes of dictionaries, another one each so many rows: shuffled, with texts that no row has.

    Texts lie there twice, and null does too, to which some null rows refer, as others have none.
    """
    rng = random.Random(seed)
    pieces = []
    for start in range(0, table.num_rows, rows):
        piece = table.slice(start, rows)
        for name in names:
            values = piece[name].to_pylist()
            texts = [*set(values), *set(values), None, *(f"unused {n}" for n in range(rng.randrange(5)))]
            if pa.types.is_binary(piece[name].type):
                texts = [text.encode() if isinstance(text, str) else text for text in texts]
            rng.shuffle(texts)
            places = {}
            for place, text in enumerate(texts):
                places.setdefault(text, []).append(place)
            codes = [None if text is None and rng.random() < 0.5 else rng.choice(places[text]) for text in values]
            dictionary = pa.array(texts, piece[name].type)
            array = pa.DictionaryArray.from_arrays(pa.array(codes, index_type or pa.int32()), dictionary)
            index = piece.schema.names.index(name)
            piece = piece.set_column(index, name, pa.chunked_array([array]))
        pieces.append(piece)
    return pa.concat_tables(pieces)


def check(workshop, table, names, plain=None, pages=600, batch_rows=700, **options):
    wanted = oracle(plain or table, names, CALLS)
    result, operator = single(workshop, pages, table, names, CALLS, batch_rows, **options)
    assert rows_of(result) == wanted
    merged, _, _ = two_phases(workshop, pages, table, names, CALLS, batch_rows, **options)
    assert rows_of(merged) == wanted
    return operator


TEXTS = {
    "one": ["a"],
    "few": ["yes", "no", "", "a text that is longer than sixteen bytes"],
    "hundreds": [f"id{number:03}" for number in range(300)],
    "thousands": [f"{number} of many" for number in range(3000)],
}


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("null_share", [0.0, 0.2])
@pytest.mark.parametrize("texts", TEXTS)
def test_codes_group_like_their_texts(workshop, texts, null_share, memory):
    plain, names = table_of([pa.string()], [TEXTS[texts]], null_share=null_share)
    check(workshop, coded(plain, names, 900), names, plain, MEMORIES[memory])


@pytest.mark.parametrize("key_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_texts_of_any_type(workshop, key_type):
    texts = ["a", "", "\0", "bc"] if "string" in str(key_type) else [b"a", b"", b"\xff", b"bc"]
    plain, names = table_of([key_type], [texts], 1500, 0.1)
    check(workshop, coded(plain, names, 400), names, plain)


def test_codes_of_another_width_are_decoded(workshop):
    plain, names = table_of([pa.string()], [TEXTS["few"]], 1500, 0.1)
    check(workshop, coded(plain, names, 400, index_type=pa.int8()), names, plain)


@pytest.mark.parametrize("memory", MEMORIES)
def test_keys_of_several_columns(workshop, memory):
    types = [pa.string(), pa.bool_(), pa.date32(), pa.string(), pa.uint8()]
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(day) for day in (-3, 0, 8)]
    plain, names = table_of(types, [TEXTS["few"], [True, False], days, ["x", "y"], [0, 255]], 3000, 0.1)
    check(workshop, coded(plain, ("k0", "k3"), 1000), names, plain, MEMORIES[memory])


def test_codes_beside_a_text_that_is_none(workshop):
    plain, names = table_of([pa.string(), pa.string()], [TEXTS["few"], TEXTS["hundreds"]], 2000, 0.1)
    check(workshop, coded(plain, ("k0",), 500), names, plain)


def test_codes_and_plain_texts_in_turns(workshop):
    plain, names = table_of([pa.string()], [TEXTS["hundreds"]], 3000, 0.1)
    codes = coded(plain, names, 500)
    wanted = oracle(plain, names, CALLS)

    output = result_schema([plain.schema.field("k0")], CALLS, [None, *[pa.int64()] * 3])
    with workshop.operator(600) as (pool, space):
        aggregate = HashAggregate(AggregateSpec("single", plain.schema, names, CALLS, output), pool, space)
        try:
            assert aggregate.compact_columns == {"k0"}
            for start in range(0, 3000, 250):
                table = plain if start % 500 else codes
                for batch in table.slice(start, 250).combine_chunks().to_batches():
                    assert not list(aggregate.add_batch(batch))
            assert rows_of(pa.Table.from_batches(aggregate.finish(), output)) == wanted
        finally:
            aggregate.close()


INTEGERS = {
    "few": (pa.int32(), range(100)),
    "around zero": (pa.int64(), range(-50, 50)),
    "lowest": (pa.int64(), range(INT64[0], INT64[0] + 40)),
    "highest": (pa.int64(), range(INT64[1] - 40, INT64[1] + 1)),
    "both ends": (pa.int64(), [*INT64, *range(-3, 4)]),
    "unsigned": (pa.uint64(), range(2**64 - 40, 2**64)),
    "unsigned, both ends": (pa.uint64(), [0, 2**64 - 1, 2**63, 2**63 - 1]),
    "bytes": (pa.int8(), range(-128, 128)),
    "shorts, both ends": (pa.int16(), [-(2**15), 2**15 - 1, 0]),
    "words, both ends": (pa.int32(), [-(2**31), 2**31 - 1, 0]),
    "unsigned words": (pa.uint32(), [0, 2**32 - 1, 2**31, 5]),
    "many": (pa.int32(), range(9000)),
    "sparse": (pa.int64(), range(0, 10**12, 10**9)),
    "times": (pa.timestamp("us"), [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=n) for n in range(99)]),
    "bools": (pa.bool_(), [True, False]),
}


@pytest.mark.parametrize("null_share", [0.0, 0.2])
@pytest.mark.parametrize("integers", INTEGERS)
def test_integers_wherever_they_lie(workshop, integers, null_share):
    key_type, choices = INTEGERS[integers]
    table, names = table_of([key_type], [choices], 3000, null_share)
    check(workshop, table.slice(3), names)


@pytest.mark.parametrize("memory", MEMORIES)
def test_ranges_that_grow_leap_and_come_back(workshop, memory):
    """Dense at first, then wider on both sides, somewhere else, too wide, and where it began."""
    ranges = [range(10), range(-300, 300), range(10**9, 10**9 + 50), range(0, 10**15, 10**11), range(10)]
    tables = [table_of([pa.int64()], [some], 2500, 0.01, seed=seed)[0] for seed, some in enumerate(ranges)]
    check(workshop, pa.concat_tables(tables), ("k0",), pages=MEMORIES[memory])


@pytest.mark.parametrize("memory", MEMORIES)
def test_one_that_lies_far_away(workshop, memory):
    near, _ = table_of([pa.int64()], [range(50)], 5000)
    far, _ = table_of([pa.int64()], [[-(10**18)]], 1)
    check(workshop, pa.concat_tables([near, far, near]), ("k0",), pages=MEMORIES[memory])


def layouts_of(workshop, keys, block_rows):
    """How often groups were laid out for keys that come in blocks of so many rows."""
    calls = make_calls(("count_all",))
    batches = pa.table({"k0": pa.array(keys, pa.int64())}).to_batches(block_rows)
    layout = aggregate_layout(batches[0].schema, ("k0",), calls, merging=False)
    with workshop.operator(600) as (pool, _):
        table = group_table_of(layout, pool, 1, False, False)
        binding = table.bind(layout.operations, layout.columns)
        for batch in batches:
            assert table.add(table.open(list(range(batch.num_columns)), batch, binding), 0, False) == batch.num_rows
        assert table.group_count == len(set(keys))
        layouts = table.dense_layouts
        table.close()
    return layouts


def test_values_that_move_on_are_looked_at_less_and_less(workshop):
    sorted_keys = range(0, 4 * 16_000, 4)
    short, long = (layouts_of(workshop, sorted_keys[:rows], 8) for rows in (4000, 16_000))
    assert 0 < short < 16
    assert long - short <= 6  # of four times as many blocks
    rng = random.Random(5)
    assert layouts_of(workshop, [rng.randrange(100) for _ in range(4000)], 200) <= 2


def test_values_that_move_on_and_come_back(workshop):
    sorted_keys, few = list(range(0, 12_000, 4)), [*range(10)] * 50
    keys = [*sorted_keys, *few, *reversed(sorted_keys), *few, *sorted_keys]
    columns = [keys, *([n % 89 for n in range(len(keys))] for _ in range(3))]
    table = input_table(("k0",), [pa.int64()], CALLS, [None, *[pa.int64()] * 3], columns)
    check(workshop, table, ("k0",), batch_rows=20)


@pytest.mark.parametrize("texts", ["few", "hundreds"])
def test_groups_that_went_are_not_found_again(workshop, texts):
    plain, names = table_of([pa.string(), pa.int8()], [TEXTS[texts], range(5)])
    operator = check(workshop, coded(plain, names[:1], 900), names, plain, force_spill=True)
    assert operator.spilled_bytes > 0


@pytest.mark.parametrize("pages", [6, 9, 200])
def test_memory_ends_while_groups_are_known_by_number(workshop, pages):
    table, names = table_of([pa.int32(), pa.int32()], [range(60), range(60)], 6000)
    operator = check(workshop, table, names, pages=pages, batch_rows=3000)
    assert (operator.spilled_bytes > 0) == (pages < 200)


def test_dictionaries_of_other_texts_one_after_the_other(workshop):
    """More texts than get numbers in all, a few in each dictionary, as in a sorted file; one is too large by itself."""
    texts = [f"{number:06}" for number in range(7000)]
    columns = [texts, *([1] * len(texts) for _ in range(3))]
    plain = input_table(("k0",), [pa.string()], CALLS, [None, *[pa.int64()] * 3], columns)
    for rows in (1000, 7000):
        check(workshop, coded(plain, ("k0",), rows), ("k0",), plain, pages=12)


def test_a_key_that_is_an_argument_is_decoded(workshop):
    texts = ["b", None, "a", "b"] * 50
    calls = make_calls(("count", "max"))
    table = pa.table({"a0": pa.array(texts).dictionary_encode(), "a1": texts})
    table = table.rename_columns([argument_column(0), argument_column(1)])
    result, _ = single(workshop, 600, table, (argument_column(0),), calls)
    found = sorted(result.to_pydict()["count_0"])
    assert found == [0, 50, 100]
