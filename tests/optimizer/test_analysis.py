"""explain(analyze=True): what was expected of each operator beside what it did."""

import os

import msgspec
import pyarrow as pa
import pytest

from engine import Environment, col, sum_
from engine.api.planning import analyzed_plan
from engine.client.job_result import JobResult
from engine.config.loader import configuration_from_texts
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.deployment import OperatorCounters
from engine.optimizer.analysis import analysis_text, analyze
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.profile.job_profile import VERSION, JobProfile
from tests.optimizer.plan_building import Builder, call, lit, schema


def planned():
    builder = Builder()
    orders = builder.source(schema(id="int64", total="double"), rows=1e6)
    builder.sink(builder.sort(builder.filter(orders, call("greater", "total", lit(1.0))), "id"))
    return optimize(builder.plan(), OptimizerSettings(parallelism=2))


def done(node, **numbers):
    return OperatorCounters(node.descriptor.name, node_id=node.descriptor.node_id, **numbers)


def test_each_operator_has_its_own_numbers_also_those_that_come_from_one_node():
    optimized = planned()
    names = [node.descriptor.name for node in optimized.nodes]
    assert len({node.descriptor.node_id for node in optimized.nodes}) < len(names), "two from one node"
    counters = [done(node, rows_out=number) for number, node in enumerate(optimized.nodes)]
    analysis = analyze(optimized, reversed(counters), 1.0)
    assert [(each.name, each.actual.rows_out) for each in analysis.operators] == list(
        zip(names, range(9), strict=False)
    )
    assert analysis.others == ()
    assert "did not run" not in analysis_text(analysis)


def test_time_memory_spilling_and_function_are_told_with_their_shares():
    optimized = planned()
    numbers = {
        "rows_out": 1234567,
        "bytes_out": 10**7,
        "bytes_in": 2 * 10**6,
        "time_us": 1_500_000,
        "managed_bytes": 4 * 10**6,
        "managed_bytes_peak": 10**6,
        "spilled_bytes": 3 * 10**6,
        "function_us": 750_000,
    }
    counters = [done(optimized.nodes[0], time_us=500_000), done(optimized.nodes[-1], **numbers)]
    text = analysis_text(analyze(optimized, counters, 3.25, 20_000, ("the join is broadcast",)))
    assert text.startswith("ran for 3.25 s; time of all subtasks: operators 2.00 s, handing rows on 0.02 s\n")
    for wanted in (
        "was      1 234 567 rows, 10 MB; took 1.50 s, 75% of all operators",
        "memory   1 MB used of 4 MB",
        "spilled  3 MB, 1.5 times its input",
        "function 0.75 s of its worker's processor, 50% of the operator's time",
        "did not run as planned",
        "decided: the join is broadcast",
    ):
        assert wanted in text, text


def test_what_a_decision_has_made_is_told_below_the_plan():
    text = analysis_text(analyze(planned(), [OperatorCounters("another join", node_id=1, rows_out=5)], 1.0))
    assert text.rstrip().splitlines()[-3:-1] == ["in the place of others, decided at run time:", "   another join"]


@pytest.mark.parametrize("how", ["text", "json"])
def test_a_data_set_is_run_and_nothing_of_it_stays(tmp_path, how):
    facts = pa.table({"k": list(range(20_000)), "v": [1.0] * 20_000})
    with Environment(config={"parallelism.default": 2, "io.tmp.dirs": str(tmp_path)}) as env:
        sums = env.from_arrow(facts).filter(col("k") < 500).group_by("k").agg(s=sum_("v")).sort("k")
        told = sums.explain(analyze=True, format=how)
        assert not [name for _, _, files in os.walk(env.temporary_folder()) for name in files if "none" in name]
        assert not list(env.temporary_folder().glob("result-*"))
        assert sums.count() == 500
    if how == "text":
        assert "did not run as planned" not in told
        assert told.count("was      500 rows") >= 3, told
        return
    profile = msgspec.json.decode(told, type=JobProfile)
    assert (profile.state, profile.version) == ("FINISHED", VERSION)
    operators = [each for vertex in profile.vertices for each in vertex.operators]
    (filtered,) = (each for each in operators if each.name.startswith("filter"))
    assert (filtered.rows_in, filtered.rows_out) == (20_000, 500)
    assert filtered.expected_rows > 0 and all(each.origin for each in operators)


def test_a_job_that_nobody_waited_for_has_nothing_to_tell():
    handed_over = JobResult("0" * 32, "job", "CREATED", 0, ())
    with pytest.raises(PlanError, match="submit without -d"):
        analyzed_plan(planned().plan, handed_over, "local", configuration_from_texts({}), 1, form="text")


def test_formats_that_are_not_there_are_refused_before_anything_runs():
    with Environment(config={"parallelism.default": 1}) as env:
        rows = env.from_arrow(pa.table({"k": [1]}))
        with pytest.raises(NotYetSupportedError, match=r"explain\(format="):
            rows.explain(format="json")
        for analyze in (False, True):
            with pytest.raises(PlanError, match="choose text, html"):
                rows.explain(analyze=analyze, format="xml")
