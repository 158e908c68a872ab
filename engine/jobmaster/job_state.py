"""JobState: decides what a JobMaster does. What happens comes in, instructions go out; nothing is done here.

    handle(input, now) ─► [instruction, ...]

    Begin ─► outputs are prepared ─► RUNNING ─► schedule ─► deploy ─► reports ... ─► all FINISHED ─► ending ─► FINISHED
      │                                ├── a failure that may be mended ─► RESTARTING ─► RUNNING   (``region_failover``)
      │                                ├── any other ─► FAILING ─┐
      │                                └── cancel ─► CANCELLING ─┴─► all tasks ended ─► ending ─► FAILED | CANCELED
      └── of another leader ─► RECONCILING ─► RUNNING | FAILING | CANCELLING                        (``expectations``)

When a BLOCKING result is finished, its real size may change what has not begun (``RunTimePlanner``). Every change of an
attempt leads to ``_advance``: it starts regions whose inputs are finished, deploys what their producers feed, asks for
missing slots (``JobScheduling``), and sees when the job is at its end (``JobEnding``).

Invariants: what is decided or learned is a WriteDown before its effect is an instruction; a task is deployed when the
journal that names its slot is durable; after a Deposed or an end nothing is deployed any more.

Pure: no clock, thread, socket or loop. Source: Flink's JobMaster and DefaultScheduler.

Held by: tests/jobmaster/test_recovery_schedules.py
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engine.clock import Moment, StoppedClock
from engine.errors import JobStalledError, PlanError
from engine.gateways.failure_info import cancelled_elsewhere, failure_info, lost_task_executor
from engine.gateways.job_queue import FIRST_TURN, JobTurn, SlotsShort
from engine.gateways.messages import (
    AttachedJob,
    CancelJob,
    OfferSlots,
    ReportProgress,
    SuspectTaskExecutor,
    TaskExecutorLost,
    UpdateTaskStates,
)
from engine.gateways.task_executors import TaskExecutorDraining
from engine.graph.deployment import FailureInfo, TaskReport
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId
from engine.jobmaster import job_input as heard
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.expectations import Expectation, Losses, expectations, losses, to_run_again
from engine.jobmaster.job_ending import EndPhase, JobEnding
from engine.jobmaster.job_event import (
    CancelAsked,
    FailingBegun,
    JobEvent,
    Led,
    Prepared,
)
from engine.jobmaster.job_facts import JobFacts, cancel
from engine.jobmaster.job_holders import JobHolders
from engine.jobmaster.job_input import JobInput
from engine.jobmaster.job_instruction import (
    AcceptSlots,
    CountSlots,
    Instruction,
    PrepareOutputs,
    Reattach,
    TellEnd,
    TellResourceManager,
    Timer,
    WriteDown,
)
from engine.jobmaster.job_limits import JobLimits
from engine.jobmaster.job_links import JobLinks
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.job_mending import JobMending
from engine.jobmaster.job_scheduling import JobScheduling, refused
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.job_tasks import JobTasks
from engine.jobmaster.job_timers import JobTimers
from engine.jobmaster.memory_history import MemoryHistory
from engine.jobmaster.repeated_failure import RepeatedFailure
from engine.jobmaster.stall_watch import StallWatch
from engine.jobmaster.status_history import StatusHistory

_log = logging.getLogger(__name__)

#: states in which a failure may be recovered from, and slots are of use
_GOING_ON = (JobStatus.RUNNING, JobStatus.RESTARTING)
#: states of a job that has begun, and is not ending
_NOT_ENDING = (JobStatus.CREATED, JobStatus.RECONCILING, *_GOING_ON)


class JobState:
    """One job under one leader.

    Args:
        facts: what is known of the job; its clock is ``clock``.
        clock: is set to the moment of each input.
        epoch, address: of the JobMaster.
        turn: place of the job among those that wait for slots.
    """

    def __init__(
        self,
        facts: JobFacts,
        clock: StoppedClock,
        epoch: int,
        address: str,
        settings: JobMasterSettings,
        turn: JobTurn = FIRST_TURN,
    ) -> None:
        job_graph = facts.graph.job_graph
        self.facts = facts
        self.history = StatusHistory(job_graph.job_id, job_graph.name, facts.start_ms, clock)
        self._clock = clock
        self._epoch = epoch
        self._out: list[Instruction] = []
        self._timers = JobTimers(self._out)
        self._limits = JobLimits(facts, self._timers, settings.limits(job_graph), settings.user_use)
        self._scheduling = JobScheduling(
            facts, self._out, self._timers, address, turn, settings.slot_request_timeout_s, self._limits.slots_max
        )
        self._ending = JobEnding(self._out)
        self._holders = JobHolders(facts, self._out)
        repeated = RepeatedFailure(settings.give_up_s(job_graph))
        stall = StallWatch(facts.graph, settings.stalled_timeout_s(job_graph))
        self._links = JobLinks(facts)
        self.memory = MemoryHistory()
        self._tasks = JobTasks(facts, self._out, stall, repeated, self._links, self.memory)
        self._mending = JobMending(
            facts, self._out, self._timers, self.history, self._tasks, self._scheduling, repeated, self._links
        )
        #: state expected of TaskExecutors that have been asked, and reports that came meanwhile
        self._expected: Mapping[ResourceId, Expectation] = {}
        self._early_reports: list[TaskReport] = []

    @property
    def status(self) -> JobStatus:
        """Return the status of the job."""
        return self.history.status

    def handle(self, happened: JobInput, now: Moment) -> list[Instruction]:
        """Decide what follows from what happened at a moment; return what to do, in its order."""
        self._clock.now = now
        self._decide(happened)
        instructions = self._out.copy()
        self._out.clear()
        return instructions

    def has_to_run(self, attempt: ExecutionAttemptId) -> bool:
        """Whether an attempt is the current one of its subtask and has not ended."""
        vertex = self.facts.graph.vertex_of(attempt)
        return vertex is not None and not vertex.current.state.is_terminal

    def _decide(self, happened: JobInput) -> None:  # one line for each input
        match happened:
            case heard.Begin():
                self._begin(happened)
            case heard.OutputsPrepared():
                self._outputs_prepared(happened)
            case heard.PrepareFailed():
                self._fail(happened.failure)
            case heard.Reattached():
                self._reattached(happened.answers)
            case OfferSlots():
                self._slots_offered(happened)
            case heard.SlotsTaken():
                self._advance()
            case SlotsShort():
                self._scheduling.is_short = happened.is_short
                self._scheduling.watch_time(is_running=self.status is JobStatus.RUNNING)
            case heard.SlotsCounted():
                self._slots_counted(happened)
            case heard.JournalWritten():
                self._scheduling.written(happened.batch)
                self._advance()
            case UpdateTaskStates():
                self._tasks_reported(happened.reports)
            case ReportProgress():
                stalled = self._tasks.progressed(happened)
                failure = self._limits.exceeded() if stalled is None else failure_info(JobStalledError(stalled))
                if failure is not None and self.status in _GOING_ON and not self._ending.has_begun:
                    self._fail(failure)
            case heard.TaskRefused() | heard.TaskSentLate() | heard.TaskUnanswered():
                self._task_sent(happened)
            case TaskExecutorLost():
                self._lose_task_executor(happened.resource_id, happened.reason)
            case TaskExecutorDraining():
                self.facts.pool.draining.add(happened.resource_id)
            case heard.TaskExecutorSilent():
                self._give_up_task_executor(happened.resource_id, happened.reason)
            case heard.TaskExecutorAnswered():
                self._links.answered(happened.resource_id)
            case heard.TimerFired():
                self._timer_fired(happened.timer)
            case CancelJob():
                self._cancel()
            case heard.PublishFailed() | heard.StepDone() | heard.Deposed():
                self._step_ended(happened)
            case heard.Suspend():
                self._suspend()

    # ---- the beginning ----

    def _begin(self, begin: heard.Begin) -> None:
        facts = self.facts
        self.history.enter(JobStatus.CREATED)
        self._limits.begin()
        self._write(Led(self._epoch, self._clock.wall_ms()))
        if begin.is_recovered:
            self._holders.recover()
            self.history.enter(JobStatus.RECONCILING)
        if begin.decision is not None:
            self.history.enter(JobStatus.RUNNING)
            self._ending.publish_again(begin.decision)
        elif facts.is_cancelling or facts.is_failing:
            self.history.enter(JobStatus.CANCELLING if facts.is_cancelling else JobStatus.FAILING)
            self._drop_tasks()
        else:
            self._out.append(PrepareOutputs(facts.staging))

    def _outputs_prepared(self, prepared: heard.OutputsPrepared) -> None:
        self.facts.held_states = prepared.held_states
        if self.facts.staging is None:
            self.facts.staging = prepared.staging
            self._write(Prepared(dict(prepared.staging)))
        if self.status is JobStatus.RECONCILING:
            self._expected = expectations(self.facts)
            self._out.append(Reattach(dict(self._expected)))
            return
        if self.status is JobStatus.CREATED:
            self.history.enter(JobStatus.RUNNING)
        self._advance()

    def _drop_tasks(self) -> None:
        """Think no more of what may run: TaskExecutors end it when the job is released."""
        cancel(list(self.facts.graph), self.facts)
        self._advance()

    def _reattached(self, answers: Mapping[ResourceId, AttachedJob]) -> None:
        """Go on with what TaskExecutors have of the job, and run what is missing."""
        if self.status is not JobStatus.RECONCILING:  # cancelled meanwhile
            return
        for resource_id, answer in answers.items():
            self.facts.pool.keep(resource_id, answer.slots, is_draining=answer.is_draining)
        self._holders.reattached(answers)
        self.history.enter(JobStatus.RUNNING)
        for report in (*(report for answer in answers.values() for report in answer.reports), *self._early_reports):
            self._tasks.learn(report)
        self._mend(losses(self.facts, self._expected, answers))
        measured = self.facts.planner.some_measured()
        if measured is not None:  # what followed from its size may have been cut off
            self._replan(measured)
        self._advance()

    def _mend(self, lost: Losses) -> None:
        """Run everything again that failed, was torn down or is missing."""
        facts = self.facts
        for resource_id in lost.task_executors:
            self._scheduling.close_requests(self._holders.lose(resource_id))
            facts.graph.lose_task_executor(resource_id, self._clock)
        for vertex in lost.attempts:
            self._tasks.learn(TaskReport(vertex.current.attempt, ExecutionState.FAILED.value))
        # All at once: nothing is sent before it is known whether, and what, is to run again.
        hurt = to_run_again(facts, lost)
        for failure in [failure for _, failure in hurt if failure not in facts.failures.unmended]:
            self._mending.note(failure)
        if not self._mending.begin_all(hurt):
            self._end_by_failure(facts.failures.root)

    # ---- slots ----

    def _slots_offered(self, offer: OfferSlots) -> None:
        """Take the slots that waiting regions asked for."""
        accepted: tuple[AllocationId, ...] = ()
        if self.status in _GOING_ON and not self._ending.has_begun:
            self._holders.is_back(offer.resource_id, offer.address)
            accepted = self._scheduling.take(offer)
            if accepted:
                self._holders.gave(offer.resource_id, offer.address)
        self._out.append(AcceptSlots(accepted))

    def _slots_counted(self, counted: heard.SlotsCounted) -> None:
        failure = self._scheduling.timed_out(counted.overview, is_running=self.status is JobStatus.RUNNING)
        if failure is not None:
            self._fail(failure)

    def _timer_fired(self, timer: Timer) -> None:
        if not self._timers.is_running(timer):
            return
        if timer is Timer.SLOTS:
            self._out.append(CountSlots())
        elif timer is Timer.COLLECTING:
            self._scheduling.ask_again()
            self._advance()
        elif timer is Timer.IDLE:
            self._scheduling.release_idle()
        else:
            self._timers.stop(timer)
            self._advance()

    # ---- tasks ----

    def _tasks_reported(self, reports: Iterable[TaskReport]) -> None:
        if self.history.status is JobStatus.RECONCILING:
            self._early_reports += reports
            return
        is_news = False
        for report in reports:
            is_news |= self._report(report)
        if is_news:  # what all of them make possible, together
            self._advance()

    def _report(self, report: TaskReport) -> bool:
        """Take in what a report says; return whether that is news. What it makes possible is the caller's to do."""
        vertex = self._tasks.learn(report)
        if vertex is None:
            return False
        match vertex.current.state:
            case ExecutionState.FAILED:
                avoided = self.facts.pool.avoided
                self._fail(self._tasks.why_failed(vertex, report), [vertex])
                if self.facts.pool.avoided != avoided:
                    self._leave_unreached()
            case ExecutionState.CANCELED if self.status in _GOING_ON and not self.facts.failover.covers(vertex):
                self._fail(cancelled_elsewhere(vertex.name), [vertex])
            case ExecutionState.FINISHED:
                self._replan(vertex)
        return True

    def _task_sent(self, answer: heard.TaskRefused | heard.TaskSentLate | heard.TaskUnanswered) -> None:
        """Act on what became of a task that was sent; it may have been lost meanwhile, with its TaskExecutor."""
        vertex = self.facts.graph.vertex_of(answer.attempt)
        if vertex is None:
            return
        slot, state = vertex.current.slot, vertex.current.state
        match answer:
            case heard.TaskRefused():
                self._scheduling.discard_slot(vertex)
                self._report(refused(vertex, answer.failure))
                self._advance()
            case heard.TaskSentLate() if state is ExecutionState.CANCELING:
                self._tasks.send_cancel(vertex)  # it may have been cancelled before it was there
            case heard.TaskUnanswered() if slot is not None and not state.is_terminal:
                self._give_up_task_executor(slot.resource_id, answer.reason)

    def _replan(self, finished: ExecutionVertex) -> None:
        """Apply the real size of a finished result to the plan of later parts."""
        if self.history.status is JobStatus.RUNNING and not self.facts.failover.restart_count:
            try:
                self._scheduling.withdraw_requests(self._tasks.replan(finished))
            except PlanError as error:
                self._fail(failure_info(error))

    # ---- failures ----

    def _fail(self, failure: FailureInfo, subtasks: Sequence[ExecutionVertex] = ()) -> None:
        """Run the regions of ``subtasks`` again, if that may help, or end the job."""
        self._mending.note(failure)
        if self.status not in _NOT_ENDING or self._ending.has_begun:
            return
        if not subtasks or not self._mending.begin(failure, subtasks):
            self._end_by_failure(failure)
        self._advance()

    def _end_by_failure(self, failure: FailureInfo) -> None:
        _log.info("job %s fails: %s: %s", self.facts.graph.job_graph.job_id, failure.type_name, failure.message)
        self._enter_failing()
        self._tasks.cancel(self.facts.graph)

    def _enter_failing(self) -> None:
        self.facts.failures.end_job()
        self.history.enter(JobStatus.FAILING)
        self._write(FailingBegun(self._clock.wall_ms()))

    def _run_again(self) -> None:
        """Begin new attempts of the regions that have ended when the pause is over, or end the job."""
        failure = self._mending.judge()
        if failure is not None:
            self._fail(failure)
        elif self._timers.is_running(Timer.PAUSE):
            self._schedule()  # what else there is
        else:
            self._mending.finish()
            self._advance()

    def _cancel(self) -> None:
        """Cancel all tasks; a job that ends already goes on to its end."""
        if self.status not in _NOT_ENDING or self._ending.has_begun:
            return
        _log.info("job %s is being cancelled", self.facts.graph.job_graph.job_id)
        is_reconciling = self.status is JobStatus.RECONCILING
        self.history.enter(JobStatus.CANCELLING)
        self._write(CancelAsked(self._clock.wall_ms()))
        if is_reconciling:
            self._drop_tasks()
        else:
            self._tasks.cancel(self.facts.graph)
            self._advance()

    # ---- TaskExecutors ----

    def _give_up_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        """Lose a TaskExecutor that could not be reached, and have the others know soon."""
        self._out.append(TellResourceManager(SuspectTaskExecutor(resource_id)))
        self._lose_task_executor(resource_id, reason)

    def _lose_task_executor(self, resource_id: ResourceId, reason: str) -> None:
        self._links.lost(resource_id)
        self._do_without(lost_task_executor(str(resource_id), reason), resource_id)

    def _leave_unreached(self) -> None:
        """Ask for slots anew, and do without TaskExecutors that others cannot read from: what is there is made anew."""
        self._scheduling.close_requests(self.facts.pool.outstanding)
        for resource_id, failure in self._links.to_leave():
            self._holders.leave(resource_id)
            self._do_without(failure, resource_id)

    def _do_without(self, failure: FailureInfo, resource_id: ResourceId) -> None:
        facts = self.facts
        self._scheduling.close_requests(self._holders.lose(resource_id))
        if self.status is JobStatus.RECONCILING:
            return
        hurt = facts.graph.lose_task_executor(resource_id, self._clock)
        for vertex in hurt:
            facts.scheduler.subtask_ended(vertex, facts.pool)
        if hurt:
            self._fail(msgspec.structs.replace(failure, task=hurt[0].name), hurt)
        self._advance()

    # ---- the way to the end ----

    def _advance(self) -> None:
        """Do what has become possible."""
        facts = self.facts
        if self._ending.has_begun:
            return
        status = self.history.status
        failure = self._limits.exceeded() if status in _GOING_ON else None
        if failure is not None:
            self._fail(failure)  # which comes here again
            return
        match status:
            case JobStatus.RUNNING if facts.graph.is_finished:
                self._ending.commit(file for vertex in facts.graph for file in vertex.current.staged_files)
            case JobStatus.RESTARTING if facts.failover.is_quiet:
                self._run_again()
            case JobStatus.RUNNING | JobStatus.RESTARTING:
                self._schedule()
            case JobStatus.FAILING | JobStatus.CANCELLING if facts.graph.is_quiet:
                self._end_unfinished()

    def _schedule(self) -> None:
        self._scheduling.start_regions()
        refusal = self._scheduling.deploy()
        if refusal is not None:
            self._report(refusal)
            self._advance()  # and go on from there
            return
        self._scheduling.ask_for_slots(is_running=self.history.status is JobStatus.RUNNING)

    def _end_unfinished(self) -> None:
        if self.status is JobStatus.CANCELLING:
            self._ending.record(JobStatus.CANCELED, None)
        else:
            self._ending.record(JobStatus.FAILED, self.facts.failures.root)

    def _step_ended(self, answer: heard.StepDone | heard.PublishFailed | heard.Deposed) -> None:
        """Take the next step to the end."""
        ending = self._ending
        match answer:
            case heard.PublishFailed():
                self._mending.note(answer.failure)
                self._enter_failing()
                self._end_unfinished()
            case heard.StepDone() if answer.phase is ending.phase:
                if answer.phase is EndPhase.PUBLISHING:
                    self.facts.published = answer.published
                elif answer.phase is EndPhase.RECORDING:
                    self._timers.stop_all()
                ending.step_done(answer.phase, self._holders.addresses)
                if ending.phase is EndPhase.OVER and not self.status.is_terminal:
                    self._end(ending.status, ending.failure)
            case heard.Deposed():
                _log.warning("job %s is left to another leader: %s", self.facts.graph.job_graph.job_id, answer.reason)
                ending.leave(answer.phase)

    def _suspend(self) -> None:
        """End here; the job goes on under the next leader."""
        self._timers.stop_all()
        if not self.status.is_terminal:
            self._end(JobStatus.SUSPENDED, None)

    def _end(self, status: JobStatus, failure: FailureInfo | None) -> None:
        self.history.enter(status)
        self._limits.end()
        self._out.append(TellEnd(status, failure))

    def _write(self, event: JobEvent) -> None:
        self._out.append(WriteDown(event))
