"""RangeJoin against plain Python: every type, bounds, keys, conditions, nulls, duplicates, skew, blocks of any size."""

import itertools
import math
import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.errors import SchemaError
from engine.graph.said_operators import JoinType
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.join.join_spec import JoinInput, JoinSpec
from engine.join.pair_condition import PairCondition
from engine.join.range_join import RangeJoin
from engine.join.range_spec import RangeSpec
from engine.records.row_batch import batch_of_rows
from tests.join.join_oracle import LEFT_ONLY, joined_rows, rows_of, spill_files

KEYED = [how for how in JoinType if how is not JoinType.CROSS]
#: (has a lower bound, has an upper one)
BOUNDS = [(True, True), (True, False), (False, True)]
SIZES = [(8192, 1 << 20), (3, 200), (1, 0)]
VALUES = {
    "int64": (pa.int64(), list(range(20))),
    "float64": (pa.float64(), [-math.inf, -1.5, -0.0, 0.0, 0.25, 3.0, math.inf, math.nan]),
    "text": (pa.string(), ["", "a", "aaaaaaaaaaab", "aaaaaaaaaaac", "b"]),
}


def rank(value):
    """What a value is compared by: NaN is the largest number."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return value


def order(row, columns):
    return [(row[index] is not None, "" if row[index] is None else rank(row[index])) for index in columns]


def draw(seed, count, values, columns, keys=("a", "b"), heavy=0.0):
    """Rows of (key, a value for each column, number); heavy: share of rows with the first key."""
    chance = random.Random(seed)

    def one(choices):
        return None if chance.random() < 0.1 else chance.choice(choices)

    rows = []
    for number in range(count):
        key = keys[0] if chance.random() < heavy else one(keys)
        rows.append((key, *(one(values) for _ in range(columns)), number))
    return rows


def is_within(point, interval, where):
    """Whether a point row lies in an interval row; the value of a point is its column 1, bounds are 1 and 2."""
    value = point[1]
    if value is None:
        return False
    for bound, is_lower, is_inclusive in (
        (where.lower, True, where.lower_is_inclusive),
        (where.upper, False, where.upper_is_inclusive),
    ):
        if bound is None:
            continue
        other = interval[bound]
        if other is None:
            return False
        one, two = rank(value), rank(other)
        if one == two and not is_inclusive:
            return False
        if one != two and (one < two) == is_lower:
            return False
    return True


def oracle(how, left, right, where, has_keys, confirm):
    """Count the rows of a join by all pairs."""
    widths = (3, 4) if where.is_point_left else (4, 3)

    def matches_of(row):
        matches = []
        for index, other in enumerate(right):
            point, interval = (row, other) if where.is_point_left else (other, row)
            if has_keys and (row[0] is None or row[0] != other[0]):
                continue
            if is_within(point, interval, where) and confirm(row, other):
                matches.append(index)
        return matches

    return joined_rows(how, left, right, widths, matches_of)


def table_of(rows, kind, columns):
    arrays = [pa.array([row[0] for row in rows], pa.string())]
    arrays += [pa.array([row[1 + index] for row in rows], kind) for index in range(columns)]
    arrays.append(pa.array([row[1 + columns] for row in rows], pa.int64()))
    return pa.table(arrays, names=["k", *[f"v{index}" for index in range(columns)], "n"])


def condition_of(left, right):
    """Numbers of a pair whose sum is even."""
    columns = ((0, left.num_columns - 1), (1, right.num_columns - 1))
    schema = pa.schema([("one", pa.int64()), ("other", pa.int64())])

    def predicate(pairs):
        total = pc.add(pairs.column(0), pairs.column(1))
        return pc.equal(pc.bit_wise_and(total, 1), 0)

    return PairCondition(columns, schema, predicate)


def run(folder, how, left, right, where, has_keys, condition, batch_rows, block_bytes):
    """Run the join over two tables that are sorted for it."""
    keys = (0,) if has_keys else ()
    output = [(0, index) for index in range(left.num_columns)]
    output += [] if how in LEFT_ONLY else [(1, index) for index in range(right.num_columns)]
    types = [(left, right)[side].schema.field(index).type for side, index in output]
    schema = pa.schema([pa.field(f"c{index}", kind) for index, kind in enumerate(types)])
    inputs = {"left": JoinInput(left.schema, keys), "right": JoinInput(right.schema, keys)}
    spec = JoinSpec(how=how, **inputs, output=tuple(output), output_schema=schema, condition=condition)
    with IOManager([str(folder)]) as io, io.space(SpillIdentity("ab" * 16, 0, 0, 0)) as space:
        join = RangeJoin(spec, where, space, block_bytes)
        sides = [
            [batch_of_rows(batch) for batch in side.to_batches(max_chunksize=batch_rows)] for side in (left, right)
        ]
        batches = list(join.join(*sides))
        assert spill_files(folder) == [], "a finished join leaves no file"
        join.close()
    for batch in batches:
        batch.validate(full=True)
        assert 0 < batch.num_rows <= 8192
    return batches, join


def assert_like_oracle(
    folder, how, points, intervals, kind, where, *, has_keys=True, confirms=False, batch_rows=8192, block_bytes=1 << 20
):
    begin = where.lower or where.upper
    points = sorted(points, key=lambda row: order(row, [0, 1] if has_keys else [1]))
    intervals = sorted(intervals, key=lambda row: order(row, [0, begin] if has_keys else [begin]))
    tables = table_of(points, kind, 1), table_of(intervals, kind, 2)
    left, right = tables if where.is_point_left else tables[::-1]
    condition = condition_of(left, right) if confirms else None
    batches, join = run(folder, how, left, right, where, has_keys, condition, batch_rows, block_bytes)
    sides = (points, intervals) if where.is_point_left else (intervals, points)

    def confirm(row, other):
        return not confirms or (row[-1] + other[-1]) % 2 == 0

    expected = oracle(how, *sides, where, has_keys, confirm)
    assert comparable(rows_of(batches)) == comparable(expected)
    return join


def comparable(rows):
    """The same with one NaN and one zero."""
    found = Counter()
    for row, count in rows.items():
        found[tuple(("number", rank(value)) if isinstance(value, float) else value for value in row)] += count
    return found


def where_of(is_point_left, bounds, inclusive=(True, False)):
    lower, upper = (index if there else None for there, index in zip(bounds, (1, 2), strict=True))
    return RangeSpec(is_point_left, 1, lower, upper, *inclusive)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("is_point_left", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("has_keys", [False, True])
@pytest.mark.parametrize("confirms", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_joins_are_those_of_all_pairs(tmp_path, how, is_point_left, bounds, has_keys, confirms, size):
    kind, values = VALUES["int64"]
    points, intervals = draw(1, 40, values, 1, heavy=0.4), draw(2, 30, values, 2, heavy=0.4)
    join = assert_like_oracle(
        tmp_path, how, points, intervals, kind, where_of(is_point_left, bounds), has_keys=has_keys,
        confirms=confirms, batch_rows=size[0], block_bytes=size[1],
    )  # fmt: skip
    assert join.blocks == 1 or size[1] < 1000


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("inclusive", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("is_point_left", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_bounds_of_every_kind(tmp_path, name, inclusive, is_point_left, bounds):
    kind, values = VALUES[name]
    points, intervals = draw(3, 40, values, 1), draw(4, 30, values, 2)
    where = where_of(is_point_left, bounds, inclusive)
    assert_like_oracle(tmp_path, JoinType.FULL, points, intervals, kind, where, batch_rows=5, block_bytes=300)


@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize(("points", "intervals"), [(0, 0), (0, 9), (9, 0)])
@pytest.mark.parametrize("is_point_left", [False, True])
def test_a_side_may_be_empty(tmp_path, how, points, intervals, is_point_left):
    kind, values = VALUES["int64"]
    where = where_of(is_point_left, (True, True))
    assert_like_oracle(tmp_path, how, draw(5, points, values, 1), draw(6, intervals, values, 2), kind, where)


def test_intervals_that_reach_far_are_carried_over_and_no_pair_is_tried_in_vain(tmp_path):
    points = [("a", value, value) for value in range(2000)]
    intervals = [("a", 10 * number, 10 * number + (5 if number % 50 else 1500), number) for number in range(200)]
    where = where_of(is_point_left=False, bounds=(True, True))
    join = assert_like_oracle(
        tmp_path, JoinType.LEFT, points, intervals, pa.int64(), where, batch_rows=64, block_bytes=4000
    )
    expected = sum(1 for _, low, high, _ in intervals for _ in range(low, min(high, 2000)))
    assert join.candidate_pairs == expected
    assert join.blocks > 5
    assert join.carried_rows > 0


def test_a_semi_join_makes_no_pairs(tmp_path):
    points = [("a", value, value) for value in range(300)]
    intervals = [("a", 0, 300, number) for number in range(300)]
    for is_point_left in (False, True):
        where = where_of(is_point_left, (True, True))
        join = assert_like_oracle(tmp_path, JoinType.SEMI, points, intervals, pa.int64(), where)
        assert join.candidate_pairs == 0


def test_a_range_without_bounds_is_refused(tmp_path):
    side = JoinInput(pa.schema([("t", pa.int64())]), ())
    spec = JoinSpec(how=JoinType.INNER, left=side, right=side, output=((0, 0),), output_schema=side.schema)
    with pytest.raises(SchemaError, match="no bound"):
        RangeJoin(spec, RangeSpec(True, 0, None, None), None, 0)
