"""HashJoin against the oracle: types, nulls, duplicates, skew, batch sizes, memory, build side, spilling by force."""

import datetime
import decimal
import random
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import CorruptBlockError, MemoryBudgetError, SchemaError
from engine.graph.said_operators import JoinType
from engine.records.row_codec import RowCodec
from tests.join.join_oracle import (
    ALL_TYPES,
    LEFT_ONLY,
    assert_joins_like_oracle,
    hash_join,
    join_memory,
    rows_of,
    run_join,
    table_rows,
)

TYPES = ALL_TYPES
KEYED = [how for how in ALL_TYPES if how is not JoinType.CROSS]


def draw(seed, rows, domain, null_share=0.1, heavy=0.0, tag="l"):
    """A table with an int64 key; ``heavy`` is the share of rows with the key 0."""
    chance = random.Random(seed)
    keys = [
        None if chance.random() < null_share else 0 if chance.random() < heavy else chance.randrange(domain)
        for _ in range(rows)
    ]
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "number": pa.array(range(rows), pa.int32()),
            "text": [None if index % 7 == 3 else tag * (index % 5) + str(index) for index in range(rows)],
        }
    )


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("batch_rows", [1, 7, 49, 8192])
@pytest.mark.parametrize("force_spill", [False, True])
def test_fifty_rows_join_like_the_oracle(tmp_path, how, build_is_left, batch_rows, force_spill):
    left, right = draw(1, 50, 20), draw(2, 45, 20, tag="r")
    run = assert_joins_like_oracle(
        tmp_path,
        how,
        left,
        right,
        [0],
        [0],
        build_is_left=build_is_left,
        batch_rows=batch_rows,
        force_spill=force_spill,
    )
    assert (run.counters["partitions_spilled"] > 0) == force_spill


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [512, 24, 6], ids=["fits", "half", "six pages"])
@pytest.mark.parametrize("skew", ["none", "build", "probe"])
def test_memory_and_skew_do_not_change_the_result(tmp_path, how, build_is_left, pages, skew):
    heavy = {"none": (0.0, 0.0), "build": (0.99, 0.0), "probe": (0.0, 0.99)}[skew]
    build = draw(3, 3000, 900, heavy=heavy[0])
    probe = draw(4, 2000, 900, heavy=heavy[1])
    left, right = (build, probe) if build_is_left else (probe, build)
    run = assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages)
    # Of a heavy key that is asked for its presence alone one row is kept, where there are pages for cells by number.
    one_is_enough = skew == "build" and how in LEFT_ONLY and not build_is_left
    assert (run.counters["partitions_spilled"] > 0) == (pages < (24 if one_is_enough else 512))
    assert run.pages_peak <= pages


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [512, 6])
def test_one_key_heavy_on_both_sides_gives_every_pair(tmp_path, how, build_is_left, pages):
    left, right = draw(5, 220, 60, heavy=0.99), draw(6, 240, 60, heavy=0.99, tag="r")
    run = assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages, batch_rows=49
    )
    if how not in LEFT_ONLY:
        assert max(batch.num_rows for batch in run.batches) > 1000


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("key_type", [pa.int64(), pa.string()])
@pytest.mark.parametrize("run_rows", [1, 3, 1500])
def test_rows_of_a_run_find_what_its_first_row_finds(tmp_path, how, key_type, run_rows):
    # runs with and without a match, and of nulls, over the ends of lookup blocks; each third key is missing
    keys = [None if number % 7 == 5 else number for number in range(6000 // run_rows) for _ in range(run_rows)]
    left = pa.table({"k": pa.array(keys, pa.int64()).cast(key_type), "number": pa.array(range(len(keys)))})
    found = [number for number in range(6000 // run_rows) if number % 3] * 2
    right = pa.table({"k": pa.array(found, pa.int64()).cast(key_type), "other": pa.array(range(len(found)))})
    assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=False, batch_rows=8192)


KEYS = {
    "bool": (pa.bool_(), [True, False, None]),
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "uint64": (pa.uint64(), [2**64 - 1, 0, 5, None]),
    "float64": (pa.float64(), [0.0, -0.0, float("nan"), -float("nan"), 1.5, None]),
    "decimal": (pa.decimal128(20, 2), [decimal.Decimal("1.10"), decimal.Decimal("-1.10"), None]),
    "date": (pa.date32(), [datetime.date(2020, 1, 1), datetime.date(1960, 1, 1), None]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2020, 1, 1, 3), datetime.datetime(1960, 1, 1), None]),
    "string": (pa.string(), ["", "a", "ab", "a longer key than eight bytes", "ä", None]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", None]),
    "fixed": (pa.binary(3), [b"abc", b"abd", None]),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("force_spill", [False, True])
def test_every_key_type_joins_like_the_oracle(tmp_path, name, force_spill):
    key_type, values = KEYS[name]
    chance = random.Random(name)
    left = pa.table({"k": pa.array(chance.choices(values, k=60), key_type), "n": range(60)})
    right = pa.table({"n": range(40), "k": pa.array(chance.choices(values, k=40), key_type)})
    # what cannot be compared (NaN, -0.0) comes back by its row number: keys are left out of the output
    run = run_join(tmp_path, JoinType.LEFT, left, right, [0], [1], output=[(0, 1), (1, 0)], force_spill=force_spill)
    expected = []
    for left_key, left_number in table_rows(left):
        matches = [
            number
            for number, key in table_rows(right)
            if key is not None and (key == left_key or (key != key and left_key is not None and left_key != left_key))
        ]
        expected += [(left_number, number) for number in matches or [None]]
    assert sorted(rows_of(run.batches).elements(), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("pages", [64, 6])
def test_several_key_columns_match_together_and_nest_values_travel(tmp_path, how, pages):
    chance = random.Random(8)

    def table(rows, tag):
        return pa.table(
            {
                "a": pa.array([chance.choice([None, 1, 2, 3]) for _ in range(rows)], pa.int32()),
                "list": pa.array(
                    [None if n % 5 == 0 else list(range(n % 4)) for n in range(rows)], pa.list_(pa.int64())
                ),
                "b": [chance.choice([None, "x", "yy", "z" * 20]) for _ in range(rows)],
                "n": range(rows),
            }
        )

    left, right = table(150, "l"), table(170, "r")
    output = [(1, 3), (0, 2), (0, 0), (0, 3), (1, 2)]
    if how in LEFT_ONLY:
        assert_joins_like_oracle(tmp_path, how, left.drop(["list"]), right.drop(["list"]), [0, 1], [0, 1], pages=pages)
        return
    run = run_join(tmp_path, how, left, right, [0, 2], [0, 2], pages=pages, output=output)
    full = run_join(tmp_path, how, left.drop(["list"]), right.drop(["list"]), [0, 1], [0, 1], pages=pages)
    expected = rows_of([batch.select([5, 1, 0, 2, 4]) for batch in full.batches])
    assert rows_of(run.batches) == expected
    lists = run_join(tmp_path, how, left, right, [0, 2], [0, 2], pages=pages, output=[(0, 3), (0, 1), (1, 3), (1, 1)])
    for batch in lists.batches:
        for left_number, left_list, right_number, right_list in zip(*batch.to_pydict().values(), strict=True):
            for number, value in ((left_number, left_list), (right_number, right_list)):
                assert value == (None if number is None or number % 5 == 0 else list(range(number % 4)))


@pytest.mark.parametrize("how", TYPES)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("left_rows", [0, 3])
@pytest.mark.parametrize("right_rows", [0, 3])
def test_an_empty_side_is_no_special_case(tmp_path, how, build_is_left, left_rows, right_rows):
    left, right = draw(1, left_rows, 2, null_share=0), draw(2, right_rows, 2, null_share=0, tag="r")
    assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left)


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("force_spill", [False, True])
def test_null_keys_match_nothing_and_outer_rows_with_them_come_out(tmp_path, how, build_is_left, force_spill):
    left, right = draw(1, 300, 5, null_share=1.0), draw(2, 300, 5, null_share=1.0, tag="r")
    run = assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, force_spill=force_spill
    )
    expected = {JoinType.INNER: 0, JoinType.SEMI: 0, JoinType.FULL: 600}
    assert sum(batch.num_rows for batch in run.batches) == expected.get(how, 300)


@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("pages", [64, 6])
def test_columns_declared_not_nullable_are_null_where_their_side_is_missing(tmp_path, build_is_left, pages):
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in (("k", pa.int64()), ("t", pa.string()))])
    left = pa.table({"k": range(900), "t": map(str, range(900))}, schema=schema)
    right = pa.table({"k": range(450, 1350), "t": map(str, range(900))}, schema=schema)
    for how in KEYED:
        assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], build_is_left=build_is_left, pages=pages)


