"""Whatever happens to a job, its JobState gives instructions that keep their promises, and the job ends."""

from __future__ import annotations

import ast
import random
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.gateways.job_queue import SlotsShort
from engine.gateways.messages import CancelJob, TaskExecutorLost, UpdateTaskStates
from engine.graph.deployment import FailureInfo, TaskReport
from engine.ids import ExecutionAttemptId, JobVertexId
from engine.jobmaster import job_input as heard
from engine.jobmaster import job_instruction as told
from engine.jobmaster.job_ending import EndPhase
from engine.jobmaster.job_event import CancelAsked, FailingBegun, Led, Prepared, Scheduled, TaskEnded
from engine.jobmaster.job_instruction import Timer
from engine.jobmaster.job_status import JobStatus
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.jobmaster.state_world import FINAL, RETRYABLE, StateWorld
from tests.jobmaster.test_recovery_schedules import random_job
from tests.property.matrix import IS_TORTURE
from tests.tidy.imports import ROOT

#: parts of the room that do what is decided; all others are pure
_DOING = {
    "job_calls",
    "job_commit",
    "job_journal",
    "journal_files",
    "job_master",
    "output_steps",
    "reattachment",
    "task_executor_watch",
}
_OUTSIDE = {"asyncio", "threading", "time", "socket", "concurrent", "datetime", "os"}


class Chances:
    """What may happen to a job next, drawn one after the other."""

    def __init__(self, world, chance):
        self.world, self.chance = world, chance

    def step(self):
        world, chance = self.world, self.chance
        choices = [self.lose, self.strange, self.short]
        choices += [self.answer] * (4 * bool(world.pending)) + [self.written] * (4 * bool(world.batches))
        choices += [self.offer] * (4 * bool(world.requests)) + [self.end_task] * (6 * bool(world.running))
        choices += [self.deliver] * (2 * bool(world.due)) + [self.fire] * (2 * bool(world.timers))
        choices += [self.new_leader] if chance.random() < 0.3 else []
        choices += [self.cancel] if chance.random() < 0.05 else []
        chance.choice(choices)()

    def answer(self):
        """Have an instruction come out, well or badly, or be refused as one of a leader that leads no more."""
        world = self.world
        instruction = world.pending.pop(self.chance.randrange(len(world.pending)))
        luck = self.chance.random()
        failed = world.failure(instruction) if luck < 0.05 else None
        if 0.05 <= luck < 0.08 and not isinstance(instruction, told.CountSlots | told.GiveBack | told.RemoveStaging):
            world.is_deposed = True
            phase = EndPhase.NOT_BEGUN
            if not isinstance(instruction, told.PrepareOutputs | told.Reattach):
                phase = world.state._ending.phase
            world.hear(heard.Deposed(phase, "another one leads"))
            self.new_leader()
        else:
            world.hear(failed or world.answer(instruction))

    def written(self):
        world = self.world
        batch, count = world.batches.pop(0)
        world.durable = max(world.durable, count)
        world.hear(heard.JournalWritten(batch))

    def offer(self):
        world, chance = self.world, self.chance
        world.offer(chance.choice(world.executors), chance.choice(sorted(world.requests)))

    def end_task(self):
        """Have a task go on, end, or never have been heard of."""
        world, chance = self.world, self.chance
        attempt = chance.choice(list(world.running))
        luck = chance.random()
        if luck < 0.2:
            happened = UpdateTaskStates((TaskReport(attempt, chance.choice(["INITIALIZING", "RUNNING"])),))
        elif luck < 0.3:
            happened = world.stop(attempt, "FAILED", failure=RETRYABLE)
        elif luck < 0.31:
            happened = world.stop(attempt, "FAILED", failure=FINAL)
        elif luck < 0.34:
            happened = world.stop(attempt, "CANCELED")
        elif luck < 0.37 and attempt in world.deployed:
            happened = world.refuse(attempt)
        elif luck < 0.4:
            happened = heard.TaskUnanswered(attempt, "no answer")
        elif luck < 0.43:
            happened = heard.TaskSentLate(attempt)
        else:
            happened = world.stop(attempt, "CANCELED") if attempt in world.cancelled else world.end_of_task(attempt)
        if happened is not None:
            world.hear(happened)

    def deliver(self):
        self.world.hear(self.world.due.pop(0))

    def lose(self):
        if self.chance.random() < 0.2:
            lost = self.world.lose(self.chance.randrange(3))
            kind = self.chance.choice([TaskExecutorLost, heard.TaskExecutorSilent])
            self.world.hear(kind(lost, "it is gone"))

    def strange(self):
        """Hear of what is not, or not any more."""
        nobody = ExecutionAttemptId.create(JobVertexId(self.chance.randrange(8)), self.chance.randrange(4), 7)
        old = self.chance.choice([nobody, *self.world.ran])
        kinds = [heard.TaskSentLate(nobody), heard.TaskUnanswered(nobody, "no answer")]
        kinds.append(UpdateTaskStates((TaskReport(nobody, "FINISHED"),)))
        kinds.append(heard.StepDone(self.chance.choice(list(EndPhase))))
        kinds += [heard.TimerFired(timer) for timer in Timer if timer not in self.world.timers]
        if old not in self.world.running:
            kinds.append(UpdateTaskStates((self.world.ran.get(old) or TaskReport(nobody, "RUNNING"),)))
        happened = self.chance.choice(kinds)
        if not (isinstance(happened, heard.StepDone) and happened.phase is self.world.state._ending.phase):
            self.world.hear(happened)

    def short(self):
        self.world.hear(SlotsShort(self.world.graph.job_id, is_short=self.chance.random() < 0.1))

    def fire(self):
        self.world.hear(heard.TimerFired(self.chance.choice(sorted(self.world.timers))))

    def cancel(self):
        self.world.hear(CancelJob(self.world.graph.job_id))

    def new_leader(self):
        self.world.depose(self.chance.randint(0, len(self.world.written) - self.world.durable))


