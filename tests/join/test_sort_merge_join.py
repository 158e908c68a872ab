"""SortMergeJoin against the oracle and DuckDB: types, nulls, duplicates, skew, batch sizes, memory, conditions."""

import datetime
import decimal
import random
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import SchemaError
from engine.graph.said_operators import JoinType
from engine.graph.sort_key import SortKey
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.memory.manager import MemoryManager
from engine.records.row_batch import batch_of_rows
from engine.sort.external_sorter import ExternalSorter
from tests.join.join_oracle import (
    LEFT_ONLY,
    join_memory,
    merge_join,
    oracle_join,
    pair_condition,
    rows_of,
    spill_files,
    table_rows,
)

KEYED = [how for how in JoinType if how is not JoinType.CROSS]
OUTER_RIGHT = (JoinType.RIGHT, JoinType.FULL)


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


@contextmanager
def sorted_table(pool, space, table, keys, *, force_spill=False):
    """Sort as the driver does: rows are good as long as this is open, then all pages go back."""
    sorter = ExternalSorter(
        table.schema, [SortKey(table.schema.names[key]) for key in keys], pool, space, force_spill=force_spill
    )
    try:
        for batch in table.to_batches(max_chunksize=1000):
            sorter.add_batch(batch)
        sorter.finish()
        yield sorter
    finally:
        sorter.close()


def row_batches(table, batch_rows=None):
    """Return the rows of a table that is sorted, as the join takes them."""
    return [batch_of_rows(batch) for batch in table.to_batches(max_chunksize=batch_rows)]


@contextmanager
def merge_memory(folder, pages, page_size):
    """Give a pool for each sort and a spill space; afterwards every page is back."""
    with MemoryManager(2 * pages * page_size, page_size) as memory:
        with (
            IOManager([str(folder)]) as io,
            io.space(SpillIdentity("ab" * 16, 0, 0, 0)) as space,
            memory.pool("left", pages) as one,
            memory.pool("right", pages) as other,
        ):
            yield one, other, space
            assert one.pages_used == other.pages_used == 0
        assert memory.leak_report() == []


def merge(folder, how, left, right, left_keys, right_keys, *, pages=64, page_size=4096, batch_rows=8192,
          group_bytes=1 << 20, group_rows=0, output=None, condition=None, force_spill=False,
          files_left=0):  # fmt: skip
    """Run the engine's join; return its batches and the join with its counters; files_left: of values outside."""
    if output is None:
        output = [(0, index) for index in range(left.num_columns)]
        output += [] if how in LEFT_ONLY else [(1, index) for index in range(right.num_columns)]
    types = [(left, right)[side].schema.field(index).type for side, index in output]
    schema = pa.schema([pa.field(f"c{position}", kind) for position, kind in enumerate(types)])
    with merge_memory(folder, pages, page_size) as (one, other, space):
        join = merge_join(
            how, left.schema, right.schema, left_keys, right_keys, output, schema, space, group_bytes,
            row_limit=group_rows or None, condition=condition,
        )  # fmt: skip
        with (
            sorted_table(one, space, left, left_keys, force_spill=force_spill) as lefts,
            sorted_table(other, space, right, right_keys, force_spill=force_spill) as rights,
        ):
            batches = list(join.join(lefts.row_batches(batch_rows), rights.row_batches(batch_rows)))
        assert len(spill_files(folder)) == files_left, "a finished join leaves no file"
        join.close()
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == schema
        assert 0 < batch.num_rows <= 8192
    return batches, join


def assert_like_oracle(folder, how, left, right, left_keys=(0,), right_keys=(0,), confirm=None, **options):
    batches, join = merge(folder, how, left, right, left_keys, right_keys, **options)
    widths = (left.num_columns, right.num_columns)
    check = {} if confirm is None else {"confirm": confirm}
    expected = oracle_join(how, table_rows(left), table_rows(right), left_keys, right_keys, widths, **check)
    actual = rows_of(batches)
    assert sum(actual.values()) == sum(expected.values())
    assert actual == expected
    return batches, join


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("batch_rows", [1, 2, 7, 49, 8192])
@pytest.mark.parametrize("group_rows", [0, 2])
def test_fifty_rows_join_like_the_oracle(tmp_path, how, batch_rows, group_rows):
    left, right = draw(1, 50, 12), draw(2, 45, 12, tag="r")
    assert_like_oracle(tmp_path, how, left, right, batch_rows=batch_rows, group_rows=group_rows, force_spill=True)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("skew", ["left", "right", "both"])
