"""A job that takes more than it may fails once, with the limit, the value and the option in its error."""

from __future__ import annotations

import msgspec
import pytest

from engine.config.loader import configuration_from_texts
from engine.config.options import all_options
from engine.config.sizes import parse_size
from engine.gateways.messages import ReportProgress, TaskProgress
from engine.graph.deployment import StagedFile, Staging, TaskCounters
from engine.graph.job_graph import USER_KEY
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.jobmaster import job_input as heard
from engine.jobmaster import job_instruction as told
from engine.jobmaster.job_instruction import Timer
from engine.jobmaster.job_limits import LIMITS, limits_of
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.user_use import UserUse
from tests.jobmaster import state_world
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.jobmaster.state_world import StateWorld

GRAPH = job_graph([2, 2], [Edge(0, 1, result_type=BLOCKING)], sinks={1: SinkSpec("arrow", "/results")})


def limited(monkeypatch, graph=GRAPH, **limits):
    """Return a world whose job has limits, by the last words of their keys."""
    found = {f"job.limit.{key.replace('_', '-')}": value for key, value in limits.items()}
    settings = msgspec.structs.replace(state_world.SETTINGS, limits=lambda _: found)
    monkeypatch.setattr(state_world, "SETTINGS", settings)
    world = StateWorld(graph)
    world.pending.clear()
    world.hear(heard.OutputsPrepared({index: Staging("/staging", "/results") for index in range(2)}, {}))
    return world


def run_tasks(world):
    """Have all requested slots come, and their tasks be sent and run."""
    while world.requests:
        world.offer(world.executors[0], next(iter(world.requests)))
    while world.batches:
        batch, count = world.batches.pop(0)
        world.durable = max(world.durable, count)
        world.hear(heard.JournalWritten(batch))
    for attempt in list(world.running):
        world.hear(state_world.UpdateTaskStates((state_world.TaskReport(attempt, "INITIALIZING"),)))
        world.hear(state_world.UpdateTaskStates((state_world.TaskReport(attempt, "RUNNING"),)))


def progress(world, **counters):
    tasks = tuple(TaskProgress(attempt, TaskCounters(**counters)) for attempt in world.running)
    for _ in range(30):  # 10 ms each
        world.hear(ReportProgress(tasks))


def failure(world):
    """Return the message of the failure that ends the job."""
    assert world.state.status is JobStatus.FAILING
    failures = world.state.facts.failures
    assert failures.root.type_name == "LimitExceededError" and not failures.root.retryable
    return failures.root.message


@pytest.mark.parametrize(
    ("limit", "counters", "text"),
    [
        ({"disk": 1024}, {"spilled_bytes": 312, "stored_bytes": 312}, "has written 1.2kb to disks; its limit is 1kb"),
        ({"memory": 1024}, {"managed_bytes_peak": 612}, "its tasks use 1.2kb of memory; the limit is 1kb"),
        ({"memory": 1024}, {"worker_bytes_peak": 612}, "its tasks use 1.2kb of memory; the limit is 1kb"),
        ({"disk": 1_048_576}, {"stored_bytes": 524_300}, "has written 1,048,600 B to disks; its limit is 1,048,576 B"),
    ],
)
def test_what_tasks_report_is_summed_and_counts_beyond_the_limit(monkeypatch, limit, counters, text):
    world = limited(monkeypatch, **limit)
    run_tasks(world)
    assert len(world.running) == 2
    progress(world, **{key: value - 100 for key, value in counters.items()})
    assert world.state.status is JobStatus.RUNNING
    progress(world, **counters)
    (key,) = limit
    assert failure(world).endswith(f"{text} (job.limit.{key})")
    assert len(world.cancelled) == 2


def test_the_wall_time_counts_from_the_first_leader_and_ends_the_job_also_while_it_waits(monkeypatch):
    world = limited(monkeypatch, wall_time=10_000)
    assert world.seconds[Timer.WALL_TIME] == pytest.approx(9.99)
    world.now = world.now.__class__(world.now.monotonic_s + 6.0, world.now.wall_ms + 6_000)
    world.lead(world.written)
    assert 3.5 < world.seconds[Timer.WALL_TIME] < 4.0, "what the leader before has used up"
    while world.pending:
        world.hear(world.answer(world.pending.pop()))
    assert world.state.status is JobStatus.RUNNING
    world.now = world.now.__class__(world.now.monotonic_s + 4.0, world.now.wall_ms + 4_000)
    world.timers[Timer.WALL_TIME] = "fired"
    world.hear(heard.TimerFired(Timer.WALL_TIME))
    assert failure(world).endswith("s; its limit is 10 s (job.limit.wall-time)")


def test_stages_wait_for_each_other_within_the_limit_of_slots(monkeypatch):
    graph = job_graph([2, 2, 1], [Edge(0, 2, result_type=BLOCKING), Edge(1, 2, result_type=BLOCKING)])
    assert sum(limited(monkeypatch, graph).requests.values()) == 4
    world = limited(monkeypatch, graph, slots=3)
    assert sum(world.requests.values()) == 2 or max(world.requests.values()) == 1
    most = 0
    for _ in range(10):
        run_tasks(world)
        most = max(most, len(world.state.facts.pool.slots))
        for attempt in list(world.running):
            world.hear(world.end_of_task(attempt))
    assert world.state.facts.graph.is_finished and 0 < most <= 3


