"""What each operator of a chain spilled and held, and the bound that is checked by it."""

import random
from types import SimpleNamespace

import pyarrow as pa
import pytest

from engine import Environment, JoinHint, col
from engine.client.job_result import JobResult, SubtaskResult, VertexResult
from engine.graph.deployment import OperatorCounters, operator_totals
from engine.operators.spill_accounts import SpillAccounts


def test_each_operator_has_its_own_bytes_and_memory_also_of_what_outlives_the_task():
    head, middle, tail = (SimpleNamespace(name=name) for name in ("join", "project", "sort"))
    spaces = [SimpleNamespace(spilled_bytes=size, raw_bytes=3 * size) for size in (10, 20, 300)]
    accounts = SpillAccounts()
    accounts.of(tail).add(spaces[2])
    accounts.of(head).add(spaces[0])
    accounts.of(head).add(spaces[1])
    pool, other = (SimpleNamespace(page_limit=8, page_size=100, pages_peak=peak) for peak in (5, 2))
    accounts.of(tail).add_pool(pool)
    accounts.of(head).add_pool(other)
    for _ in range(2):
        assert [accounts.find(each).spilled_bytes for each in (head, tail)] == [30, 300]
        assert [accounts.find(each).raw_bytes for each in (head, tail)] == [90, 900]
        assert [accounts.find(each).managed_bytes_peak for each in (head, tail)] == [200, 500]
        assert [accounts.find(each).managed_bytes for each in (head, tail)] == [800, 800]
        accounts.hand_over(pool, spaces[2])
        spaces[2].spilled_bytes, spaces[2].raw_bytes, pool.pages_peak = 900, 2000, 9
    assert accounts.find(middle) is None


def test_subtasks_of_a_vertex_are_added_and_those_that_never_began_are_left_out():
    first = (OperatorCounters("join", 1, 2), OperatorCounters("sort", 3, 4))
    second = (OperatorCounters("join", 10, 20), OperatorCounters("sort", 30, 40))
    assert operator_totals([first, (), second]) == (OperatorCounters("join", 11, 22), OperatorCounters("sort", 33, 44))
    assert operator_totals([(), ()]) == ()


def test_the_report_tells_operators_and_results_apart():
    def line(spilled, *operators, stored=0):
        subtask = SubtaskResult(0, 1, 1, 50, 50, spilled, operators=operators, stored_bytes=stored)
        return JobResult("0", "job", "FINISHED", 1, (VertexResult("v", (subtask,)),)).report[0]

    join, sort = OperatorCounters("join", 50 * 10**6, 30 * 10**6), OperatorCounters("sort", 9 * 10**6, 0)
    assert line(0, sort).endswith("0 B spilled")
    assert line(30 * 10**6, join, sort).endswith("30 MB spilled (30 MB of 50 MB by join)")
    assert line(32 * 10**6, join).endswith("spilled (30 MB of 50 MB by join, 2 MB of sorted results)")
    assert line(7 * 10**6).endswith("7 MB spilled")
    assert line(7 * 10**6, stored=3 * 10**6).endswith("7 MB spilled, 3 MB of results on disk")


@pytest.mark.parametrize("parallelism", [1, 2])
def test_sorts_in_a_chain_of_operators_spill_less_than_twice_what_each_took(tmp_path, parallelism):
    rng = random.Random(parallelism)
    count = 40_000
    facts = pa.table(
        {"k": [rng.randrange(count) for _ in range(count)], "text": [rng.randbytes(100) for _ in range(count)]}
    )
    others = pa.table({"j": list(range(count)), "more": [rng.randbytes(60) for _ in range(count)]})
    with Environment(
        config={
            "parallelism.default": parallelism,
            "taskmanager.memory.managed.size": "400kb",
            "io.tmp.dirs": str(tmp_path),
        }
    ) as env:
        joined = env.from_arrow(facts).join(
            env.from_arrow(others), left_on="k", right_on="j", hint=JoinHint.REPARTITION_SORT_MERGE
        )
        joined.select("text", "more", col("k") + 1).sort("text").write_parquet(tmp_path / "out")
        result = env.execute()
    spilled = [(vertex, each) for vertex in result.vertices for each in vertex.operators if each.spilled_bytes]
    assert len(spilled) == 2, result.report
    for vertex, each in spilled:
        assert each.bytes_in > 6 * 10**6
        assert each.spilled_bytes <= 2 * each.bytes_in
        assert vertex.spilled_bytes >= each.spilled_bytes
        assert f" by {each.name}" in str(result)