def brought_to_its_end(world):
    """Have all go well from now on."""
    for _ in range(500):
        if world.is_over or world.end is not None:
            return
        world.hear(SlotsShort(world.graph.job_id, is_short=False))
        while world.pending and world.end is None:
            world.hear(world.answer(world.pending.pop(0)))
        while world.due and world.end is None:
            world.hear(world.due.pop(0))
        write(world)
        for timer in sorted(world.timers):
            if timer is Timer.PAUSE:
                world.hear(heard.TimerFired(timer))
        for request_id in sorted(world.requests):
            while request_id in world.requests and world.offer(world.executors[0], request_id):
                pass
        for attempt in list(world.running):
            if attempt in world.running:
                ended = world.stop(attempt, "CANCELED") if attempt in world.cancelled else world.end_of_task(attempt)
                if ended is not None and world.end is None:
                    world.hear(ended)
    states = [(vertex.name, vertex.current.state.value) for vertex in world.state.facts.graph]
    raise AssertionError(f"the job does not end: {world.state.status}, {states}")


@settings(max_examples=5000 if IS_TORTURE else 150)
@given(seed=st.integers(0, 1 << 32))
@example(seed=18488)  # after a fail-over, what was lost is found before an error of the user's own
def test_whatever_happens_a_job_keeps_its_promises_and_ends(seed):
    chance = random.Random(seed)  # drawn by hypothesis one by one, a failing run would take minutes to be shrunk
    with mock.patch("engine.ids.os.urandom", random.Random(seed).randbytes):
        world = StateWorld(random_job(random.Random(seed)))
        chances = Chances(world, chance)
        for _ in range(chance.randint(0, 120)):
            if world.end is not None:
                break
            chances.step()
        brought_to_its_end(world)
    if world.end is None or world.end.status is JobStatus.SUSPENDED:  # a leader that was deposed when it had recorded
        assert world.recorded is not None
        return
    assert world.end.status is world.recorded
    kinds = {type(event) for event in world.written}
    assert (world.end.status is JobStatus.CANCELED) == (CancelAsked in kinds and world.decision is None)
    assert world.end.status is not JobStatus.FAILED or FailingBegun in kinds