@pytest.mark.parametrize("build_is_left", [False, True])
def test_dictionary_columns_come_out_plain(tmp_path, build_is_left):
    def table(rows):
        return pa.table({"k": pa.array([f"key {n % 7}" for n in range(rows)]).dictionary_encode(), "n": range(rows)})

    output, schema = [(0, 0), (1, 1), (1, 0)], pa.schema([("a", pa.string()), ("b", pa.int64()), ("c", pa.string())])
    left, right = table(10), table(5)
    build, probe = (left, right) if build_is_left else (right, left)
    rows = []
    with join_memory(tmp_path, 16, 4096) as (pool, space):
        sides = (build.schema, probe.schema, [0], [0], build_is_left)
        join = hash_join(JoinType.LEFT, *sides, output, schema, pool, space)
        join.add_build_batch(build.to_batches()[0])
        join.finish_build()
        for batch in [*join.probe(probe.to_batches()[0]), *join.finish_probe()]:
            assert batch.schema == schema
            rows += zip(*batch.to_pydict().values(), strict=True)
        join.close()
    expected = [(f"key {n % 7}", n % 7, f"key {n % 7}") for n in range(10) if n % 7 < 5]
    assert sorted(rows, key=repr) == sorted([*expected, ("key 5", None, None), ("key 6", None, None)], key=repr)