@pytest.mark.parametrize("batch_rows", [9, 64])
@pytest.mark.parametrize("group_bytes", [1000, 1 << 20])
def test_a_heavy_key_is_joined_in_bounded_memory(tmp_path, how, skew, batch_rows, group_bytes):
    left = draw(3, 160, 40, heavy=0.8 if skew in ("left", "both") else 0.0)
    right = draw(4, 120, 40, heavy=0.8 if skew in ("right", "both") else 0.0, tag="r")
    _, join = assert_like_oracle(tmp_path, how, left, right, batch_rows=batch_rows, group_bytes=group_bytes)
    needs_group = how not in LEFT_ONLY and skew != "left"
    if needs_group and group_bytes < 1 << 20:
        assert join.spilled_groups > 0
        assert join.block_passes > join.spilled_groups or skew == "right"
    if how in LEFT_ONLY or group_bytes == 1 << 20:
        assert join.spilled_groups == 0


def not_equal_numbers(left, right):
    predicate = lambda batch: pc.not_equal(pc.bit_wise_and(batch["a"], 1), pc.bit_wise_and(batch["b"], 1))  # noqa: E731
    return pair_condition(left, right, [(0, 1), (1, 1)], predicate)


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("batch_rows", [5, 8192])
@pytest.mark.parametrize("group_rows", [0, 2])
def test_a_condition_decides_about_pairs_and_about_rows_without_match(tmp_path, how, batch_rows, group_rows):
    left, right = draw(5, 120, 20, heavy=0.3), draw(6, 90, 20, heavy=0.3, tag="r")
    assert_like_oracle(
        tmp_path,
        how,
        left,
        right,
        batch_rows=batch_rows,
        group_rows=group_rows,
        condition=not_equal_numbers(left, right),
        confirm=lambda one, other: one[1] & 1 != other[1] & 1,
    )


@pytest.mark.parametrize("how", KEYED)
def test_a_null_condition_is_not_true_and_one_without_columns_is_asked_too(tmp_path, how):
    left, right = draw(7, 60, 9), draw(8, 50, 9, tag="r")
    longer = pair_condition(left, right, [(0, 2), (1, 2)], lambda batch: pc.less(batch["a"], batch["b"]))
    confirm = lambda one, other: one[2] is not None and other[2] is not None and one[2] < other[2]  # noqa: E731
    assert_like_oracle(tmp_path, how, left, right, condition=longer, confirm=confirm)
    never = pair_condition(left, right, [], lambda batch: pa.array([False] * batch.num_rows))
    assert_like_oracle(tmp_path, how, left, right, condition=never, confirm=lambda one, other: False)


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_an_empty_side_matches_nothing(tmp_path, how, empty):
    left, right = draw(9, 0 if empty != "right" else 20, 5), draw(10, 0 if empty != "left" else 20, 5)
    assert_like_oracle(tmp_path, how, left, right, batch_rows=6)


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize(("left_keys", "right_keys"), [(range(3), range(3)), (range(10), range(20, 30))])
def test_keys_that_never_meet_leave_all_rows_without_match(tmp_path, how, left_keys, right_keys):
    left = pa.table({"k": [key for key in left_keys for _ in range(4)]})
    right = pa.table(
        {"k": [None, *right_keys] if left_keys != right_keys else [None] * 4}, pa.schema([("k", pa.int64())])
    )
    assert_like_oracle(tmp_path, how, left, right, batch_rows=3)


