"""Which part of a condition is a range, and when a range join is chosen."""

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.plan import Join
from engine.graph.range_condition import RangeBound, RangeCondition
from engine.graph.said_operators import JoinType
from engine.optimizer.range_planning import find_range

LEFT = to_plan_schema(pa.schema([("k", pa.int64()), ("t", pa.int64()), ("u", pa.int64()), ("x", pa.string())]))
RIGHT = to_plan_schema(pa.schema([("k", pa.int64()), ("low", pa.int64()), ("high", pa.int64()), ("y", pa.int32())]))
t, u, x, low, high, y, k = (col(name) for name in ("t", "u", "x", "low", "high", "y", "k"))
LOW, HIGH = RangeBound("low", True), RangeBound("high", False)


def found(condition, how=JoinType.INNER, null_aware=False):
    join = Join(how, ("k",), ("k",), coalesce_keys=True, condition=condition.expression, null_aware=null_aware)
    return find_range(join, LEFT, RIGHT)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ((t >= low) & (t < high), RangeCondition(True, "t", LOW, HIGH)),
        ((low <= t) & (high > t), RangeCondition(True, "t", LOW, HIGH)),
        (t.between(low, high), RangeCondition(True, "t", LOW, RangeBound("high", True))),
        ((low > t) & (low < u), RangeCondition(False, "low", RangeBound("t", False), RangeBound("u", False))),
        (t > low, RangeCondition(True, "t", RangeBound("low", False))),
        (t < low, RangeCondition(True, "t", None, RangeBound("low", False))),
        ((t > low) & (u > high), RangeCondition(True, "t", RangeBound("low", False))),
        # one that has both bounds comes before the first
        ((u > low) & (t >= low) & (t < high), RangeCondition(True, "t", LOW, HIGH)),
    ],
)
def test_ranges(condition, expected):
    assert found(condition).range == expected


@pytest.mark.parametrize(
    "condition", [t == low, t > 5, t > u, t > y, x > x, t + 1 > low, (t > low) | (t < high), k > k, t != low]
)
def test_what_is_no_range(condition):
    assert found(condition) is None


def test_the_rest_stays_a_condition():
    both = found((t >= low) & (x != "a") & (t < high) & (u < high))
    assert both.rest == ((x != "a") & (u < high)).expression
    assert found(t > low).rest is None
    assert found(t.between(low, high)).rest is None


def test_a_null_aware_join_has_none():
    assert found(t > low, JoinType.ANTI) is not None
    assert found(t > low, JoinType.ANTI, null_aware=True) is None


@pytest.fixture
def env():
    return Environment(config={"parallelism.default": 2})


def table(rows, **names):
    return pa.table({new: pa.array(range(rows), pa.int64()) for new in names})


def test_it_is_chosen_where_pairs_would_be_many(env):
    many, few = env.from_arrow(table(1000, a=0, t=0)), env.from_arrow(table(3, low=0, high=0))
    others = env.from_arrow(table(1000, low=0, high=0))
    assert "RANGE_MERGE" not in many.join(few, condition=t.between(low, high)).explain()
    text = many.join(others, condition=t.between(low, high)).explain()
    assert "RANGE_MERGE" in text
    assert "range t >= low and t <= high" in text
    assert "left, sorted" in text


def test_keys_that_leave_few_pairs_are_hashed_unless_a_hint_says_otherwise(env):
    many, others = env.from_arrow(table(1000, k=0, t=0)), env.from_arrow(table(1000, k=0, low=0, high=0))
    condition = t.between(low, high)
    assert "RANGE_MERGE" not in many.join(others, on="k", condition=condition).explain()
    text = many.join(others, on="k", condition=condition, hint="REPARTITION_SORT_MERGE").explain()
    assert "RANGE_MERGE (REPARTITION_RANGE_MERGE)" in text
