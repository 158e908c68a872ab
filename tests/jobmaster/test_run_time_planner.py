"""Whole jobs with decisions in the middle: whatever sizes results show, the rows stay the same and nothing hangs."""

from __future__ import annotations

import hypothesis
import msgspec
from hypothesis import Phase
from hypothesis import strategies as st

from engine.errors import PlanError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Join, JoinHint, Plan
from engine.ids import JobId
from engine.optimizer.adaptive_changes import replay
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.planner import rewrite
from engine.optimizer.settings import OptimizerSettings
from tests.jobmaster.job_simulation import Simulation
from tests.optimizer.interpreter import RaisedError, Tables, run_plan
from tests.optimizer.random_plans import plans, tables
from tests.optimizer.test_random_plans import same

SETTINGS = st.builds(
    OptimizerSettings,
    parallelism=st.sampled_from([2, 4, 6]),
    execution_mode=st.sampled_from([ExecutionMode.BATCH, ExecutionMode.BATCH, *ExecutionMode]),
    managed_bytes_per_slot=st.sampled_from([13 << 15, 16 << 20]),
    adaptive_bytes_per_subtask=st.sampled_from([0, 0, 1000, 1 << 20]),
)
#: the plain interpreter knows how these spread rows
KNOWN = {"FORWARD", "GLOBAL", "BROADCAST", "REBALANCE", "HASH"}


def without_hints(plan: Plan) -> Plan:
    nodes = [
        msgspec.structs.replace(node, operator=msgspec.structs.replace(node.operator, hint=JoinHint.OPTIMIZER_CHOOSES))
        if isinstance(node.operator, Join)
        else node
        for node in plan.nodes
    ]
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


@hypothesis.settings(max_examples=120, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@hypothesis.given(plans(), tables(), SETTINGS, st.integers(1, 8), st.randoms(use_true_random=False))
def test_decisions_never_change_what_a_job_returns(
    plan: Plan, data: Tables, settings: OptimizerSettings, slots: int, random
) -> None:
    plan = without_hints(plan)
    try:
        expected = run_plan(plan, data)
    except RaisedError:
        hypothesis.reject()
    try:
        optimized = optimize(plan, settings)
    except PlanError:  # a mode that would make the job wait for itself
        hypothesis.reject()
    submitted = generate_job_graph(optimized, JobId("a" * 32), "job")
    kinds = {data_set.partitioner.kind for vertex in submitted.vertices for data_set in vertex.outputs}
    hypothesis.assume(kinds <= KNOWN and len(submitted.vertices) > 2)
    widest = max(vertex.parallelism for vertex in submitted.vertices)
    scales: dict[object, int] = {}

    def size_of(data_set, rows):
        scale = scales.setdefault(data_set, random.choice([1, 50, 10_000, 10_000_000]))
        return [scale * count for count in rows]

    job = Simulation(submitted, data, max(slots, widest), size_of, settings.pages_per_slot)
    try:
        actual = job.run()
    except RaisedError:
        hypothesis.reject()
    for decision in job.decisions:
        hypothesis.event(decision.kind)
    assert same(rewrite(plan), expected, actual), [decision.text for decision in job.decisions]
    assert replay(submitted, job.decisions) == job.graph.job_graph