def begun(graph=None):
    world = StateWorld(graph or job_graph([2, 1], [Edge(0, 1, result_type=BLOCKING)]))
    world.hear(world.answer(world.pending.pop()))
    return world


def with_slots(world, count):
    for _ in range(count):
        world.offer(world.executors[0], min(world.requests))


def write(world):
    while world.batches:
        batch, world.durable = world.batches.pop(0)
        world.hear(heard.JournalWritten(batch))


def test_a_job_goes_its_way_step_by_step():
    world = begun()
    assert world.state.status is JobStatus.RUNNING and sorted(world.requests.values()) == [1, 1]
    with_slots(world, 2)
    assert not world.deployed, "nothing is sent before the journal has it"
    write(world)
    assert len(world.deployed) == 2
    for attempt in list(world.running):
        world.hear(world.end_of_task(attempt))
    write(world)
    (attempt,) = world.running
    world.hear(world.end_of_task(attempt))
    steps = []
    while world.pending:
        steps.append(type(world.pending[0]))
        world.hear(world.answer(world.pending.pop()))
    assert steps == [told.Commit, told.Record, told.GiveBack]
    assert world.end.status is JobStatus.FINISHED
    kinds = [type(event) for event in world.written]
    assert kinds[:3] == [Led, Prepared, Scheduled] and kinds.count(TaskEnded) == 3


def test_a_slot_is_kept_for_a_moment_for_what_reads_the_results_of_others():
    world = begun(job_graph([2, 2], [Edge(0, 1, result_type=BLOCKING)]))
    with_slots(world, 2)
    write(world)
    first, second = list(world.running)
    world.hear(world.end_of_task(first))
    assert len(world.slots) == 2 and world.timers == {Timer.IDLE: "runs"}
    world.hear(world.end_of_task(second))
    write(world)
    assert len(world.running) == 2 and not world.requests and not world.timers


def test_a_slot_that_is_kept_is_given_back_when_nothing_has_come_for_it():
    world = begun(job_graph([2, 2], [Edge(0, 1, result_type=BLOCKING)]))
    with_slots(world, 2)
    write(world)
    first, second = list(world.running)
    world.hear(world.end_of_task(first))
    world.hear(heard.TimerFired(Timer.IDLE))
    assert len(world.slots) == 1 and not world.timers
    world.hear(world.end_of_task(second))
    write(world)
    assert len(world.running) == 1 and list(world.requests.values()) == [1]


def test_a_slot_is_given_back_at_once_where_the_job_waits_for_more_slots_or_needs_none():
    world = begun(job_graph([2, 1, 2, 2], [Edge(0, 1, result_type=BLOCKING), Edge(2, 3)]))
    two = next(number for number, count in world.requests.items() if count == 2)
    for number in world.requests.keys() - {two}:
        world.offer(world.executors[0], number)
    write(world)
    world.hear(world.end_of_task(next(iter(world.running))))
    assert len(world.slots) == 1 and Timer.IDLE not in world.timers
    alone = begun(job_graph([2]))
    with_slots(alone, 2)
    write(alone)
    alone.hear(alone.end_of_task(next(iter(alone.running))))
    assert len(alone.slots) == 1 and not alone.timers


def test_tasks_that_go_to_one_task_executor_are_one_message_and_their_reports_are_acted_on_together():
    world = begun(job_graph([2, 2], [Edge(0, 1)]))
    with_slots(world, 1)
    world.offer(world.executors[0], min(world.requests))
    (batch, world.durable) = world.batches.pop(0)
    (deploy,) = world.hear(heard.JournalWritten(batch))
    subtasks = [(each.attempt.vertex.index, each.attempt.subtask_index) for each in deploy.request.descriptors]
    assert subtasks == [(0, 0), (0, 1), (1, 0), (1, 1)], "producers first"
    reports = [report for attempt in sorted(world.running) for report in world.end_of_task(attempt).reports]
    instructions = world.hear(UpdateTaskStates(tuple(reports)))
    assert [type(each) for each in instructions] == [told.WriteDown] * 4 + [told.Commit]