KEYS = {
    "bool": (pa.bool_(), [True, False, None]),
    "int8": (pa.int8(), [-128, 127, 0, None]),
    "uint64": (pa.uint64(), [2**64 - 1, 0, 5, None]),
    "float64": (pa.float64(), [0.0, -0.0, float("nan"), -float("nan"), 1.5, -1.5, None]),
    "decimal": (pa.decimal128(20, 2), [decimal.Decimal("1.10"), decimal.Decimal("-1.10"), None]),
    "date": (pa.date32(), [datetime.date(2020, 1, 1), datetime.date(1960, 1, 1), None]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(2020, 1, 1, 3), datetime.datetime(1960, 1, 1), None]),
    "string": (pa.string(), ["", "a", "ab", "a longer key than eight bytes", "a longer key than 8", "ä", None]),
    "binary": (pa.binary(), [b"", b"\0", b"\0\0", None]),
    "fixed": (pa.binary(3), [b"abc", b"abd", None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c", None]),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("batch_rows", [4, 8192])
def test_every_key_type_joins_like_the_oracle(tmp_path, name, batch_rows):
    key_type, values = KEYS[name]
    chance = random.Random(name)
    left = pa.table({"k": pa.array(chance.choices(values, k=60), key_type), "n": range(60)})
    right = pa.table({"n": range(40), "k": pa.array(chance.choices(values, k=40), key_type)})
    # what cannot be compared (NaN, -0.0) comes back by its row number: keys are left out of the output
    batches, _ = merge(tmp_path, JoinType.LEFT, left, right, [0], [1], output=[(0, 1), (1, 0)], batch_rows=batch_rows)
    expected = []
    for left_key, left_number in table_rows(left):
        matches = [
            number
            for number, key in table_rows(right)
            if key is not None and (key == left_key or (key != key and left_key is not None and left_key != left_key))
        ]
        expected += [(left_number, number) for number in matches or [None]]
    assert sorted(rows_of(batches).elements(), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("how", KEYED)
def test_several_keys_match_together_and_a_null_in_any_matches_nothing(tmp_path, how):
    chance = random.Random(11)
    one = [None, "x", "a text of more than eight bytes"]
    left = pa.table({"a": chance.choices(one, k=80), "n": range(80), "b": chance.choices([None, 1, 2], k=80)})
    right = pa.table({"b": chance.choices([None, 1, 2], k=70), "a": chance.choices(one, k=70), "m": range(70)})
    assert_like_oracle(tmp_path, how, left, right, [2, 0], [0, 1], batch_rows=11, group_rows=7)


@pytest.mark.parametrize("how", [JoinType.FULL, JoinType.INNER])
def test_rows_wider_than_everything_pass_through(tmp_path, how):
    wide = "w" * 30_000
    left = pa.table({"k": [1, 1, 2, 3], "v": [wide, "a", wide, None]})
    right = pa.table({"k": [1, 1, 3, 4], "v": ["b", wide, wide, wide]})
    assert_like_oracle(tmp_path, how, left, right, pages=6, batch_rows=2, group_bytes=1)


def test_output_batches_are_bounded_by_bytes(tmp_path):
    left = pa.table({"k": [1] * 100, "v": ["x" * 20_000] * 100})
    right = pa.table({"k": [1] * 100})
    batches, _ = merge(tmp_path, JoinType.INNER, left, right, [0], [0], pages=2000)
    assert sum(batch.num_rows for batch in batches) == 10_000
    assert max(batch.nbytes for batch in batches) < 1.1 * (1 << 20)


def test_an_inner_join_stops_reading_when_one_side_has_ended(tmp_path):
    left = pa.table({"k": [1, 2]})
    asked = []

    def rights():
        for key in range(1, 100):
            asked.append(key)
            yield batch_of_rows(pa.record_batch({"k": pa.array([key])}))

    with join_memory(tmp_path, 8, 4096) as (_, space):
        schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
        join = merge_join(JoinType.INNER, left.schema, left.schema, [0], [0], [(0, 0), (1, 0)], schema, space, 1 << 20)
        assert rows_of(list(join.join(row_batches(left), rights()))) == {(1, 1): 1, (2, 2): 1}
        join.close()
    assert asked == [1, 2, 3]


def test_a_join_that_is_left_gives_everything_back(tmp_path):
    left, right = draw(12, 200, 1, null_share=0), draw(13, 200, 1, null_share=0)
    with join_memory(tmp_path, 8, 4096) as (_, space):
        types = [field.type for field in (*left.schema, *right.schema)]
        schema = pa.schema([pa.field(str(position), kind) for position, kind in enumerate(types)])
        output = [(side, index) for side in (0, 1) for index in range(3)]
        join = merge_join(JoinType.FULL, left.schema, right.schema, [0], [0], output, schema, space, 1, row_limit=2)
        results = join.join(row_batches(left, 20), row_batches(right, 20))
        assert next(results).num_rows > 0
        results.close()
        join.close()
        join.close()


def test_a_join_without_keys_is_refused(tmp_path):
    left = draw(14, 3, 3)
    with join_memory(tmp_path, 8, 4096) as (_, space), pytest.raises(SchemaError, match="cross join has no keys"):
        merge_join(JoinType.CROSS, left.schema, left.schema, [], [], [(0, 0)], left.schema, space, 1)


DUCKDB = {
    JoinType.INNER: "l JOIN r USING (k)",
    JoinType.LEFT: "l LEFT JOIN r USING (k)",
    JoinType.RIGHT: "l RIGHT JOIN r USING (k)",
    JoinType.FULL: "l FULL JOIN r USING (k)",
    JoinType.SEMI: "l SEMI JOIN r USING (k)",
    JoinType.ANTI: "l ANTI JOIN r USING (k)",
}


@pytest.mark.thorough
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("pages", [512, 6])
def test_twenty_thousand_rows_join_like_duckdb(tmp_path, how, pages):
    left, right = draw(15, 20_000, 9000), draw(16, 15_000, 9000, tag="r")
    batches, join = merge(tmp_path, how, left, right, [0], [0], pages=pages, group_bytes=4096, batch_rows=1000)
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        columns = "l.number, l.text" if how in LEFT_ONLY else "l.number, l.text, r.number, r.text"
        expected = Counter(connection.execute(f"SELECT {columns} FROM {DUCKDB[how]}").fetchall())
    keep = (1, 2) if how in LEFT_ONLY else (1, 2, 4, 5)
    actual = Counter(tuple(row[column] for column in keep) for row in rows_of(batches).elements())
    assert actual == expected
    assert join.left_rows <= 20_000


ROWS = st.lists(st.tuples(st.sampled_from([None, 0, 0, 0, 1, 2]), st.integers(0, 3)), max_size=30)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, ROWS, st.sampled_from(KEYED), st.integers(1, 9), st.integers(0, 6), st.booleans())
def test_any_rows_join_like_the_oracle(tmp_path, left_rows, right_rows, how, batch_rows, group_rows, has_condition):
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    left, right = (
        pa.table({"k": [row[0] for row in rows], "v": [row[1] for row in rows]}, schema)
        for rows in (left_rows, right_rows)
    )
    options = {}
    if has_condition:
        condition = pair_condition(left, right, [(1, 1), (0, 1)], lambda batch: pc.less_equal(batch["a"], batch["b"]))
        options = {"condition": condition, "confirm": lambda one, other: other[1] <= one[1]}
    assert_like_oracle(tmp_path, how, left, right, batch_rows=batch_rows, group_rows=group_rows, pages=6, **options)


def test_the_pieces_of_a_group_meet_once_each(tmp_path):
    """Every pair of a key that spans many batches on both sides comes exactly once, in every portioning."""
    left = pa.table({"k": [1] * 23, "v": range(23)})
    right = pa.table({"k": [1] * 17, "w": range(17)})
    expected = Counter((one, other) for one in range(23) for other in range(17))
    for batch_rows, group_rows in [(1, 1), (3, 0), (5, 2), (23, 1), (4, 100)]:
        batches, _ = merge(
            tmp_path, JoinType.FULL, left, right, [0], [0], output=[(0, 1), (1, 1)], batch_rows=batch_rows,
            group_rows=group_rows,
        )  # fmt: skip
        assert rows_of(batches) == expected


def test_the_drivers_order_is_the_order_of_the_merge(tmp_path):
    """Nulls first, ascending, NaN last: what ExternalSorter gives is what KeyOrder compares."""
    values = pa.table({"k": pa.array([float("nan"), 2.0, -0.0, None, 0.0, -1.0, float("inf")])})
    with join_memory(tmp_path, 8, 4096) as memory, sorted_table(*memory, values, [0]) as ordered:
        keys = [key for batch in ordered.batches(100) for key in batch.column(0).to_pylist()]
    assert keys[0] is None
    assert all(one <= other for one, other in pairwise(keys[1:-1]))
    assert keys[-1] != keys[-1]
