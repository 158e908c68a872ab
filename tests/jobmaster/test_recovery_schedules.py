"""Random leaders, losses and journals without their end: the job ends, and no task has read a mixture of attempts.

SEEDS=10000 pytest -n 2 tests/jobmaster/test_recovery_schedules.py -k every_seed       five minutes of a processor
"""

from __future__ import annotations

import asyncio
import os
import random
from unittest import mock

import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.said_operators import JoinHint, JoinType
from engine.ids import JobId
from engine.jobmaster.job_event import CancelAsked
from engine.memory.page_budget import PageBudget
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph
from tests.jobmaster.recovery_world import SimWorld
from tests.jobmaster.virtual_time import run
from tests.optimizer.plan_building import Builder, schema
from tests.property.matrix import IS_TORTURE

#: so much virtual time is a job that hangs
LIMIT_S = 100_000.0
#: of ten seeds each
BLOCKS = range(200 if IS_TORTURE else 2)
#: seeds of leaders, losses and late journals at once
SEEDS = int(os.environ.get("SEEDS", "1000"))


def random_job(chance):
    """Return 2 to 6 vertices, each reading one or two of those before it."""
    count = chance.randint(2, 6)
    edges = []
    for consumer in range(1, count):
        producers = chance.sample(range(consumer), min(consumer, chance.randint(1, 2)))
        edges += [
            Edge(producer, consumer, chance.choice(["HASH", "REBALANCE", "BROADCAST"]), kind, input_index)
            for input_index, producer in enumerate(producers)
            for kind in [BLOCKING if len(producers) > 1 else chance.choice([BLOCKING, BLOCKING, PIPELINED])]
        ]
    return job_graph([chance.randint(1, 3) for _ in range(count)], edges)


def adaptive_job(chance):
    """Return joins whose plan changes with the sizes of what they read."""
    builder = Builder()
    node = builder.python(builder.source(schema(k="int64", v="int64"), rows=1e6, path="first"), "filter")
    for step in range(chance.randint(1, 2)):
        side = builder.source(schema(k="int64", **{f"w{step}": "int64"}), rows=1e6, path=f"side {step}")
        if chance.random() < 0.7:
            side = builder.python(side, "filter")
        how = chance.choice([JoinType.INNER, JoinType.LEFT, JoinType.FULL])
        node = builder.join(*chance.sample([node, side], 2), on="k", how=how)
    builder.sink(node)
    settings = OptimizerSettings(
        parallelism=chance.choice([2, 4]),
        execution_mode=ExecutionMode.BATCH,
        page_budget=PageBudget(16 << 20),
        adaptive_bytes_per_subtask=chance.choice([0, 1000]),
        skew_bytes=100,
    )
    return generate_job_graph(optimize(builder.plan(), settings), JobId("a" * 32), "job")


def skewed_job(chance):
    """Return a join of which some subtasks share what one of them would read, and what follows it."""
    builder = Builder()
    sides = [
        builder.python(builder.source(schema(k="int64", **{value: "int64"}), rows=1e6, path=value), "map")
        for value in ("v", "w")
    ]
    how = chance.choice([JoinType.INNER, JoinType.LEFT, JoinType.RIGHT, JoinType.ANTI])
    joined = builder.join(*sides, on="k", how=how, hint=JoinHint.REPARTITION_HASH_SECOND)
    if chance.random() < 0.5:
        joined = builder.aggregate(joined, ("v",), ("count_all", None))
    builder.sink(joined)
    settings = OptimizerSettings(
        parallelism=chance.choice([2, 3, 4]),
        execution_mode=ExecutionMode.BATCH,
        page_budget=PageBudget(16 << 20),
        adaptive_bytes_per_subtask=0,
        skew_bytes=100,
    )
    return generate_job_graph(optimize(builder.plan(), settings), JobId("a" * 32), "job")


async def ends(world, graph, chance, kills, trouble, cut, cancel_at_s=None):
    """Run the job to its end under leaders that are killed ``kills`` times."""
    await world.lead(graph)
    is_cancelled = cancel_at_s is None
    outcome = world.job_master.outcome
    deadline = asyncio.get_running_loop().time() + LIMIT_S
    while not outcome.done():
        assert asyncio.get_running_loop().time() < deadline, "the job hangs"
        await asyncio.wait({outcome}, timeout=chance.expovariate(0.5))
        if outcome.done():
            break
        if not is_cancelled and asyncio.get_running_loop().time() > cancel_at_s:
            # Who asked and got no answer asks again.
            is_cancelled = await world.cancel(graph.job_id)
        if trouble and chance.random() < 0.4:
            trouble -= 1
            await chance.choice(world.troubles)()
        elif kills and chance.random() < 0.6:
            kills -= 1
            events = cut(await world.depose())
            if trouble and chance.random() < 0.3:
                trouble -= 1
                await chance.choice(world.troubles)()
            await asyncio.sleep(chance.expovariate(1.0))
            await world.lead(graph, events)
            outcome = world.job_master.outcome
    assert world.faults == []