def test_a_job_that_is_cancelled_records_that_before_it_gives_anything_back():
    world = begun()
    with_slots(world, 2)
    write(world)
    world.hear(CancelJob(world.graph.job_id))
    assert isinstance(world.written[-1], CancelAsked) and world.cancelled == world.deployed
    for attempt in list(world.running):
        world.hear(world.stop(attempt, "CANCELED"))
    steps = []
    while world.pending:
        steps.append(type(world.pending[0]))
        world.hear(world.answer(world.pending.pop()))
    assert steps == [told.Record, told.GiveBack, told.RemoveStaging]
    assert world.end.status is JobStatus.CANCELED


def test_a_leader_whose_step_is_refused_does_nothing_more():
    world = begun(job_graph([1]))
    with_slots(world, 1)
    write(world)
    world.hear(world.end_of_task(next(iter(world.running))))
    (step,) = world.pending
    assert isinstance(step, told.Commit)
    assert world.hear(heard.Deposed(EndPhase.PUBLISHING, "another one leads")) == []
    assert world.hear(heard.StepDone(EndPhase.PUBLISHING)) == []
    assert world.hear(CancelJob(world.graph.job_id)) == []
    world.hear(heard.Suspend())
    assert world.end.status is JobStatus.SUSPENDED


def test_a_task_that_is_refused_for_memory_ends_the_job_and_none_of_its_batch_is_sent():
    world = begun(job_graph([2, 2], [Edge(0, 1)], weights={0: 1.0}))
    for pages in (100, 1):
        world.offer(world.executors[0], min(world.requests), pages)
    write(world)
    assert not world.deployed and world.state.status is JobStatus.FAILING
    failure = world.state.facts.failures.root
    assert failure.type_name == "MemoryBudgetError" and failure.task == "vertex 0 (2/2)"
    assert "a slot has 1 pages of managed memory" in failure.message
    (step,) = world.pending
    world.hear(world.answer(step))
    assert world.recorded is JobStatus.FAILED


def test_after_a_fail_over_an_error_of_the_users_own_ends_the_job_before_anything_is_sent():
    world = begun(job_graph([3, 1], [Edge(0, 1, result_type=BLOCKING)]))
    with_slots(world, 3)
    write(world)
    lost, failed, running = list(world.running)
    world.hear(world.end_of_task(lost))
    report = world.stop(failed, "FAILED", failure=FINAL).reports[0]
    world.executors[0] = world.executors[1]  # the TaskExecutor of all three is gone as well
    world.hear(heard.Suspend())
    world.lead([*world.written, TaskEnded(report, {"FAILED": 1})])
    while world.pending and not isinstance(world.pending[0], told.Record):
        world.hear(world.answer(world.pending.pop(0)))
    (step,) = world.pending
    assert step.status is JobStatus.FAILED and step.failure == FINAL
    assert not world.deployed and not world.cancelled & {running}


def test_the_error_that_ends_a_job_is_told_although_a_task_manager_was_lost_before_it():
    world = begun(job_graph([2]))
    world.offer(world.executors[0], min(world.requests))
    world.offer(world.executors[1], min(world.requests))
    write(world)
    lost, other = list(world.running)
    world.hear(TaskExecutorLost(world.lose(0), "it is gone"))
    assert world.state.status is JobStatus.RESTARTING and lost not in world.running
    world.hear(world.stop(other, "FAILED", failure=FINAL))
    assert world.state.status is JobStatus.FAILING
    (step,) = world.pending
    assert isinstance(step, told.Record) and step.failure == FINAL


