"""What passes a list that becomes rows: filters and columns that are not its own, limits where no row is lost."""

import pyarrow as pa
import pytest

from engine import Environment, col, sum_
from engine.graph.expression import columns_of
from engine.graph.plan import Explode, Filter, Limit, Project, Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.lowering.logical_node import LogicalNode, build_plan
from engine.optimizer.logical_optimizer import rewrite


@pytest.fixture(scope="module")
def data():
    with Environment() as environment:
        rows = {"k": [1, 2], "w": ["a", "b"], "x": [[1, 2], []], "unused": [1.0, 2.0]}
        yield environment.from_arrow(pa.table(rows))


def rewritten(data_set):
    """The operators of the plan after all rules, from the source on."""
    sink = LogicalNode(Sink(SinkSpec("arrow", "(client)")), (data_set._node,), data_set.schema)
    plan = rewrite(build_plan([sink], "test"))
    return [node.operator for node in plan.nodes]


def test_a_filter_over_other_columns_is_below_and_one_over_elements_above(data):
    operators = rewritten(data.explode("x", "i").filter((col("k") > 1) & (col("x") > 1) & (col("i") < 5)))
    kinds = [type(one) for one in operators]
    below, above = (one for one in operators if isinstance(one, Filter))
    assert kinds.index(Filter) < kinds.index(Explode)
    assert set(columns_of(below.predicate)) == {"k"}
    assert set(columns_of(above.predicate)) == {"x", "i"}


def test_columns_and_positions_that_nobody_uses_are_not_made(data):
    operators = rewritten(data.explode("x", "i").group_by("k").agg(s=sum_("x")))
    (exploded,) = (one for one in operators if isinstance(one, Explode))
    assert exploded.position == ""
    (source,) = (one for one in operators if isinstance(one, Source))
    assert set(source.spec.columns) == {"k", "x"}


def test_a_limit_is_below_as_well_where_each_row_gives_one_at_least(data):
    kept = [type(one) for one in rewritten(data.explode("x").limit(3))]
    assert kept.index(Limit) < kept.index(Explode)
    assert kept.count(Limit) == 2
    dropped = [type(one) for one in rewritten(data.explode("x", keep_empty=False).limit(3))]
    assert dropped.index(Limit) > dropped.index(Explode)
    assert dropped.count(Limit) == 1


def test_a_limit_stays_above_a_projection_of_elements_only_once(data):
    operators = rewritten(data.explode("x").select("x").limit(3).limit(2))
    assert sorted(one.count for one in operators if isinstance(one, Limit)) == [2, 2]
    assert sum(isinstance(one, Project) for one in operators) <= 2
