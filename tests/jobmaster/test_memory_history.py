"""The memory of a job over its time: the most of each interval, however long the job is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.gateways.memory_use import MemoryInUse, MemoryPoint
from engine.gateways.messages import ReportProgress, TaskProgress
from engine.graph.deployment import TaskCounters
from engine.ids import ResourceId
from engine.jobmaster.memory_history import MemoryHistory
from tests.jobmaster.test_job_limits import limited, run_tasks

ONE, TWO = ResourceId("1" * 32), ResourceId("2" * 32)


def test_a_point_has_the_most_of_each_task_manager_and_their_sum():
    history = MemoryHistory()
    assert history.points(0) == ()
    history.noted(MemoryInUse(ONE, 100, 10, 5, 1), 1000)
    history.noted(MemoryInUse(TWO, 50, 20, 0, 0), 1050)
    history.noted(MemoryInUse(ONE, 80, 30, 6, 0), 1100)
    history.spilled(7)
    assert history.points(1200) == (MemoryPoint(1200, 150, 50, 6, 1, 7, 100, 2),)
    history.spilled(3)
    history.noted(MemoryInUse(TWO, 70), 1250)
    assert history.points(1300)[1:] == (MemoryPoint(1300, 150, 50, 6, 0, 10, 80, 2),), "ONE is only late"
    history.noted(MemoryInUse(TWO, 60), 2500)
    assert history.points(2550)[2:] == (MemoryPoint(2550, 60, spilled_bytes=10, largest_bytes=60),), "ONE is silent"


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1 << 40), st.integers(0, 99)), max_size=2000))
def test_a_history_of_any_length_is_bounded_ordered_and_keeps_peak_and_spill(reports):
    history, now_ms = MemoryHistory(), 0
    for step_ms, size, spilled in reports:
        now_ms += step_ms
        history.spilled(spilled)
        history.noted(MemoryInUse(ONE, size, size // 2), now_ms)
    points = history.points(now_ms)
    assert len(points) <= 240
    times = [point.time_ms for point in points]
    assert times == sorted(times) and (not times or times[-1] == now_ms)
    assert max((point.resident_bytes for point in points), default=0) == max(
        (size for _, size, _ in reports), default=0
    )
    assert (points[-1].spilled_bytes if points else 0) == sum(spilled for _, _, spilled in reports)
    assert [point.spilled_bytes for point in points] == sorted(point.spilled_bytes for point in points)


def test_a_job_of_days_has_points_over_all_of_its_time():
    history = MemoryHistory()
    for second in range(200_000):
        history.noted(MemoryInUse(ONE, second), 1000 * second)
    points = history.points(200_000_000)
    assert 120 <= len(points) <= 240
    assert points[0].time_ms < 2_500_000


def test_what_tasks_report_is_in_the_details_also_what_earlier_attempts_have_spilled(monkeypatch):
    world = limited(monkeypatch)
    run_tasks(world)
    attempts = list(world.running)
    for spilled in (100, 250):
        tasks = tuple(TaskProgress(attempt, TaskCounters(spilled_bytes=spilled)) for attempt in attempts)
        world.hear(ReportProgress(tasks, MemoryInUse(ONE, 4096, 1024)))
    memory = world.state.memory.points(10**15)
    assert memory[-1].spilled_bytes == 250 * len(attempts)
    assert max(point.resident_bytes for point in memory) == 4096
