"""A small limit over a source has the first rows of its files, every time; other limits have any."""

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.graph.expression import Call, ColumnRef
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, schema

KEYED = schema(k="int64", a="int64")
KNOWN = Call("is_not_null", (ColumnRef("k"),))
SETTINGS = OptimizerSettings(parallelism=4)


def parallelism_of_sources(builder):
    nodes = optimize(builder.plan(), SETTINGS).nodes
    return [node.parallelism for node in nodes if not node.inputs]


def limited(count, between=lambda builder, source: source, rows=10_000_000):
    builder = Builder()
    source = builder.source(KEYED, rows=rows)
    builder.sink(builder.limit(between(builder, source), count))
    return builder


def test_a_small_limit_reads_with_one_subtask():
    assert parallelism_of_sources(limited(10)) == [1]


def test_a_large_limit_and_one_behind_a_filter_read_with_all():
    assert parallelism_of_sources(limited(9_000_000)) == [4]
    assert parallelism_of_sources(limited(10, lambda builder, source: builder.filter(source, KNOWN))) == [4]


@pytest.mark.parametrize("call", [lambda data: data.limit(3), lambda data: data.head(3).select("x")])
def test_the_first_rows_come_every_time(call):
    with Environment(config={"parallelism.default": 2}) as env:
        data = env.from_arrow(pa.table({"x": range(100_000)})).with_columns(y=col("x") + 1)
        for _ in range(5):
            assert call(data).to_arrow().column("x").to_pylist() == [0, 1, 2]
