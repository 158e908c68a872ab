"""JobMaster: the endpoint of one job. It hears and does; ``JobState`` decides.

    message, timer, answer ─► JobState.handle ─► instructions ─► carried out in order ─┐
                                  ▲                                                     │
                                  └──────────────── the input that answers one ◄────────┘

What takes time runs beside the handlers and answers with an input of its own. Inputs that come while instructions are
carried out wait for the last of them: so an instruction always finds the world as it was decided for.

File operations run in threads, everything else on the loop. Source: Flink's JobMaster.
Held by: tests/jobmaster/test_takeover.py
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVarTuple

import msgspec

from engine.clock import Moment, StoppedClock
from engine.closing import close_all_async
from engine.errors import FencedError
from engine.fault_points import reach
from engine.formats.held_states import HeldStates
from engine.gateways.job_details import JobDetails, JobExceptions, RequestJobDetails, RequestJobExceptions
from engine.gateways.job_master import JobMasterGateway, job_master_name
from engine.gateways.job_queue import FIRST_TURN, JobTurn, SlotsShort
from engine.gateways.messages import (
    CancelJob,
    JobOutcome,
    JobOverview,
    JobProgress,
    OfferSlots,
    ReleasePartitions,
    ReportProgress,
    RequestJobOutcome,
    RequestJobProgress,
    RequestJobStatus,
    SlotOfferReply,
    TaskExecutorLost,
    UpdateTaskStates,
)
from engine.gateways.task_executors import TaskExecutorDraining
from engine.graph.job_graph import JobGraph
from engine.ids import ResourceId
from engine.insight.cluster_events import CLUSTER_EVENTS, ClusterEvent
from engine.jobmaster import job_input, job_instruction
from engine.jobmaster.job_calls import JobCalls
from engine.jobmaster.job_commit import JobCommit, JobStorage
from engine.jobmaster.job_ending import EndPhase
from engine.jobmaster.job_event import Restarted, TaskEnded
from engine.jobmaster.job_facts import JobFacts, RecoveredJob
from engine.jobmaster.job_input import JobInput
from engine.jobmaster.job_instruction import Instruction, Timer
from engine.jobmaster.job_journal import Journal, NoJournal
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.job_report import JobReport
from engine.jobmaster.job_state import JobState
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.output_steps import OutputSteps
from engine.jobmaster.reattachment import Reattachment
from engine.jobmaster.task_executor_watch import TaskExecutorWatch
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.fencing import LeaderFence
from engine.rpc.leadership import Leadership
from engine.rpc.request import ACKNOWLEDGE, Acknowledge

Ts = TypeVarTuple("Ts")


class JobMaster(RpcEndpoint):
    """One job. ``start`` once, then it lives by its messages; ``outcome`` is set at the end.

    Args:
        leadership: under which the job runs here.
        storage: where decision and end are kept.
        journal: what happens is written to.
        recovered: of a job that another leader began; ``journal`` has its events already.
        turn: place of the job among those that wait for slots.
    """

    protocol = JobMasterGateway

    def __init__(
        self,
        job_graph: JobGraph,
        leadership: Leadership,
        settings: JobMasterSettings,
        storage: JobStorage,
        journal: Journal | None = None,
        recovered: RecoveredJob | None = None,
        turn: JobTurn = FIRST_TURN,
    ) -> None:
        rpc, epoch, clock = leadership.rpc, leadership.epoch, leadership.clock
        super().__init__(job_master_name(job_graph.job_id), LeaderFence(epoch), leadership.on_fatal)
        self._leadership = leadership
        self._settings = settings
        self._address = rpc.address_of(self.address)
        self._recovered = recovered
        self._journal = journal or NoJournal()
        stopped = StoppedClock(Moment.of(clock))
        events = () if recovered is None else recovered.events
        facts = JobFacts.rebuild(job_graph, lambda: settings.restart_strategy(job_graph), stopped, events)
        self.state = JobState(facts, stopped, epoch, self._address, settings, turn)
        commit = JobCommit(facts.graph.job_graph, epoch, leadership.is_leading, storage, facts.staging)
        states = HeldStates(facts.graph.job_graph)
        self._outputs = OutputSteps(job_graph.job_id, commit, states, self._journal, leadership.blocking_work)
        self._report = JobReport(facts, self.state.history, self.state.memory, clock, self._outputs.traffic)
        self._calls = JobCalls(rpc, epoch, settings.resource_manager_address)
        self._task_executors = TaskExecutorWatch(
            rpc,
            self._address,
            epoch,
            settings.heartbeat_interval_s,
            settings.heartbeat_timeout_s,
            clock,
            self.spawn,
            self._on_silence,
        )
        self._reattachment: Reattachment | None = None
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        #: unhandled inputs
        self._inputs: deque[JobInput] = deque()
        self.outcome: asyncio.Future[JobOutcome] = asyncio.get_running_loop().create_future()

    def start(self) -> None:
        """Begin to run the job, or go on with it."""
        recovered = self._recovered
        decision = None if recovered is None else recovered.decision
        self._hear(job_input.Begin(recovered is not None, decision))
        self.spawn(self._task_executors.run(), "heartbeats")

    async def stop(self) -> None:
        """Stop answering; a job that has not ended is SUSPENDED here. Every step runs, the first error is raised."""
        await close_all_async([super().stop, self._journal.close, self._suspend, self._outputs.let_go])

    def take_apart(self) -> None:
        """Cut after ``stop`` what refers to each other: it is gone at once, without the collector."""
        self.state.facts.graph.take_apart()
        self._handlers.clear()
        del self._task_executors

    def _suspend(self) -> None:
        for instruction in self.state.handle(job_input.Suspend(), Moment.of(self._leadership.clock)):
            self._carry_out(instruction)

    # ---- what is heard ----

    def _hear(self, happened: JobInput) -> list[Instruction]:
        """Handle an input and carry out the instructions that follow; return them."""
        if self._is_stopped:
            return []
        self._inputs.append(happened)
        if len(self._inputs) > 1:  # of those that are being carried out
            return []
        followed: list[list[Instruction]] = []
        try:
            while self._inputs:
                followed.append(self.state.handle(self._inputs[0], Moment.of(self._leadership.clock)))
                for instruction in followed[-1]:
                    self._carry_out(instruction)
                self._inputs.popleft()
        finally:
            self._inputs.clear()
        return followed[0]

    def _hear_later(self, happened: JobInput) -> None:
        """Handle an input from a callback of the loop: an error is one of the component, as in a handler."""
        try:
            self._hear(happened)
        except Exception as error:
            self._fatal(error)

    def _on_silence(self, resource_id: ResourceId, reason: str) -> None:
        self._hear(job_input.TaskExecutorSilent(resource_id, reason))

    def _begin(self, name: str, call: Callable[[*Ts], Coroutine[Any, Any, JobInput | None]], *args: *Ts) -> None:
        """Do what takes time beside everything else, and hear how it came out."""
        self.spawn(self._hear_of(call, *args), name)

    def _step(self, name: str, call: Callable[[*Ts], Coroutine[Any, Any, JobInput]], *args: *Ts) -> None:
        """Take a step of the outputs: at once where it waits for nothing, else beside everything."""
        if not self._outputs.is_at_once:
            self._begin(name, call, *args)
            return
        try:
            call(*args).send(None)
        except StopIteration as done:
            self._hear(done.value)
        else:
            raise AssertionError(f"{name} waits")

    async def _hear_of(self, call: Callable[[*Ts], Coroutine[Any, Any, JobInput | None]], *args: *Ts) -> None:
        happened = await call(*args)
        if happened is not None:
            self._hear(happened)

    # ---- what is done ----

    def _carry_out(self, instruction: Instruction) -> None:  # one line for each instruction
        do = job_instruction
        match instruction:
            case do.WriteDown():
                if isinstance(instruction.event, TaskEnded):
                    reach("job.reported")
                elif isinstance(instruction.event, Restarted):
                    CLUSTER_EVENTS.note(ClusterEvent.JOB_RESTARTED)
                self._journal.append(instruction.event)
            case do.AwaitJournal():
                self._await_journal(instruction.batch)
            case do.Deploy():
                self.spawn(self._deploy(instruction), f"deploy to {instruction.address}")
            case do.Cancel():
                self._begin(f"cancel {instruction.name}", self._calls.cancel, instruction)
            case do.Tell(request=ReleasePartitions(partitions=partitions)):
                self.spawn(self._calls.release(instruction.address, partitions), "release results")
            case do.Tell():
                self.spawn(self._calls.tell(instruction.address, instruction.request), "tell")
            case do.TellResourceManager():
                self.spawn(self._calls.tell_resource_manager(instruction.request), "tell ResourceManager")
            case do.CountSlots():
                self._begin("slot time-out", self._calls.count_slots)
            case do.AcceptSlots():
                # The TaskExecutor hears that its slots are taken before it is asked to use them.
                asyncio.get_running_loop().call_soon(self._hear_later, job_input.SlotsTaken())
            case do.Reattach():
                self._begin("reattach", self._reattach, instruction)
            case do.Watch():
                self._task_executors.watch(instruction.resource_id, instruction.address)
            case do.LookAfter():
                self._begin(f"suspicion of {instruction.resource_id}", self._look_after, instruction.resource_id)
            case do.Forget():
                self._forget(instruction.resource_id)
            case do.SetTimer() | do.StopTimer():
                self._set_timer(instruction)
            case _:
                self._carry_out_of_outputs(instruction)

    def _carry_out_of_outputs(self, instruction: Instruction) -> None:
        do = job_instruction
        match instruction:
            case do.PrepareOutputs():
                self._step("prepare", self._outputs.prepare, instruction.known)
            case do.ReviseOutputs():
                self._outputs.commit.revise(instruction.job_graph)
            case do.Commit() | do.PublishAgain():
                self._step("publish", self._outputs.publish, instruction)
            case do.Record():
                end = self._report.job_end(instruction.status, instruction.failure, self._leadership.epoch)
                self._step("record", self._outputs.record, end)
            case do.GiveBack():
                self._begin("give back", self._calls.give_back, self.job_graph.job_id, instruction.addresses)
            case do.RemoveStaging():
                self._begin("remove staging", self._outputs.remove_staging)
            case do.TellEnd():
                self._report.stop_counting()
                self.outcome.set_result(self._report.outcome(instruction.status, instruction.failure))
            case _:
                raise AssertionError(f"no component handles {instruction}")

    async def _deploy(self, tasks: job_instruction.Deploy) -> None:
        for happened in await self._calls.deploy(tasks, self.state.has_to_run):
            self._hear(happened)

    def _await_journal(self, batch: int) -> None:
        if self._journal.is_durable:
            self._hear(job_input.JournalWritten(batch))
        else:
            self._begin("slots are written down", self._written, batch)

    async def _written(self, batch: int) -> JobInput:
        await self._journal.flush()
        reach("job.scheduled")
        return job_input.JournalWritten(batch)

    async def _reattach(self, instruction: job_instruction.Reattach) -> JobInput:
        reach("job.reattaching")
        leadership = self._leadership
        self._reattachment = Reattachment(
            leadership.rpc,
            leadership.epoch,
            self._address,
            self._settings.reattach_timeout_s,
            leadership.clock,
            self.job_graph.job_id,
            instruction.expected,
            self._task_executors.watch,
        )
        try:
            answers = await self._reattachment.run()
        except FencedError as error:
            return job_input.Deposed(EndPhase.NOT_BEGUN, str(error))
        reach("job.reattached")
        return job_input.Reattached(answers)

    async def _look_after(self, resource_id: ResourceId) -> JobInput | None:
        has_answered = await self._task_executors.look_after(resource_id)
        return job_input.TaskExecutorAnswered(resource_id) if has_answered else None

    def _forget(self, resource_id: ResourceId) -> None:
        self._task_executors.forget(resource_id)
        if self._reattachment is not None:
            self._reattachment.lose(resource_id)

    def _set_timer(self, instruction: job_instruction.SetTimer | job_instruction.StopTimer) -> None:
        timer = instruction.timer
        running = self._timers.pop(timer, None)
        if running is not None:
            running.cancel()
        if isinstance(instruction, job_instruction.SetTimer):
            loop, fired = asyncio.get_running_loop(), job_input.TimerFired(timer)
            self._timers[timer] = loop.call_later(instruction.seconds, self._hear_later, fired)

    # ---- messages: what happens ----

    async def offer_slots(self, request: OfferSlots) -> SlotOfferReply:
        """Take the slots that waiting regions asked for."""
        accepted = [each for each in self._hear(request) if isinstance(each, job_instruction.AcceptSlots)]
        return SlotOfferReply(accepted[0].allocation_ids if accepted else ())

    async def update_task_states(self, request: UpdateTaskStates) -> Acknowledge:
        """Record state changes of attempts."""
        failed = sum(report.state == "FAILED" for report in request.reports)
        CLUSTER_EVENTS.note(ClusterEvent.ATTEMPT_FAILED, failed)
        self._hear(request)
        return ACKNOWLEDGE

    async def report_progress(self, request: ReportProgress) -> Acknowledge:
        """Record counters of running attempts."""
        self._hear(request)
        return ACKNOWLEDGE

    async def task_executor_lost(self, request: TaskExecutorLost) -> Acknowledge:
        """Treat the attempts on a TaskExecutor as failed."""
        self._hear(request)
        return ACKNOWLEDGE

    async def task_executor_draining(self, request: TaskExecutorDraining) -> Acknowledge:
        """Begin no more tasks on a TaskExecutor."""
        self._hear(request)
        return ACKNOWLEDGE

    async def slots_short(self, request: SlotsShort) -> Acknowledge:
        """Count the time in which the cluster could never serve what the job waits for."""
        self._hear(request)
        return ACKNOWLEDGE

    async def cancel_job(self, request: CancelJob) -> Acknowledge:
        """Cancel all tasks; a job that ends already goes on to its end."""
        if self._hear(request):
            await self._journal.flush()
        return ACKNOWLEDGE

    # ---- messages: what the job tells ----

    @property
    def job_graph(self) -> JobGraph:
        """The job as it runs now."""
        return self.state.facts.graph.job_graph

    @property
    def status(self) -> JobStatus:
        """The job's status."""
        return self.state.status

    @property
    def overview(self) -> JobOverview:
        """The job in a list."""
        return self._report.overview

    @property
    def details(self) -> JobDetails:
        """Return the details of the job: vertices, attempts, edges, times."""
        return self._report.details

    async def request_job_status(self, request: RequestJobStatus) -> JobOverview:
        """Return the job's state."""
        return self._report.overview

    async def request_job_progress(self, request: RequestJobProgress) -> JobProgress:
        """Return live numbers."""
        return msgspec.structs.replace(self._report.progress, trouble=self._outputs.trouble)

    async def request_job_details(self, request: RequestJobDetails) -> JobDetails:
        """Return everything about the job."""
        return self._report.details

    async def request_job_exceptions(self, request: RequestJobExceptions) -> JobExceptions:
        """Return the failures so far."""
        return self._report.exceptions

    async def request_job_outcome(self, request: RequestJobOutcome) -> JobOutcome:
        """Return the outcome of the job, once it has ended."""
        return await asyncio.shield(self.outcome)
