"""AsofGroups against plain Python: rows in any order, directions, groups that one side lacks, nulls, types, ties."""

import random

import pyarrow as pa
import pytest

from engine.errors import SchemaError
from engine.graph.said_operators import AsofDirection
from engine.join.asof_choice import AsofRule
from engine.join.asof_groups import AsofGroups
from engine.partitions.partition_files import PartitionFiles
from engine.partitions.row_partitions import RowPartitions
from engine.records.outside_values import set_outside_bytes
from engine.records.row_codec import RowCodec
from engine.records.row_pages import pages_of_rows
from tests.join.asof_oracle import DIRECTIONS, TIMES, asof_oracle, asof_spec, case_of, draw, numbers_of, rank, table_of
from tests.records.test_outside_values import store
from tests.workshop import workshop

__all__ = ["store", "workshop"]

GROUPS = ["a", "b", "c", "a name that is longer than a prefix", "a name that is longer than a prefix!"]


def rows_of(table):
    """The rows of a table, or None where there are none."""
    return pages_of_rows(table.combine_chunks().to_batches()[0]) if table.num_rows else None


def assert_like_oracle(left, right, kind, times, rule, tolerance=None):
    """Rows of both sides come as they are; the oracle has those of the right in order of time."""
    lefts, rights = table_of(left, kind, has_groups=True), table_of(right, kind, has_groups=True)
    join = AsofGroups(asof_spec(lefts, rights), rule)
    in_order = sorted(right, key=lambda row: rank(row[1], times))
    expected = [(row[2], other and other[2]) for row, other in asof_oracle(left, in_order, rule, tolerance)]
    for _ in range(2):  # a join may be used again
        batches = list(join.join(rows_of(lefts), rows_of(rights)))
        for batch in batches:
            batch.validate(full=True)
        assert sorted(numbers_of(batches, 3)) == sorted(expected)
    join.close()
    return batches


def shuffled(rows, seed):
    return random.Random(seed).sample(rows, len(rows))


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("near", [False, True])
def test_each_row_gets_the_nearest_one(name, direction, strict, near):
    kind, times, units, apart = case_of(name, direction, near)
    left, right = draw(1, 90, times, GROUPS), draw(2, 70, times, [*GROUPS[1:], "d"])
    rule = AsofRule(direction, strict, units if near else None)
    for seed in (1, 2):
        assert_like_oracle(shuffled(left, seed), shuffled(right, seed), kind, times, rule, apart if near else None)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("group_count", [3, 900])
@pytest.mark.parametrize("is_in_order", [False, True])
@pytest.mark.parametrize("is_text", [False, True])
def test_more_rows_than_one_chunk_in_few_groups_and_many(direction, group_count, is_in_order, is_text):
    chance = random.Random(group_count)
    times = range(1000)
    sides = []
    for tag in "lr":
        moments = [chance.choice(times) for _ in range(1100)]
        moments = sorted(moments) if is_in_order else moments
        groups = [chance.randrange(group_count) for _ in moments]
        if is_text:  # of any length, the empty one included
            groups = [str(group).rjust(group % 40, "x") if group else "" for group in groups]
        sides.append([(group, time, f"{tag}{n}") for n, (group, time) in enumerate(zip(groups, moments, strict=True))])
    lefts, rights = (
        pa.table({"g": [row[0] for row in side], "t": [row[1] for row in side], "n": [row[2] for row in side]})
        for side in sides
    )
    join = AsofGroups(asof_spec(lefts, rights), AsofRule(direction))
    by_group = {}
    for row in sorted(sides[1], key=lambda row: row[1]):
        by_group.setdefault(row[0], []).append(row)
    expected = [
        (row[2], other and other[2])
        for row in sides[0]
        for _, other in asof_oracle([row], by_group.get(row[0], []), AsofRule(direction), None)
    ]
    found = numbers_of(join.join(rows_of(lefts), rows_of(rights)), 3)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_groups_come_out_one_by_one_in_order_of_time_and_nulls_behind_them():
    left = [("b", 2, "0"), (None, 1, "1"), ("a", 5, "2"), ("b", 1, "3"), ("a", None, "4"), ("a", 3, "5"), ("b", 2, "6")]
    batches = assert_like_oracle(left, [("a", 4, "7")], pa.int64(), range(9), AsofRule())
    assert numbers_of(batches, 3) == [
        ("3", None), ("0", None), ("6", None), ("5", None), ("2", "7"), ("1", None), ("4", None),
    ]  # fmt: skip


@pytest.mark.parametrize("rights", [0, 1, 30])
def test_the_right_may_be_empty(rights):
    left, right = draw(5, 30, range(9), ["a"]), draw(6, rights, range(9), ["a"])
    assert_like_oracle(left, right, pa.int64(), range(9), AsofRule())


def test_what_it_cannot_do_is_refused():
    table = pa.table({"t": [1], "n": ["x"]})
    with pytest.raises(SchemaError, match="no column that makes them"):
        AsofGroups(asof_spec(table, table), AsofRule())
    good, bad = pa.table({"g": [1], "t": [1], "n": ["x"]}), pa.table({"g": [1], "t": [1.5], "n": ["x"]})
    join = AsofGroups(asof_spec(good, good), AsofRule())
    with pytest.raises(SchemaError, match="cannot be joined as rows of"):
        list(join.join(rows_of(good), rows_of(bad)))


@pytest.mark.parametrize("length", [1, 8, 9, 16, 17, 40])
def test_keys_of_any_length_that_lie_outside_of_their_rows_are_found(length, workshop, store):
    set_outside_bytes(1)
    names = [letter * length for letter in "abc"]
    left = table_of([(names[n % 3], n, f"l{n}") for n in range(9)], pa.int64(), has_groups=True)
    right = table_of([(names[n % 2], n, f"r{n}") for n in range(9)], pa.int64(), has_groups=True)
    codec = RowCodec(right.schema)
    codec.keep_outside(store)
    join = AsofGroups(asof_spec(left, right), AsofRule(AsofDirection.BACKWARD))
    with workshop.operator(64) as (pool, space):
        parts = RowPartitions(codec, [0], pool, PartitionFiles(space, 4096), 1, 0, 40)
        parts.add(right.combine_chunks().to_batches()[0], 0)
        kept = parts.take(0)
        assert store.values, "values lie outside"
        found = numbers_of(join.join(rows_of(left), kept.row_pages()), 3)
        join.close()
        kept.delete()
        parts.close()
    expected = []
    for n in range(9):
        before = [other for other in range(n + 1) if names[other % 2] == names[n % 3]]
        expected.append((f"l{n}", f"r{before[-1]}" if before else None))
    assert sorted(found, key=str) == sorted(expected, key=str)
