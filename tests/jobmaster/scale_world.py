"""A ``JobState`` with many TaskExecutors and subtasks: slots are given, tasks run and end, as they are told to.

    world = ScaleWorld(stages=4, width=100, executors=50, slots=2); world.run()
    python -m tests.jobmaster.scale_world 4 100 50 2        the same, and what it took, as JSON

Each stage has all of the one before as its BLOCKING input. What is offered and reported comes in one message from each
TaskExecutor.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict, deque
from pathlib import Path

from engine.clock import Moment, StoppedClock
from engine.gateways.messages import (
    FreeSlot,
    OfferSlots,
    RequestSlots,
    SlotOffer,
    SlotOverview,
    UpdateTaskStates,
    WithdrawSlotRequests,
)
from engine.graph.deployment import TaskReport
from engine.graph.packed_sizes import packed_sizes
from engine.ids import AllocationId, ResourceId
from engine.jobmaster import job_input as heard
from engine.jobmaster import job_instruction as told
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_state import JobState
from engine.jobmaster.restart_strategy import FixedDelayRestart
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.jobmaster.state_world import SETTINGS, STEPS


class ScaleWorld:
    """One job, which nothing goes wrong with."""

    def __init__(self, stages: int, width: int, executors: int, slots: int):
        graph = job_graph([width] * stages, [Edge(each, each + 1, "HASH", BLOCKING) for each in range(stages - 1)])
        clock = StoppedClock(Moment(0.0, 0))
        facts = JobFacts(graph, FixedDelayRestart(1000, 1.0), clock)
        self.state = JobState(facts, clock, 1, "jobmaster-1", SETTINGS)
        self.executors = {str(each): each for each in (ResourceId.random() for _ in range(executors))}
        self.sizes, self.overview = packed_sizes([1000] * width), SlotOverview(executors * slots, 0, executors, ())
        #: free slots by address, where those in use are, slots asked for, tasks that run by address
        self.free = Counter(dict.fromkeys(self.executors, slots))
        self.used: dict[AllocationId, str] = {}
        self.wanted: deque[list[int]] = deque()
        self.running = defaultdict(list)
        self.inputs = deque([heard.Begin(False, None)])
        self.deployed = 0
        #: processor time of the JobState
        self.handling_s = 0.0

    def run(self):
        """Go on until nothing is left to be heard."""
        while self.inputs or self.wanted or self.running:
            if not self.inputs:
                self.offer()
            if not self.inputs:
                self.end_tasks(*self.running.popitem())
            happened, began_s = self.inputs.popleft(), time.process_time()
            instructions = list(self.state.handle(happened, Moment(0.0, 0)))
            self.handling_s += time.process_time() - began_s
            for instruction in instructions:
                self.do(instruction)

    def offer(self):
        """Have every TaskExecutor offer what it has free of what is asked for."""
        offers = defaultdict(list)
        for address in [each for each, count in self.free.items() if count]:
            while self.free[address] and self.wanted:
                allocation, request = AllocationId.random(), self.wanted[0]
                offers[address].append(SlotOffer(0, allocation, 100, request[0]))
                self.used[allocation] = address
                self.free[address] -= 1
                request[1] -= 1
                if not request[1]:
                    self.wanted.popleft()
        for address, slots in offers.items():
            self.inputs.append(OfferSlots(self.executors[address], address, "data", tuple(slots)))

    def end_tasks(self, address, tasks):
        """Have the tasks of a TaskExecutor run and end."""
        begun = [TaskReport(task.attempt, state) for task in tasks for state in ("INITIALIZING", "RUNNING")]
        ended = [self.report(task.attempt, len(task.partitions)) for task in tasks]
        self.inputs += [UpdateTaskStates(tuple(begun)), UpdateTaskStates(tuple(ended))]

    def report(self, attempt, outputs):
        sizes = tuple(bytes(bytearray(self.sizes)) for _ in range(outputs))  # as they come in a message
        return TaskReport(
            attempt, "FINISHED", partition_rows=(1,) * outputs, partition_bytes=(1,) * outputs, subpartition_bytes=sizes
        )

    def do(self, instruction):
        match instruction:
            case told.AwaitJournal():
                self.inputs.append(heard.JournalWritten(instruction.batch))
            case told.Deploy():
                self.running[instruction.address] += instruction.request.descriptors
                self.deployed += len(instruction.request.descriptors)
            case told.TellResourceManager(request=RequestSlots(request_id=number, count=count)):
                self.wanted.append([number, count])
            case told.TellResourceManager(request=WithdrawSlotRequests(request_id=number)):
                self.wanted = deque(each for each in self.wanted if each[0] != number)
            case told.Tell(request=FreeSlot(allocation_id=allocation)):
                self.free[self.used.pop(allocation)] += 1
            case told.PrepareOutputs():
                self.inputs.append(heard.OutputsPrepared({}))
            case told.CountSlots():
                self.inputs.append(heard.SlotsCounted(self.overview))
            case told.AcceptSlots():
                self.inputs.append(heard.SlotsTaken())
            case told.Commit() | told.Record() | told.GiveBack() | told.RemoveStaging():
                self.inputs.append(heard.StepDone(STEPS[type(instruction)]))


def main():
    """Run a job, and print how it ended, and the memory and the processor time that it took."""
    world = ScaleWorld(*map(int, sys.argv[1:]))
    world.run()
    # What the process had before this program began counts in ru_maxrss.
    (peak_kb,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    used = {
        "status": world.state.status.value,
        "subtasks": world.deployed,
        "peak_bytes": 1024 * int(peak_kb),
        "processor_s": round(time.process_time(), 2),
        "handling_s": round(world.handling_s, 2),
    }
    print(json.dumps(used))


if __name__ == "__main__":
    main()