def test_a_restart_is_told_with_its_cause_also_where_what_that_tore_down_was_reported_first():
    world = begun(job_graph([1, 1], [Edge(0, 1)]))
    with_slots(world, 1)
    write(world)
    producer, consumer = sorted(world.running)
    world.hear(UpdateTaskStates((TaskReport(producer, "RUNNING"),)))
    (consumer,) = world.running.keys() - {producer}
    torn = FailureInfo("ProducerFailedError", "the producer failed: ResourceError: a disk", retryable=True)
    world.hear(world.stop(consumer, "FAILED", failure=torn))
    assert world.state.status is JobStatus.RESTARTING and not world.state.history.restarts
    world.hear(world.stop(producer, "FAILED", failure=RETRYABLE))
    (restart,) = world.state.history.restarts
    assert (restart.number, restart.cause) == (1, "ResourceError: a disk") and 900 < restart.pause_ms < 1000
    assert [past.failure for past in world.state.facts.failures.latest] == [RETRYABLE, torn]
    world.hear(heard.TimerFired(Timer.PAUSE))
    assert world.state.status is JobStatus.RUNNING and len(world.state.history.restarts) == 1


def test_the_pause_goes_no_further_than_to_the_moment_when_the_job_is_given_up():
    world = StateWorld(job_graph([1]), give_up_s=0.5)
    world.hear(world.answer(world.pending.pop()))
    for _ in range(20):
        if world.state.status is not JobStatus.RUNNING:
            break
        with_slots(world, 1)
        write(world)
        (task,) = world.running
        world.hear(world.stop(task, "FAILED", failure=RETRYABLE))
        pause_s = world.seconds.get(Timer.PAUSE, 0)
        assert pause_s == 1.0 or pause_s <= 0.5
        if world.state.status is JobStatus.RESTARTING:
            world.hear(heard.TimerFired(Timer.PAUSE))
    assert world.state.status is JobStatus.FAILING and "given up" in world.state.facts.failures.root.message


def test_the_time_out_of_slots_does_not_run_while_tasks_of_the_job_do():
    world = begun(job_graph([1, 2, 2], [Edge(1, 2)]))
    world.offer(world.executors[0], next(each for each, count in world.requests.items() if count == 1))
    write(world)
    (task,) = world.running
    world.hear(SlotsShort(world.graph.job_id, is_short=True))
    assert Timer.SLOTS not in world.timers, "it gives its slot back"
    world.hear(UpdateTaskStates((TaskReport(task, "RUNNING"),)))
    assert Timer.SLOTS not in world.timers
    world.hear(world.end_of_task(task))
    assert Timer.SLOTS in world.timers, "nothing runs any more, and the rest waits"


def test_a_request_for_slots_of_which_none_comes_is_repeated_and_withdrawn_once_it_is_served():
    world = begun(job_graph([1]))
    (request_id,) = world.requests
    repeated = world.hear(heard.TimerFired(Timer.COLLECTING))
    requests = [each.request for each in repeated if isinstance(each, told.TellResourceManager)]
    assert [each.request_id for each in requests] == [request_id] and Timer.COLLECTING in world.timers
    with mock.patch.object(world, "do", wraps=world.do) as done:
        world.offer(world.executors[0], request_id)
    assert Timer.COLLECTING not in world.timers
    told_then = [call.args[0] for call in done.call_args_list if isinstance(call.args[0], told.TellResourceManager)]
    assert [each.request.request_id for each in told_then] == [request_id], "it may know the second one still"


def test_slots_that_the_cluster_does_not_have_are_waited_for_by_a_timer_and_then_counted():
    world = begun()
    world.hear(SlotsShort(world.graph.job_id, is_short=True))
    assert Timer.SLOTS in world.timers
    world.hear(SlotsShort(world.graph.job_id, is_short=False))
    assert Timer.SLOTS not in world.timers
    world.hear(SlotsShort(world.graph.job_id, is_short=True))
    world.hear(heard.TimerFired(Timer.SLOTS))
    (count,) = world.pending
    world.hear(world.answer(count))
    assert world.state.status is JobStatus.FAILING
    assert world.state.facts.failures.root.type_name == "SlotTimeoutError"


@pytest.mark.parametrize("path", sorted((ROOT / "engine" / "jobmaster").glob("*.py")), ids=lambda path: path.stem)
def test_what_decides_imports_no_loop_clock_thread_or_socket(path):
    if path.stem in _DOING:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.split(".")[0] for name in names} & _OUTSIDE, names
        assert not {name.rpartition(".")[2] for name in names if name.startswith("engine.jobmaster")} & _DOING - {
            "job_commit",
            "job_journal",
        }, names
