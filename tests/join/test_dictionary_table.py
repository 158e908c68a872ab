"""Build rows that differ in their key alone: the same join as with all of them, also where one row breaks it."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.graph.said_operators import JoinType
from engine.join.borrowed_build import borrow_build, can_be_borrowed
from engine.records.row_codec import RowCodec
from tests.join.join_oracle import hash_join, join_memory, pair_condition

ROWS = 70_000
TEXTS = ["1-URGENT", None, "", "5-LOW", "ä" * 40]
ORACLE = {
    JoinType.INNER: "inner",
    JoinType.LEFT: "left outer",
    JoinType.SEMI: "left semi",
    JoinType.ANTI: "left anti",
}
KEY_TYPES = [pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.date32(), pa.timestamp("us")]
CHOSEN = np.random.default_rng(3)
ORDERS = {
    "ascending": np.arange(ROWS),
    "descending": np.arange(ROWS)[::-1],
    "in no order": CHOSEN.permutation(ROWS),
    "two runs": np.concatenate([np.arange(0, ROWS, 2), np.arange(1, ROWS, 2)]),
}


def keys_of(numbers, key_type=None):
    key_type = key_type or pa.int64()
    word = pa.int32() if key_type == pa.date32() else pa.int64()
    return pa.array(numbers.astype(np.int32 if word == pa.int32() else np.int64), word).cast(key_type)


def build_of(numbers, key_type=None, combinations=20):
    kinds = numbers % combinations
    texts = pa.array([TEXTS[kind % len(TEXTS)] for kind in kinds])
    return pa.table({"k": keys_of(numbers, key_type), "text": texts, "kind": pa.array(kinds, pa.int16())})


def probe_of(low, high, key_type=None, rows=30_000):
    numbers = np.sort(CHOSEN.integers(low, high, rows))
    return pa.table({"k": keys_of(numbers, key_type), "n": range(rows)})


def arguments_of(how, build, probe, *, with_key=False):
    output = [(0, 0), (0, 1)]
    if how in (JoinType.INNER, JoinType.LEFT):
        output += [(1, 1), (1, 2)] + ([(1, 0)] if with_key else [])
    fields = [(probe if side == 0 else build).schema.field(column) for side, column in output]
    schema = pa.schema([field.with_name(f"c{n}") for n, field in enumerate(fields)])
    return how, build.schema, probe.schema, [0], [0], False, output, schema


def pages_of(table, page_size):
    """Yield the table as binary rows, page by page."""
    codec = RowCodec(table.schema)
    for batch in table.to_batches(max_chunksize=page_size // 100):
        yield codec.to_rows(batch)


def run(folder, how, build, probe, *, pages=2000, batch_rows=9000, as_rows=False, with_key=False, condition=None):
    """Return (output, rows kept for all, rows of partitions that were spilled) of a join."""
    with join_memory(folder, pages, 4096) as (pool, space):
        join = hash_join(*arguments_of(how, build, probe, with_key=with_key), pool, space, condition=condition)
        if as_rows:
            for page in pages_of(build, 4096):
                join.add_build_rows(page)
        else:
            for batch in build.to_batches(max_chunksize=batch_rows):
                join.add_build_batch(batch)
        join.finish_build()
        distinct, found = join.distinct_rows, []
        for batch in probe.to_batches(max_chunksize=7000):
            found += join.probe(batch)
        found += join.finish_probe()
        schema = arguments_of(how, build, probe, with_key=with_key)[-1]
        spilled = join.partitions_spilled
        assert join.build_rows == build.num_rows
        join.close()
    return pa.Table.from_batches(found, schema), distinct, spilled


def assert_like_oracle(found, how, build, probe, with_key=False):
    build = build.append_column("again", build["k"]) if with_key else build
    expected = probe.join(build, "k", join_type=ORACLE[how])
    expected = expected.rename_columns([f"c{n}" for n in range(expected.num_columns)])
    order = [(name, "ascending") for name in expected.column_names]
    assert found.num_rows > 0
    assert found.sort_by(order).equals(expected.sort_by(order))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", ORACLE)
def test_rows_that_differ_in_their_key_alone_are_kept_once(tmp_path, how, order):
    build, probe = build_of(ORDERS[order]), probe_of(-500, ROWS + 500)
    found, distinct, spilled = run(tmp_path, how, build, probe)
    assert (distinct, spilled) == (20, 0)
    assert_like_oracle(found, how, build, probe)


@pytest.mark.parametrize("key_type", KEY_TYPES)
@pytest.mark.parametrize("as_rows", [False, True])
def test_every_kind_of_number_is_a_key(tmp_path, key_type, as_rows):
    low = 0 if pa.types.is_unsigned_integer(key_type) else -30_000
    build, probe = build_of(ORDERS["two runs"] + low, key_type), probe_of(low + 9, low + ROWS + 500, key_type)
    found, distinct, _ = run(tmp_path, JoinType.INNER, build, probe, as_rows=as_rows)
    assert distinct == 20
    assert_like_oracle(found, JoinType.INNER, build, probe)


def test_the_key_of_a_pair_comes_from_the_probe_row(tmp_path):
    build, probe = build_of(ORDERS["ascending"]), probe_of(-500, ROWS)
    found, distinct, _ = run(tmp_path, JoinType.INNER, build, probe, with_key=True)
    assert distinct == 20
    assert_like_oracle(found, JoinType.INNER, build, probe, with_key=True)


def test_an_outer_join_that_returns_the_build_key_keeps_all_rows(tmp_path):
    build, probe = build_of(ORDERS["ascending"]), probe_of(-500, ROWS)
    found, distinct, _ = run(tmp_path, JoinType.LEFT, build, probe, with_key=True)
    assert distinct == 0
    assert_like_oracle(found, JoinType.LEFT, build, probe, with_key=True)


def test_a_condition_sees_the_columns_of_distinct_rows(tmp_path):
    build, probe = build_of(ORDERS["ascending"]), probe_of(0, ROWS)
    condition = pair_condition(probe, build, [(0, 1), (1, 2)], lambda pairs: pc.less(pairs["b"], 7))
    found, distinct, _ = run(tmp_path, JoinType.INNER, build, probe, condition=condition)
    assert distinct == 20
    assert_like_oracle(found, JoinType.INNER, build.filter(pc.less(build["kind"], 7)), probe)


def test_rows_without_key_stay_outside(tmp_path):
    build, probe = build_of(ORDERS["ascending"]), probe_of(0, ROWS)
    nulls = pa.array(ORDERS["ascending"] % 11 == 0)
    build = build.set_column(0, "k", pc.if_else(nulls, None, build["k"]))
    found, distinct, _ = run(
        tmp_path, JoinType.INNER, pa.concat_tables([build, build_of(np.arange(ROWS, 80_000))]), probe
    )
    assert distinct == 20
    assert_like_oracle(found, JoinType.INNER, build, probe)


def broken(numbers, what):
    """Return build rows of which a late one is not like the others."""
    build = build_of(numbers)
    last = build.slice(ROWS - 1)
    if what == "a key twice":
        last = build.slice(5, 1)
    elif what == "too many combinations":
        last = build_of(np.arange(ROWS, ROWS + 400), combinations=300)
    elif what == "a row that is long":
        last = last.set_column(1, "text", pa.array(["x" * 300]))
    elif what == "keys far apart":
        last = build_of(np.arange(400) * 10**12 + 10**9)
    return pa.concat_tables([build.slice(0, ROWS - 1), last])


@pytest.mark.parametrize("what", ["a key twice", "too many combinations", "a row that is long", "keys far apart"])
@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT])
@pytest.mark.parametrize(("as_rows", "pages"), [(False, 4000), (True, 4000), (False, 60), (True, 60)])
def test_one_row_of_another_kind_makes_rows_of_all_again(tmp_path, what, how, as_rows, pages):
    build, probe = broken(ORDERS["two runs"], what), probe_of(-500, ROWS + 500)
    found, distinct, spilled = run(tmp_path, how, build, probe, pages=pages, as_rows=as_rows)
    assert distinct == 0
    assert (spilled > 0) == (pages == 60)
    assert_like_oracle(found, how, build, probe)


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("as_rows", [False, True])
@pytest.mark.parametrize("combinations", [1, 20, 300])
def test_where_presence_is_enough_keys_may_come_again(tmp_path, how, as_rows, combinations):
    build, probe = build_of(np.concatenate([ORDERS["in no order"]] * 3), combinations=combinations), probe_of(0, 10**5)
    build = pa.concat_tables([build, build_of(np.full(20_000, 7), combinations=combinations)])
    found, distinct, spilled = run(tmp_path, how, build, probe, as_rows=as_rows, pages=60)
    assert distinct == (combinations if combinations < 300 else 0)
    assert (spilled > 0) == (combinations == 300), "60 pages are enough for a byte of each number, not for the rows"
    assert_like_oracle(found, how, build, probe)


@pytest.mark.parametrize("pages", [6, 7, 10, 24, 60])
def test_where_pages_are_few_they_are_left_to_partitions(tmp_path, pages):
    build, probe = build_of(ORDERS["ascending"]), probe_of(0, ROWS, rows=3000)
    found, distinct, spilled = run(tmp_path, JoinType.INNER, build, probe, pages=pages)
    assert (distinct == 0) == (spilled > 0) == (pages < 40)
    assert_like_oracle(found, JoinType.INNER, build, probe)


def test_a_small_build_side_goes_its_own_way(tmp_path):
    build, probe = build_of(np.arange(60_000)), probe_of(0, ROWS)
    found, distinct, _ = run(tmp_path, JoinType.INNER, build, probe)
    assert distinct == 0
    assert_like_oracle(found, JoinType.INNER, build, probe)


def test_a_dictionary_table_is_borrowed(tmp_path):
    build, probe = build_of(ORDERS["ascending"]), probe_of(-500, ROWS)
    arguments = arguments_of(JoinType.INNER, build, probe)
    with join_memory(tmp_path, 2000, 4096) as (pool, space):
        owner, borrower = hash_join(*arguments, pool, space), hash_join(*arguments, pool, space)
        owner.add_build_batch(build.combine_chunks().to_batches()[0])
        owner.finish_build()
        assert can_be_borrowed(owner)
        borrow_build(borrower, owner)
        assert borrower.distinct_rows == 20
        found = [*borrower.probe(probe.to_batches()[0]), *borrower.finish_probe()]
        borrower.close()
        owner.close()
    assert_like_oracle(pa.Table.from_batches(found), JoinType.INNER, build, probe)


def test_what_is_closed_before_its_end_gives_its_pages_back(tmp_path):
    build, probe = build_of(ORDERS["ascending"]), probe_of(0, 10)
    with join_memory(tmp_path, 2000, 4096) as (pool, space):
        join = hash_join(*arguments_of(JoinType.INNER, build, probe), pool, space)
        join.add_build_batch(build.combine_chunks().to_batches()[0])
        assert 0 < pool.pages_used < 30
        join.close()


SHORT = ["1-URGENT", "2-HIGH", "", "abc", "four", "4-NOT SPECIFIED", "sixteen bytes ..", "x"]
ONE_TEXT = {
    "short": SHORT,
    "some of them null": [*SHORT, None],
    "some longer": [*SHORT, "more than sixteen bytes"],
    "many": [f"text {number}" for number in range(250)],
}


def join_of_texts(folder, how, keys, texts, probe, *, key_column, probe_rows=7000):
    """Return (output, rows kept for all, expected output) of a join whose build side is a key and a text."""
    columns = [("k", pa.array(keys, pa.int64())), ("text", pa.array(texts, pa.string()))]
    build = pa.table(dict(columns if key_column == 0 else columns[::-1]))
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", pa.string())])
    output = [(0, 0), (0, 1), (1, 1 - key_column)]
    with join_memory(folder, 4000, 4096) as (pool, space):
        join = hash_join(how, build.schema, probe.schema, [key_column], [0], False, output, schema, pool, space)
        for batch in build.to_batches(max_chunksize=9000):
            join.add_build_batch(batch)
        join.finish_build()
        distinct = join.distinct_rows
        found = [*join.probe(probe.slice(0, 1).to_batches()[0])]
        for batch in probe.slice(1).to_batches(max_chunksize=probe_rows):
            found += join.probe(batch)
        found += join.finish_probe()
        join.close()
    expected = probe.join(build, "k", join_type=ORACLE[how]).rename_columns(["c0", "c1", "c2"])
    return pa.Table.from_batches(found, schema), distinct, expected


def assert_same(found, expected):
    order = [(name, "ascending") for name in expected.column_names]
    assert found.num_rows > 0
    assert found.sort_by(order).equals(expected.sort_by(order))
    found.validate(full=True)


@pytest.mark.parametrize("name", ONE_TEXT)
@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT])
@pytest.mark.parametrize("key_column", [0, 1])
@pytest.mark.parametrize("finds_all", [False, True])
def test_rows_of_a_key_and_a_text_are_known_by_the_text(tmp_path, name, how, key_column, finds_all):
    texts = [ONE_TEXT[name][number % len(ONE_TEXT[name])] for number in ORDERS["two runs"]]
    probe = probe_of(0, ROWS) if finds_all else probe_of(-200, ROWS + 200)
    # larger than what is looked up at one time, of which all rows find one or do not
    joined = join_of_texts(tmp_path, how, ORDERS["two runs"], texts, probe, key_column=key_column, probe_rows=40_000)
    found, distinct, expected = joined
    assert distinct == len(ONE_TEXT[name])
    assert_same(found, expected)


@pytest.mark.parametrize("what", ["a key twice", "a null key in the probe side", "a long text", "keys far apart"])
def test_texts_are_rows_again_where_one_is_of_another_kind(tmp_path, what):
    keys, texts = [int(key) for key in ORDERS["descending"]], [SHORT[key % 8] for key in ORDERS["descending"]]
    probe = probe_of(0, ROWS)
    if what == "a null key in the probe side":
        probe = probe.set_column(0, "k", pc.if_else(pc.equal(probe["k"], 77), None, probe["k"]))
    else:
        keys += {"a key twice": [5], "a long text": [ROWS], "keys far apart": [10**12 * n for n in range(1, 400)]}[what]
        texts += ["x" * 300 if what == "a long text" else "abc"] * (len(keys) - len(texts))
    found, distinct, expected = join_of_texts(tmp_path, JoinType.INNER, keys, texts, probe, key_column=0)
    assert distinct == (8 if what == "a null key in the probe side" else 0)
    assert_same(found, expected)


def test_a_batch_of_rows_that_all_find_one_comes_out_whole(tmp_path):
    texts = [SHORT[key % 8] for key in range(ROWS)]
    probe = probe_of(0, ROWS, rows=30_001)
    found, distinct, expected = join_of_texts(
        tmp_path, JoinType.INNER, range(ROWS), texts, probe, key_column=0, probe_rows=30_000
    )
    assert distinct == 8
    assert found.column(0).num_chunks == 2
    assert_same(found, expected)


def test_the_fewest_rows_for_which_a_dictionary_is_made_come_out_right(tmp_path):
    build, probe = build_of(np.arange(1 << 16)), probe_of(0, 1 << 16)
    found, distinct, _ = run(tmp_path, JoinType.INNER, build, probe)
    assert distinct == 20
    assert_like_oracle(found, JoinType.INNER, build, probe)
