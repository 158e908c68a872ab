"""Sums of one column plus constants: the values are those of each sum alone, from the states of one."""

import pyarrow as pa
import pytest

from engine import Environment, col, count, sum_
from engine.graph.plan import Aggregate
from engine.lowering.logical_node import build_plan

X = [3, -7, None, 32767, -32768, 0, None, 5]
TABLE = pa.table(
    {
        "k": ["a", "a", "a", "b", "b", "c", "d", None],
        "x": pa.array(X, pa.int16()),
        "wide": pa.array([1, 2, 3, 4, 5, 6, 7, 2**62], pa.int64()),
    }
)
LARGEST = 2**31 - 1


@pytest.fixture
def env():
    with Environment() as environment:
        yield environment


@pytest.fixture
def data(env):
    return env.from_arrow(TABLE)


def states(found):
    """Return how many states the groups of a plan have."""
    nodes = build_plan([found._node], "").nodes
    (calls,) = [node.operator.calls for node in nodes if isinstance(node.operator, Aggregate)]
    return len(calls)


def added(values, constant):
    return sum(value + constant for value in values) if values else None


SUMS = {"a": 0, "b": 1, "c": -3, "d": LARGEST, "e": -LARGEST}


def asked():
    x = col("x")
    return {"a": sum_(x), "b": sum_(1 + x), "c": sum_(x - 3), "d": sum_(x + LARGEST), "e": sum_(x - LARGEST)}


def test_values_are_those_of_each_sum_alone(data):
    found = data.agg(**asked())
    assert states(found) == 2
    values = [value for value in X if value is not None]
    assert found.to_arrow().to_pylist() == [{name: added(values, constant) for name, constant in SUMS.items()}]
    assert found.schema.types == [pa.int64()] * len(SUMS)


def test_groups_without_values_have_nulls(data):
    found = {row["k"]: row for row in data.group_by("k").agg(**asked()).to_arrow().to_pylist()}
    for key in ["a", "b", "c", "d", None]:
        values = [x for k, x in zip(TABLE["k"].to_pylist(), X, strict=True) if k == key and x is not None]
        assert found[key] == {"k": key, **{name: added(values, constant) for name, constant in SUMS.items()}}


def test_no_rows_are_nulls(data):
    found = data.filter(col("wide") < 0).agg(**asked())
    assert found.to_arrow().to_pylist() == [dict.fromkeys(SUMS)]


def test_sums_with_a_filter_share_among_themselves_alone(data):
    x, positive = col("x"), col("x") > 0
    some = {name: sum_(x + index, filter=positive) for index, name in enumerate("abc")}
    found = data.agg(**some, d=sum_(x + 1), e=sum_(x + 2))
    assert states(found) == 4
    assert found.to_arrow().to_pylist() == [{"a": 32775, "b": 32778, "c": 32781, "d": 6, "e": 12}]


def test_sums_within_expressions_share_too(data):
    found = data.agg(a=sum_(col("x") + 1) * 2, b=sum_(col("x") + 2) / count(), c=sum_(col("x") + 3))
    assert found.to_arrow().to_pylist() == [{"a": 12, "b": 1.5, "c": 18}]
    assert states(found) == 3


def test_two_sums_are_as_many_states_and_stay(data):
    assert "__aggregate" not in data.agg(a=sum_(col("x") + 1), b=sum_(col("x") + 2)).explain()


def test_what_could_get_out_of_64_bits_stays(data):
    wide, x = col("wide"), col("x")
    found = data.agg(**{name: sum_(wide - 2**62 + index) for index, name in enumerate("abc")})
    assert states(found) == 3
    found = data.agg(a=sum_(wide - 2**61), b=sum_(wide - 2**60), c=sum_(wide - 1), d=sum_(x + 2**40), e=sum_(x + 2**41))
    assert states(found) == 5


def test_different_values_and_sums_of_other_kinds_stay(data):
    x = col("x")
    found = data.agg(a=sum_(x + 1.0), b=sum_(x + 2.0), c=sum_(x + 3.0), d=sum_(x * 2), e=sum_(x * 3), f=sum_(x * 4))
    assert states(found) == 6
    found = data.agg(**{name: sum_(x + index, distinct=True) for index, name in enumerate("abc")})
    different = {value for value in X if value is not None}
    assert found.to_arrow().to_pylist() == [{name: added(different, index) for index, name in enumerate("abc")}]


def test_sql_shares_sums(env, data):
    env.register("t", data)
    found = env.sql("SELECT sum(x + 1) AS a, sum(2 + x) AS b, sum(x - 3) AS c, sum(x) FILTER (k = 'a') AS d FROM t")
    assert states(found) == 3
    assert found.to_arrow().to_pylist() == [{"a": 6, "b": 12, "c": -18, "d": -4}]
