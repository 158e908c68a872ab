"""A parallelism beyond the processors of one process is an upper limit, but for what waits and what is set itself."""

from __future__ import annotations

import os

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, col, sum_
from engine.graph.plan import Plan, PlanNode, PythonFunction, Source
from engine.graph.source_spec import FormatSource, ParquetSource, SourceStatistics
from engine.optimizer.processors import useful_parallelism
from tests.optimizer.plan_building import schema

ROWS = pa.table({"k": [number % 7 for number in range(1000)], "n": range(1000)})
_SCHEMA = schema(n="int64")


def _plan(spec, rate_limit=None, *above):
    source = PlanNode(0, Source(spec, SourceStatistics(10, 10, "test"), rate_limit=rate_limit), (), _SCHEMA)
    nodes = (source, *(PlanNode(place, each, (place - 1,), _SCHEMA) for place, each in enumerate(above, 1)))
    return Plan(nodes, (len(nodes) - 1,))


FILES = ParquetSource(("/data/a.parquet",), (), ("n",))
WAITING = {
    "store": _plan(msgspec.structs.replace(FILES, paths=("s3://lake/a.parquet",))),
    "database": _plan(FormatSource("database", ("orders",), (), b"", ("n",))),
    "rate": _plan(FILES, 10.0),
    "function": _plan(FILES, None, PythonFunction("map", b"", "f", "f.py", 1)),
}


@pytest.fixture(autouse=True)
def _own_limit(monkeypatch):
    monkeypatch.delenv("DREY_PARALLELISM_MAX_PER_PROCESSOR", raising=False)


def test_more_subtasks_than_processors_are_as_many_as_these():
    assert [useful_parallelism(_plan(FILES), asked, 4) for asked in (1, 4, 5, 64)] == [1, 4, 4, 4]


def test_a_file_of_this_machine_may_have_a_scheme():
    assert useful_parallelism(_plan(msgspec.structs.replace(FILES, paths=("file:///data/a.parquet",))), 16, 2) == 2


@pytest.mark.parametrize("what", WAITING)
def test_subtasks_that_wait_are_as_many_as_were_asked_for(what):
    assert useful_parallelism(WAITING[what], 16, 2) == 16


def _groups(env, parallelism=None):
    rows = env.from_arrow(ROWS)
    if parallelism is not None:
        rows = rows.set_parallelism(parallelism)
    return rows.group_by("k").agg(total=sum_("n"))


def test_explain_says_what_was_set_and_what_limits_it():
    processors = len(os.sched_getaffinity(0))
    asked = 8 * processors
    with Environment(config={"parallelism.default": asked}) as env:
        limited = _groups(env).explain()
    with Environment(config={"parallelism.default": asked, "parallelism.max-per-processor": 8}) as env:
        whole = _groups(env).explain()
    assert limited.startswith(f"parallelism {processors} of {asked} (parallelism.max-per-processor), ")
    assert whole.startswith(f"parallelism {asked}, ")
    assert f"parallelism {asked}\n" not in limited


def test_the_parallelism_of_an_operator_is_kept():
    asked = 3 * len(os.sched_getaffinity(0))
    with Environment(config={"parallelism.default": asked}) as env:
        text = env.from_arrow(ROWS).set_parallelism(asked).filter(col("n") > 3).explain()
    assert f"parallelism {asked}\n" in text


def test_a_job_that_is_limited_runs_in_as_many_subtasks_as_explain_says(tmp_path):
    processors = len(os.sched_getaffinity(0))
    with Environment(config={"parallelism.default": 5 * processors}) as env:
        _groups(env).write_parquet(str(tmp_path / "groups"))
        result = env.execute()
        found = env.read_parquet(str(tmp_path / "groups")).sort("k").to_arrow()
    assert max(len(vertex.subtasks) for vertex in result.vertices) <= processors
    sums = [sum(range(key, 1000, 7)) for key in range(7)]
    assert found.to_pydict() == {"k": list(range(7)), "total": sums}