def scenario(seed, graph_of, kills=0, trouble=0, cut=None, cancel_at_s=None, statuses=("FINISHED",), **settings):
    chance = random.Random(seed)

    async def main(loop):
        world = SimWorld(loop, chance, [chance.randint(2, 4) for _ in range(3)], **settings)
        try:
            await ends(world, graph_of(chance), chance, kills, trouble, cut or (lambda events: events), cancel_at_s)
            world.check(statuses)
        finally:
            await world.close()
        return world

    # The same seed gives the same ids, and with them the same run.
    with mock.patch("engine.ids.os.urandom", chance.randbytes):
        return run(main)


def random_cut(seed):
    chance = random.Random(seed)
    return lambda events: events[: chance.randint(0, len(events))]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("delay_s", [0.0, 0.5], ids=["at once", "late"])
def test_nothing_is_done_twice_while_only_leaders_go(block, delay_s):
    for seed in range(block * 10, block * 10 + 10):
        world = scenario(seed, random_job, kills=5, journal_delay_s=delay_s)
        assert {len(attempts) for attempts in world.attempts().values()} == {1}, seed


@pytest.mark.parametrize("block", BLOCKS)
def test_losses_beside_the_leaders_cost_work_and_no_result(block):
    for seed in range(block * 10, block * 10 + 10):
        scenario(seed, random_job, kills=4, trouble=4, journal_delay_s=0.5, failure_rate=0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_every_seed_of_leaders_and_losses_ends_with_one_result(first):
    for seed in range(first, first + 100):
        scenario(seed, random_job, kills=4, trouble=4, journal_delay_s=0.5, failure_rate=0.05)


@pytest.mark.parametrize("block", BLOCKS)
def test_any_beginning_of_the_journal_will_do(block):
    for seed in range(block * 10, block * 10 + 10):
        scenario(seed, random_job, kills=4, trouble=2, cut=random_cut(seed), failure_rate=0.03)


@pytest.mark.parametrize("block", BLOCKS)
def test_decisions_taken_at_run_time_stay_when_leaders_go(block):
    for seed in range(block * 10, block * 10 + 10):
        scenario(seed, adaptive_job, kills=4, trouble=seed % 3, journal_delay_s=0.3)
        scenario(seed, adaptive_job, kills=4, trouble=seed % 2, cut=random_cut(seed))
        scenario(seed, skewed_job, kills=3, trouble=3, failure_rate=0.03, journal_delay_s=0.3)


@pytest.mark.parametrize("block", BLOCKS)
def test_messages_may_be_late_and_task_executors_silent(block):
    for seed in range(block * 10, block * 10 + 10):
        settings = {"journal_delay_s": 0.5, "delay_s": [0.1, 1.0, 4.0][seed % 3]}
        world = scenario(seed, random_job, kills=8, **settings)
        # Where messages take as long as a time-out, those who live count as lost, too.
        assert seed % 3 == 2 or {len(attempts) for attempts in world.attempts().values()} == {1}, seed
        scenario(seed, random_job, kills=4, trouble=4, failure_rate=0.03, **settings)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_job_that_was_cancelled_stays_so_whoever_leads(block):
    for seed in range(block * 10, block * 10 + 10):
        chance = random.Random(seed)
        world = scenario(
            seed,
            random_job,
            kills=5,
            trouble=1,
            cancel_at_s=chance.uniform(0, 8),
            statuses=("CANCELED", "FINISHED"),
            journal_delay_s=0.5,
            delay_s=0.2,
        )
        asked = [event for event in world.journal.events if isinstance(event, CancelAsked)]
        status = world.job_master.outcome.result().status
        assert status == ("CANCELED" if asked else "FINISHED")


@pytest.mark.parametrize("block", BLOCKS)
def test_what_cannot_be_mended_fails_the_job_whoever_leads(block):
    for seed in range(block * 10, block * 10 + 10):
        world = scenario(
            seed,
            random_job,
            kills=5,
            trouble=1,
            statuses=("FAILED", "FINISHED"),
            journal_delay_s=0.5,
            failure_rate=0.05,
            bug_rate=0.1,
            delay_s=0.2 * (seed % 2),
        )
        outcome = world.job_master.outcome.result()
        assert outcome.status == "FINISHED" or outcome.failure.message == "the user's own"


def test_who_has_answered_hears_heartbeats_while_others_are_waited_for():
    async def main(loop):
        world = SimWorld(loop, random.Random(0), [2, 2])
        world.pause = lambda: asyncio.sleep(6.0)
        graph = job_graph([4, 4], [Edge(0, 1)])
        await world.lead(graph)
        while len(world.submitted) < 4:
            await asyncio.sleep(0.01)
        events = await world.depose()
        slow, other = world.executors
        other.patience_s = 8.0
        world.rpc.silent[slow.address] = loop.time() + 18.0
        await world.lead(graph, events)
        await world.job_master.outcome
        world.check()
        assert {len(attempts) for attempts in world.attempts().values()} == {1}
        await world.close()

    run(main)
