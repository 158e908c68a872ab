"""AsofJoin against plain Python: directions, strictness, tolerance, groups, nulls, duplicates, types, batch sizes."""

import itertools

import pyarrow as pa
import pytest

from engine.errors import SchemaError
from engine.graph.said_operators import JoinType
from engine.join.asof_choice import AsofRule
from engine.join.asof_join import AsofJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.records.row_batch import batch_of_rows
from tests.join.asof_oracle import DIRECTIONS, TIMES, asof_oracle, asof_spec, case_of, draw, numbers_of, table_of


def asof(left, right, rule, batch_rows=8192, held_bytes=1 << 20):
    join = AsofJoin(asof_spec(left, right), rule, held_bytes)
    sides = [[batch_of_rows(batch) for batch in side.to_batches(max_chunksize=batch_rows)] for side in (left, right)]
    batches = list(join.join(*sides))
    join.close()
    for batch in batches:
        batch.validate(full=True)
        assert 0 < batch.num_rows <= 8192
    assert (join.left_rows, join.right_rows <= right.num_rows) == (left.num_rows, True)
    return batches


def assert_like_oracle(left, right, kind, rule, tolerance, has_groups=True, **options):
    if not has_groups:
        left, right = ([("", *row[1:]) for row in side] for side in (left, right))
        left, right = (sorted(side, key=lambda row: row[1] is not None) for side in (left, right))
    tables = table_of(left, kind, has_groups), table_of(right, kind, has_groups)
    found = numbers_of(asof(*tables, rule, **options), tables[0].num_columns)
    expected = [(row[2], other and other[2]) for row, other in asof_oracle(left, right, rule, tolerance)]
    assert found == expected


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("near", [False, True])
def test_each_row_gets_the_nearest_one(name, direction, strict, near):
    kind, times, units, apart = case_of(name, direction, near)
    rule = AsofRule(direction, strict, units if near else None)
    left, right = draw(1, 60, times, ["a", "b", "c"]), draw(2, 40, times, ["a", "b", "d"])
    assert_like_oracle(left, right, kind, rule, apart if near else None)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("batch_rows", "held_bytes"), [(1, 0), (3, 200), (7, 1 << 20)])
def test_batches_of_any_size(direction, strict, batch_rows, held_bytes):
    times = list(range(12))
    left, right = draw(3, 200, times, ["a", "b"]), draw(4, 150, times, ["a", "b"], width=30)
    for has_groups in (True, False):
        lefts, rights = (
            sorted(side, key=lambda row: -1 if row[1] is None else row[1]) if not has_groups else side
            for side in (left, right)
        )
        rule = AsofRule(direction, strict)
        assert_like_oracle(
            lefts, rights, pa.int64(), rule, None, has_groups, batch_rows=batch_rows, held_bytes=held_bytes
        )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("batch_rows", [1, 5, 8192])
def test_groups_of_a_few_rows_that_one_side_lacks(direction, strict, batch_rows):
    names = [f"the same beginning {number}" for number in range(40)]
    left, right = draw(7, 150, list(range(5)), names[::2]), draw(8, 150, list(range(5)), names[::3])
    assert_like_oracle(left, right, pa.int64(), AsofRule(direction, strict), None, batch_rows=batch_rows)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("lefts", "rights"), list(itertools.product([0, 30], [0, 30])))
def test_a_side_may_be_empty(direction, lefts, rights):
    times = list(range(9))
    assert_like_oracle(
        draw(5, lefts, times, ["a"]), draw(6, rights, times, ["a"]), pa.int64(), AsofRule(direction), None
    )


def test_a_wide_right_row_that_many_left_rows_get_comes_out_in_small_batches():
    left = pa.table({"t": pa.array(range(100)), "n": ["x"] * 100})
    right = pa.table({"t": [0], "n": ["y" * (1 << 18)]})
    batches = asof(left, right, AsofRule())
    assert max(batch.num_rows for batch in batches) <= 4
    assert sum(batch.num_rows for batch in batches) == 100


def test_a_join_without_a_column_to_compare_by_is_refused():
    side = JoinInput(pa.schema([("t", pa.int64())]), ())
    spec = JoinSpec(how=JoinType.LEFT, left=side, right=side, output=((0, 0),), output_schema=side.schema)
    with pytest.raises(SchemaError, match="no column to compare by"):
        AsofJoin(spec, AsofRule(), 0)