def test_a_stage_that_needs_more_slots_than_the_job_may_have_fails_at_once(monkeypatch):
    world = limited(monkeypatch, job_graph([3, 3], [Edge(0, 1)]), slots=2)
    assert failure(world) == "a stage of the job needs 3 slots at one time; its limit is 2 (job.limit.slots)"
    assert not world.requests


@pytest.mark.parametrize(("format_name", "is_limited"), [("arrow", True), ("handed", True), ("parquet", False)])
def test_a_result_for_the_client_is_measured_before_it_is_published(monkeypatch, format_name, is_limited):
    graph = job_graph([1], sinks={0: SinkSpec(format_name, "/results")})
    world = limited(monkeypatch, graph, result_size=10_000)
    run_tasks(world)
    (attempt,) = world.running
    file = StagedFile(0, 0, "part-0", 10, 10_001)
    instructions = world.hear(world.stop(attempt, "FINISHED", staged_files=(file,)))
    assert any(isinstance(each, told.Commit) for each in instructions) is not is_limited
    if is_limited:
        message = world.state.facts.failures.root.message
        assert "result has 10,001 B; its limit is 10,000 B (job.limit.result-size)" in message


def of_ada(monkeypatch, key, limit, *starts_ms):
    """Return worlds of jobs of one user, which share a limit."""
    use, worlds = UserUse(), []
    for start_ms in starts_ms:
        settings = msgspec.structs.replace(state_world.SETTINGS, limits=lambda _: {key: limit}, user_use=use)
        monkeypatch.setattr(state_world, "SETTINGS", settings)
        own = msgspec.structs.replace(GRAPH, job_id=JobId.random(), configuration={USER_KEY: "ada"})
        world = StateWorld(own)
        world.pending.clear()
        world.state.facts.start_ms = start_ms
        world.hear(heard.OutputsPrepared({index: Staging("/staging", "/results") for index in range(2)}, {}))
        run_tasks(world)
        worlds.append(world)
    return worlds


def test_a_limit_is_told_as_it_was_written(monkeypatch):
    world = limited(monkeypatch, disk=parse_size("100mb"))
    run_tasks(world)
    progress(world, stored_bytes=parse_size("60mb"))
    assert failure(world) == "the job has written 120mb to disks; its limit is 100mb (job.limit.disk)"


def test_the_jobs_of_a_user_share_a_limit_and_the_one_that_began_last_ends(monkeypatch):
    first, last = of_ada(monkeypatch, "user.limit.disk", 1000, 5, 9)
    progress(last, spilled_bytes=100, stored_bytes=100)
    progress(first, spilled_bytes=350)
    assert {each.state.status for each in (first, last)} == {JobStatus.RUNNING}, (
        "1,100 bytes, which the last one ends for"
    )
    progress(last, spilled_bytes=100, stored_bytes=100)
    assert first.state.status is JobStatus.RUNNING
    assert failure(last) == "ada's jobs have written 1.1kb to disks; the limit is 1000b (user.limit.disk)"


def test_what_has_ended_counts_no_more_and_a_job_that_takes_nothing_is_not_blamed(monkeypatch):
    first, idle, last = of_ada(monkeypatch, "user.limit.memory", 1000, 1, 9, 5)
    progress(first, managed_bytes_peak=400)
    progress(idle)
    last.hear(heard.Suspend())
    progress(first, managed_bytes_peak=450)
    assert first.state.status is JobStatus.RUNNING
    progress(first, managed_bytes_peak=600)
    assert idle.state.status is JobStatus.RUNNING
    assert failure(first) == "ada's jobs use 1.2kb of memory; the limit is 1000b (user.limit.memory)"


def test_a_job_may_ask_for_less_and_never_for_more():
    cluster = configuration_from_texts({"job.limit.disk": "1mb", "job.limit.slots": "4", "user.limit.slots": "3"})

    def limits(**own):
        graph = msgspec.structs.replace(GRAPH, configuration={key.replace("__", "."): own[key] for key in own})
        return limits_of(cluster, graph)

    assert limits() == {"job.limit.disk": 1 << 20, "job.limit.slots": 4}
    assert limits(job__limit__disk="1kb")["job.limit.disk"] == 1024
    assert limits(job__limit__disk="1gb")["job.limit.disk"] == 1 << 20
    assert limits(job__limit__disk="0")["job.limit.disk"] == 1 << 20, "none is not less"
    assert limits(job__limit__memory="2mb")["job.limit.memory"] == 2 << 20
    assert limits(job__user="ada")["user.limit.slots"] == 3
    assert limits(job__user="ada", user__limit__slots="1")["user.limit.slots"] == 3, "it is the operator's"


def test_the_table_has_a_row_for_every_option_of_a_limit_of_jobs():
    declared = {option.key for option in all_options() if option.key.startswith("job.limit.")}
    measured = {row.option.key for row in LIMITS}
    assert declared == {key for key in measured if key.startswith("job.")}
    of_users = {option.key for option in all_options() if option.key.startswith("user.limit.")}
    assert of_users - measured == {"user.limit.running-jobs"}, "which wait"
    assert USER_KEY in {option.key for option in all_options()}
