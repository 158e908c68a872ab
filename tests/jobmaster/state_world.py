"""What surrounds a ``JobState``: a journal, TaskExecutors and storage that answer when they are told to, or fail.

After every input it is checked that the instructions keep their promises (``do``, ``check``).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from engine.clock import Moment, StoppedClock
from engine.commit.decision import Decision
from engine.errors import ResourceError
from engine.gateways.failure_info import failure_info
from engine.gateways.messages import (
    AttachedJob,
    FreeSlot,
    OfferSlots,
    ReleasePartitions,
    RequestSlots,
    SlotOffer,
    SlotOverview,
    UpdateTaskStates,
    WithdrawSlotRequests,
)
from engine.graph.deployment import FailureInfo, TaskDeploymentDescriptor, TaskReport
from engine.ids import AllocationId, ExecutionAttemptId, ResourceId
from engine.jobmaster import job_input as heard
from engine.jobmaster import job_instruction as told
from engine.jobmaster.job_ending import EndPhase
from engine.jobmaster.job_event import CancelAsked, FailingBegun, Scheduled
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_master_settings import JobMasterSettings
from engine.jobmaster.job_state import JobState
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.restart_strategy import FixedDelayRestart

SETTINGS = JobMasterSettings(30.0, 1.0, 10.0, "resourcemanager")
STEPS = {
    told.Commit: EndPhase.PUBLISHING,
    told.PublishAgain: EndPhase.PUBLISHING,
    told.Record: EndPhase.RECORDING,
    told.GiveBack: EndPhase.GIVING_BACK,
    told.RemoveStaging: EndPhase.CLEANING,
}
RETRYABLE = FailureInfo("ResourceError", "a disk", retryable=True)
FINAL = FailureInfo("ValueError", "the user's own")


class Sent(NamedTuple):
    """A task where it was sent to."""

    attempt: ExecutionAttemptId
    address: str
    descriptor: TaskDeploymentDescriptor


class StateWorld:
    """One job, three TaskExecutors, leader after leader."""

    def __init__(self, graph, give_up_s=0.0):
        self.graph = graph
        self.settings = msgspec.structs.replace(SETTINGS, give_up_s=lambda _: give_up_s)
        #: that timers were set for
        self.seconds = {}
        self.epoch, self.now = 0, Moment(0.0, 0)
        self.executors = [ResourceId.random() for _ in range(3)]
        #: slots that the job holds and partitions, with their place; tasks that run; last reports of all that ran
        self.slots, self.partitions, self.running, self.ran = {}, {}, {}, {}
        self.cancelled = set()
        #: reports on their way
        self.due = []
        self.written, self.durable = [], 0
        #: as whoever leads next finds them
        self.decision, self.recorded = None, None
        self.lead(None)

    # ---- leaders ----

    def lead(self, events):
        self.epoch += 1
        clock = StoppedClock(self.now)
        facts = JobFacts(self.graph, FixedDelayRestart(1000, 1.0), clock)
        if events is not None:
            for event in events:
                facts.apply(event)  # every beginning of what was written fits
            facts = JobFacts.rebuild(self.graph, lambda: FixedDelayRestart(1000, 1.0), clock, events)
            self.written, self.durable = list(events), len(events)
        self.state = JobState(facts, clock, self.epoch, f"jobmaster-{self.epoch}", self.settings)
        self.pending, self.batches, self.requests = [], [], {}
        self.timers, self.deployed = {}, set()
        self.end, self.is_deposed = None, False
        self.hear(heard.Begin(events is not None, self.decision if events is not None else None))

    def depose(self, kept):
        """Have the leader go; ``kept`` more events than the durable ones are found by the next one."""
        has_ended = self.end is not None
        self.hear(heard.Suspend())
        assert self.end is not None and (has_ended or self.end.status is JobStatus.SUSPENDED)
        if self.recorded is None:
            self.lead(self.written[: self.durable + kept])

    @property
    def is_over(self):
        return self.recorded is not None and (self.end is not None or self.is_deposed)

    # ---- what is heard and told ----

    def hear(self, happened):
        self.now = Moment(self.now.monotonic_s + 0.01, self.now.wall_ms + 10)
        instructions = self.state.handle(happened, self.now)
        deployed = [each.request.descriptors for each in instructions if isinstance(each, told.Deploy)]
        sent = {task.attempt for tasks in deployed for task in tasks}
        ended = {each.attempt for each in instructions if isinstance(each, told.Cancel)}
        assert not sent & ended, "a task is sent and cancelled at once"
        for instruction in instructions:
            self.do(instruction)
        self.check()
        return instructions

    def do(self, instruction):
        match instruction:
            case told.WriteDown():
                self.written.append(instruction.event)
            case told.AwaitJournal():
                self.batches.append((instruction.batch, len(self.written)))
            case told.Deploy():
                for descriptor in instruction.request.descriptors:
                    self.deploy(Sent(descriptor.attempt, instruction.address, descriptor))
            case told.Cancel():
                self.cancelled.add(instruction.attempt)
            case told.Tell(request=FreeSlot(allocation_id=allocation_id)):
                self.free(allocation_id)
            case told.Tell(request=ReleasePartitions(partitions=partitions)):
                for partition in partitions:
                    self.partitions.pop(partition, None)
            case told.TellResourceManager(request=RequestSlots(request_id=request_id, count=count)):
                assert self.requests.get(request_id, count) == count, "another one under the same number"
                self.requests[request_id] = count
            case told.TellResourceManager(request=WithdrawSlotRequests(request_id=request_id)):
                self.requests.pop(request_id, None)
            case told.SetTimer():
                assert self.timers.get(instruction.timer) != "runs"
                self.timers[instruction.timer] = "runs"
                self.seconds[instruction.timer] = instruction.seconds
            case told.StopTimer():
                del self.timers[instruction.timer]
            case told.TellEnd():
                assert self.end is None, "a job ends once"
                self.end = instruction
            case told.GiveBack():
                assert self.recorded is not None, "nothing is given back before the end is kept"
                self.pending.append(instruction)
            case told.RemoveStaging():
                assert self.recorded is not None and self.recorded is not JobStatus.FINISHED
                self.pending.append(instruction)
            case told.Record():
                self.check_recorded(instruction.status)
                self.pending.append(instruction)
            case told.PrepareOutputs() | told.Reattach() | told.CountSlots() | told.Commit() | told.PublishAgain():
                self.pending.append(instruction)

    def deploy(self, task):
        self.check_deployed(task)
        self.deployed.add(task.attempt)
        if task.attempt not in self.ran:  # the same once more changes nothing there
            self.running[task.attempt] = task
            self.ran[task.attempt] = TaskReport(task.attempt, "DEPLOYING")

    def check_deployed(self, task):
        events = [
            index
            for index, event in enumerate(self.written)
            if isinstance(event, Scheduled) and task.attempt in [each.attempt for each in event.attempts]
        ]
        assert events and events[-1] < self.durable, "a task is sent before its slot is durable in the journal"
        assert task.attempt not in self.deployed, "a task is sent twice"
        assert not self.is_deposed and self.state.status in (JobStatus.RUNNING, JobStatus.RESTARTING)
        slot = self.vertex(task.attempt).current.slot
        assert task.address == slot.address and task.descriptor.allocation_id == slot.allocation_id
        same = [
            each
            for each in self.running.values()
            if each.attempt.vertex == task.attempt.vertex
            and each.descriptor.allocation_id == slot.allocation_id
            and self.is_current(each.attempt)
        ]
        assert not same, "a slot runs one subtask of a vertex"

    def check_recorded(self, status):
        graph = self.state.facts.graph
        assert graph.is_quiet or self.decision is not None, "nothing runs when the end is kept"
        if status is JobStatus.FINISHED:
            assert self.decision is not None, "what is published was decided"
        else:
            kinds = {type(event) for event in self.written}
            assert (CancelAsked if status is JobStatus.CANCELED else FailingBegun) in kinds

    def check(self):
        facts = self.state.facts
        slots = [slot.allocation_id for slot in facts.pool.slots]
        assert len(slots) == len(set(slots)), "a slot is collected, in use or idle, never two of them"
        for vertex in facts.graph:
            numbers = [each.attempt.attempt_number for each in (*vertex.prior, vertex.current)]
            assert numbers == list(range(len(numbers))), vertex.name
            assert all(each.state.is_terminal for each in vertex.prior)
        if self.state.status is JobStatus.FINISHED and self.decision.epoch == self.epoch:
            assert facts.graph.is_finished
        if self.state.status.is_terminal:
            assert self.end is not None and self.end.status is self.state.status

    # ---- what may happen ----

    def vertex(self, attempt):
        return self.state.facts.graph.vertex_of(attempt)

    def is_current(self, attempt):
        return self.vertex(attempt) is not None

    def free(self, allocation_id):
        self.slots.pop(allocation_id, None)
        for attempt, task in list(self.running.items()):
            if task.descriptor.allocation_id == allocation_id:
                self.due.append(self.stop(attempt, "CANCELED"))

    def stop(self, attempt, state, **more):
        """Have a task end, and its report come."""
        task, report = self.running.pop(attempt), TaskReport(attempt, state, **more)
        self.ran[attempt] = report
        if state == "FINISHED":
            for partition in task.descriptor.partitions:
                self.partitions[partition.id] = task.address
        return UpdateTaskStates((report,))

    def end_of_task(self, attempt):
        """Return how a task that runs comes to its end, or None when it waits for others."""
        gates = self.running[attempt].descriptor.gates
        for channel in [channel for gate in gates for channel in gate.channels]:
            if channel.partition in self.partitions:
                continue
            if channel.partition.producer in self.running:
                return None
            gone = FailureInfo("PartitionNotFoundError", "gone", retryable=True, partition=channel.partition)
            return self.stop(attempt, "FAILED", failure=gone)
        return self.stop(attempt, "FINISHED")

    def offer(self, resource_id, request_id, pages=100):
        """Offer a slot; return whether it is taken."""
        allocation = AllocationId.random()
        offer = OfferSlots(resource_id, str(resource_id), "data", (SlotOffer(0, allocation, pages, request_id),))
        (answer,) = [each for each in self.hear(offer) if isinstance(each, told.AcceptSlots)]
        assert set(answer.allocation_ids) <= {allocation}
        if answer.allocation_ids:
            assert not self.is_deposed
            self.slots[allocation] = resource_id
            self.requests[request_id] -= 1
            if not self.requests[request_id]:
                del self.requests[request_id]
            self.hear(heard.SlotsTaken())
        return bool(answer.allocation_ids)

    def lose(self, index):
        """Have a TaskExecutor die and another one come."""
        lost, self.executors[index] = self.executors[index], ResourceId.random()
        self.slots = {key: place for key, place in self.slots.items() if place != lost}
        self.running = {key: task for key, task in self.running.items() if task.address != str(lost)}
        self.partitions = {key: place for key, place in self.partitions.items() if place != str(lost)}
        return lost

    def reattached(self, expected):
        """Return what TaskExecutors answer; they drop what is not named."""
        answers = {}
        for resource_id, there in expected.items():
            if resource_id not in self.executors:
                continue
            for allocation_id in [key for key, place in self.slots.items() if place == resource_id]:
                if allocation_id not in there.slots:
                    self.free(allocation_id)
            here = [key for key, task in self.running.items() if task.address == str(resource_id)]
            for attempt in here:
                if attempt not in there.attempts:
                    self.stop(attempt, "CANCELED")
            reports = tuple(self.ran[attempt] for attempt in there.attempts if attempt in self.ran)
            held = tuple(slot for slot in there.slots if self.slots.get(slot) == resource_id)
            kept = tuple(each for each in there.partitions if self.partitions.get(each) == str(resource_id))
            answers[resource_id] = AttachedJob(resource_id, held, reports, kept)
        return answers

    def answer(self, instruction):
        """Return what becomes of an instruction when all goes well."""
        match instruction:
            case told.PrepareOutputs():
                return heard.OutputsPrepared({})
            case told.Reattach():
                return heard.Reattached(self.reattached(instruction.expected))
            case told.CountSlots():
                return heard.SlotsCounted(SlotOverview(3, 0, 3, ()))
            case told.Commit():
                self.decision = Decision(self.graph.job_id, self.epoch, ())
            case told.Record():
                self.recorded = instruction.status
        return heard.StepDone(STEPS[type(instruction)])

    def failure(self, instruction):
        """Return how an instruction may go wrong, or None."""
        match instruction:
            case told.PrepareOutputs():
                return heard.PrepareFailed(FINAL)
            case told.Commit():
                return heard.PublishFailed(FINAL)
        return None

    def refuse(self, attempt):
        del self.running[attempt], self.ran[attempt]
        return heard.TaskRefused(attempt, failure_info(ResourceError("no room")))