def test_probe_columns_pass_by_reference_when_every_row_matches_once(tmp_path):
    build = pa.table({"k": range(100), "name": [f"name {n}" for n in range(100)]})
    probe = pa.table({"k": pa.array([n * 7 % 100 for n in range(5000)], pa.int64()), "text": map(str, range(5000))})
    run = run_join(tmp_path, JoinType.INNER, probe, build, [0], [0], output=[(0, 1), (1, 1)])
    (batch,) = run.batches
    assert [buffer.address for buffer in batch.column(0).buffers() if buffer] == [
        buffer.address for buffer in probe.column("text").chunk(0).buffers() if buffer
    ]
    assert batch.column(1).to_pylist() == [f"name {n * 7 % 100}" for n in range(5000)]


def test_pairs_come_in_probe_order_while_nothing_is_spilled(tmp_path):
    build, probe = draw(1, 500, 100), draw(2, 2000, 100)
    run = run_join(tmp_path, JoinType.LEFT, probe, build, [0], [0], output=[(0, 1)], batch_rows=300, pages=512)
    numbers = [number for batch in run.batches for number in batch.column(0).to_pylist()]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("add_rows", ["page", "rows"])
@pytest.mark.parametrize("how", TYPES)
def test_build_rows_may_come_as_row_pages(tmp_path, add_rows, how):
    left, right = draw(1, 180, 90), draw(2, 220, 90, tag="r")
    codec = RowCodec(right.schema)

    def add_build(join, batch):
        rows = codec.to_rows(batch)
        if add_rows == "page":
            half = sum(map(len, [codec.to_rows(batch.slice(row, 1)) for row in range(batch.num_rows // 2)]))
            pages = [(rows[:half] + b"\xff" * 100, half), (b"", 0), (rows[half:] + b"\xff" * 8, len(rows) - half)]
            join.add_build_pages([SimpleNamespace(segment=segment, size=size) for segment, size in pages])
        else:
            join.add_build_rows(rows)

    for pages in (512, 6):
        assert_joins_like_oracle(tmp_path, how, left, right, [0], [0], add_build=add_build, pages=pages, batch_rows=100)


def test_output_batches_are_bounded_by_bytes(tmp_path):
    build = pa.table({"k": [1] * 20 + [2], "text": ["b" * 100_000] * 20 + ["short"]})
    probe = pa.table({"k": [1, 2, 1] * 5, "text": ["p" * 30_000] * 15})
    run = assert_joins_like_oracle(tmp_path, JoinType.INNER, probe, build, [0], [0], pages=2048)
    assert all(batch.nbytes <= 1_300_000 or batch.num_rows == 1 for batch in run.batches)


def test_wide_unique_build_rows_are_bounded_by_bytes(tmp_path):
    build = pa.table({"k": range(3), "text": ["b" * 100_000] * 3})
    probe = pa.table({"k": pa.array([0, 1, 2] * 20, pa.int64())})
    run = assert_joins_like_oracle(tmp_path, JoinType.INNER, probe, build, [0], [0], pages=256)
    assert len(run.batches) > 4
    assert all(batch.nbytes <= 1_200_000 for batch in run.batches)


def test_unmatched_build_rows_are_bounded_by_bytes(tmp_path):
    build = pa.table({"k": range(30), "text": ["b" * 100_000] * 30})
    probe = pa.table({"k": pa.array([100], pa.int64())})
    run = assert_joins_like_oracle(tmp_path, JoinType.LEFT, build, probe, [0], [0], build_is_left=True, pages=2048)
    assert all(batch.nbytes <= 1_200_000 for batch in run.batches)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    left_keys=st.lists(st.one_of(st.none(), st.integers(0, 12), st.just(3)), max_size=60),
    right_keys=st.lists(st.one_of(st.none(), st.integers(0, 12), st.just(3)), max_size=60),
    how=st.sampled_from(TYPES),
    build_is_left=st.booleans(),
    pages=st.sampled_from([6, 7, 16, 128]),
    batch_rows=st.sampled_from([1, 3, 10, 100]),
    force_spill=st.booleans(),
    width=st.sampled_from([1, 300, 3000]),
)
def test_any_keys_join_like_the_oracle(
    tmp_path, left_keys, right_keys, how, build_is_left, pages, batch_rows, force_spill, width
):
    left = pa.table({"k": pa.array(left_keys, pa.int64()), "n": range(len(left_keys))})
    right = pa.table(
        {"k": pa.array(right_keys, pa.int64()), "t": ["t" * (n * width % 9000) for n in range(len(right_keys))]}
    )
    assert_joins_like_oracle(
        tmp_path, how, left, right, [0], [0],
        build_is_left=build_is_left, pages=pages, batch_rows=batch_rows, force_spill=force_spill,
    )  # fmt: skip


def test_a_pool_below_six_pages_is_refused(tmp_path):
    table = draw(1, 1, 1)
    with pytest.raises(MemoryBudgetError, match="a hash join needs 6 pages, the pool has 5"):
        run_join(tmp_path, JoinType.INNER, table, table, [0], [0], pages=5)


def test_keys_that_cannot_be_compared_are_refused(tmp_path):
    left = pa.table({"k": pa.array([[1]], pa.list_(pa.int64()))})
    with pytest.raises(SchemaError, match="k"):
        run_join(tmp_path, JoinType.INNER, left, left, [0], [0])
    with pytest.raises(SchemaError, match="column 5: the input has 1 columns"):
        run_join(tmp_path, JoinType.INNER, left, left, [5], [0])


def test_bytes_that_are_not_rows_are_refused(tmp_path):
    table = draw(1, 3, 3)
    with join_memory(tmp_path, 16, 4096) as (pool, space):
        output = [(0, 0)]
        sides = (table.schema, table.schema, [0], [0], False)
        join = hash_join(JoinType.INNER, *sides, output, pa.schema([("k", pa.int64())]), pool, space)
        with pytest.raises(CorruptBlockError, match="build rows"):
            join.add_build_rows(b"\x07" * 64)
        with pytest.raises(CorruptBlockError, match="8 of a page of build rows"):
            join.add_build_pages([SimpleNamespace(segment=b"1234567\0", size=9)])
        with pytest.raises(RuntimeError, match="finish_build"):
            join.probe(table.to_batches()[0])
        with pytest.raises(SchemaError):
            join.add_build_batch(pa.record_batch({"other": [1]}))
        join.close()
        join.close()


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.INNER])
def test_few_matches_do_not_keep_their_whole_batch_in_memory(tmp_path, how):
    rows = 4096
    left = pa.table({"k": pa.array(range(rows), pa.int64()), "text": ["x" * 100] * rows})
    right = pa.table({"k": pa.array([5, 6, 7, 2000], pa.int64())})
    run = run_join(tmp_path, how, left, right, [0], [0], pages=512, batch_rows=1024)
    assert [batch.num_rows for batch in run.batches] == [3, 1]
    for batch in run.batches:
        assert batch.get_total_buffer_size() < 2000
