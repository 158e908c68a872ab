"""What is Spark's costs what it costs by hand: questions of TPC-H become the operators of the same calls of PySpark.

Beside them there are projections that rename columns, which take part in the code of their neighbours.
"""

import re
from collections import Counter

import pytest

from engine import Environment
from engine.dataframes.fragments import fragment_settings
from engine.dataframes.frame import Fragments
from engine.dataframes.needed_settings import with_needed_settings
from engine.dataframes.translator import PlanTranslator
from engine.lowering.logical_node import build_plan
from engine.targets.spark import pruned, run_fragment
from tests.bench.by_hand import by_hand
from tests.tpch.queries import QUERIES, read_tables
from tests.tpch.tables import write_small

pytestmark = pytest.mark.spark

_OPERATOR = re.compile(r"^[\s:+\-]*(?:\*\(\d+\) )?(\w+)")


def _operators(data):
    """Return how often each operator is in the plan that Spark would run."""
    lines = data._jdf.queryExecution().executedPlan().toString().splitlines()
    return Counter(_OPERATOR.match(line)[1] for line in lines if line.strip())


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch") / "small"
    write_small(folder)
    with Environment(config={"parallelism.default": 2}) as env:
        yield read_tables(env, folder)


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_questions_become_the_operators_of_the_same_calls_by_hand(spark, tables, number):
    plan = build_plan([QUERIES[number](tables)._node], "")
    ours = pruned(plan)
    fragments = Fragments(run_fragment, fragment_settings({}), ())
    with with_needed_settings(spark):
        wanted = _operators(by_hand(spark, plan))
        found = _operators(PlanTranslator(ours, spark, fragments, 2).frame(ours.sinks[0]).exact())
    assert wanted.pop("Project", 0) <= found.pop("Project", 0)
    assert found == wanted
