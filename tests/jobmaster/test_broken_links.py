"""TaskManagers that cannot read from each other: the job learns which ones to do without, or says that it cannot."""

from __future__ import annotations

from engine.gateways.messages import ReleaseJob, RequestSlots, UpdateTaskStates
from engine.graph.deployment import FailureInfo, TaskReport
from engine.ids import ResourceId
from engine.jobmaster import job_input as heard
from engine.jobmaster import job_instruction as told
from engine.jobmaster.broken_links import ATTEMPTS_MIN, BrokenLinks
from engine.jobmaster.job_instruction import Timer
from engine.jobmaster.job_status import JobStatus
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.jobmaster.state_world import StateWorld

A, B, C, D = (ResourceId(digit * 32) for digit in "abcd")


def after(*rounds, held=None, answering=(A, B, C, D)):
    """Links after attempts in each of which some could not read from others; all answer the JobMaster."""
    links = BrokenLinks()
    for pairs in rounds:
        for reader, holder in pairs:
            links.failed(reader, holder, lambda each: (held or {}).get(each, 0))
        for each in answering:
            links.answered(each)
        links.next_attempts()
    return links


def test_one_attempt_that_could_not_read_says_nothing():
    assert after([(A, B)] * 10).avoided == frozenset()
    assert after([(A, B)], [(A, C)], [(B, C)]).avoided == frozenset()


def test_readers_go_where_the_data_is():
    assert after([(A, B)], [(A, B)], held={B: 10}).avoided == {A}
    assert after([(A, B)], [(B, A)], held={A: 10}).avoided == {B}, "a link has no direction"


def test_who_does_not_answer_the_job_master_goes_whatever_it_holds():
    assert after([(A, B)], [(A, B)], held={B: 10}, answering=(A,)).avoided == {B}


def test_who_is_cut_off_from_several_goes_and_they_stay():
    assert after([(A, D), (B, D)], [(A, D), (B, D)], held={D: 100}).avoided == {D}
    known_better = after([(A, D)], [(A, D)], held={D: 100})
    assert known_better.avoided == {A}
    for _ in range(ATTEMPTS_MIN):
        known_better.failed(B, D, lambda each: 0)
        known_better.next_attempts()
    assert known_better.avoided == {D}, "the first one is used again"


def test_no_broken_link_is_left_and_few_go():
    rounds = [[(A, B), (A, C), (D, C)]] * ATTEMPTS_MIN
    assert after(*rounds).avoided in ({A, C}, {A, D})


def test_who_is_gone_is_forgotten():
    links = after([(A, B)], [(A, B)])
    (gone,) = links.avoided
    links.lost(gone)
    assert links.avoided == frozenset() and not links.failed(A, B, lambda each: 0)


def test_links_that_fail_although_one_end_is_avoided_are_hopeless_after_some_attempts():
    links = after([(A, B)], [(A, B)])
    assert not links.is_hopeless(A, B)
    for _ in range(ATTEMPTS_MIN):
        assert not links.is_hopeless(B, A)
        links.failed(B, A, lambda each: 0)
        links.next_attempts()
    assert links.is_hopeless(A, B)


# ---- whole jobs ----


class CutWorld(StateWorld):
    """Two of three TaskExecutors cannot read from each other; slots are given as a ResourceManager gives them."""

    def __init__(self, graph, slots=(2, 2, 0)):
        super().__init__(graph)
        self.capacity = dict(zip(self.executors, slots, strict=True))
        self.cut = set(self.executors[:2])
        self.hear(self.answer(self.pending.pop()))

    def end_of_task(self, attempt):
        task = self.running[attempt]
        for channel in [channel for gate in task.descriptor.gates for channel in gate.channels]:
            place = self.partitions.get(channel.partition)
            if place is not None and place != task.address and {task.address, place} <= set(map(str, self.cut)):
                failure = FailureInfo(
                    "PartitionConnectionError", "no answer within 5 s", retryable=True, partition=channel.partition
                )
                return self.stop(attempt, "FAILED", failure=failure)
        return super().end_of_task(attempt)

    def do(self, instruction):
        super().do(instruction)
        match instruction:
            case told.TellResourceManager(request=RequestSlots() as request):
                self.avoided = request.avoided
            case told.Tell(request=ReleaseJob(), address=address):
                self.left.append(address)
                for attempt, task in list(self.running.items()):
                    if task.address == address:
                        del self.running[attempt]
                self.slots = {key: place for key, place in self.slots.items() if str(place) != address}

    avoided = ()

    @property
    def left(self):
        return self.__dict__.setdefault("_left", [])

    def give_slots(self):
        """Serve requests, of avoided TaskExecutors last, and only where the others together are too few."""
        for request_id in sorted(self.requests):
            count = self.requests.get(request_id, 0)
            others = [each for each in self.executors if each not in self.avoided]
            enough = sum(self.capacity[each] for each in others) >= count
            for executor in others if enough else self.executors:
                used = sum(place == executor for place in self.slots.values())
                for _ in range(self.capacity[executor] - used):
                    if request_id in self.requests:
                        self.offer(executor, request_id)

    def run(self, steps=60):
        """Go on until the job ends; return how many restarts that took."""
        for _ in range(steps):
            if self.recorded is not None:
                break
            self.give_slots()
            while self.batches:
                batch, self.durable = self.batches.pop(0)
                self.hear(heard.JournalWritten(batch))
            for attempt in list(self.running):
                if attempt in self.running:
                    ended = self.stop(attempt, "CANCELED") if attempt in self.cancelled else self.end_of_task(attempt)
                    if ended is not None:
                        self.hear(ended)
            while self.due:
                self.hear(self.due.pop(0))
            for executor in self.executors:
                self.hear(heard.TaskExecutorAnswered(executor))
            if Timer.PAUSE in self.timers:
                self.hear(heard.TimerFired(Timer.PAUSE))
            while self.pending:
                self.hear(self.answer(self.pending.pop(0)))
        return self.state.facts.failover.restart_count


def test_a_job_of_stored_results_ends_well_on_one_of_two_that_cannot_read_from_each_other():
    world = CutWorld(job_graph([4, 4], [Edge(0, 1, result_type=BLOCKING)]))
    restarts = world.run()
    assert world.recorded is JobStatus.FINISHED and restarts <= 3
    (left,) = world.left
    places = {vertex.current.slot.address for vertex in world.state.facts.graph if vertex.job_vertex.id.index == 1}
    assert left not in places and len(places) == 1
    told_of = world.state.facts.failures.latest[0].failure
    assert "cannot read from TaskManager" in told_of.message and left in told_of.message


def test_a_third_one_that_reaches_both_is_used():
    world = CutWorld(job_graph([4, 4], [Edge(0, 1, result_type=BLOCKING)]), slots=(2, 2, 2))
    world.run()
    assert world.recorded is JobStatus.FINISHED and len(world.left) == 1


class CutPipelines(CutWorld):
    """The same of results that are read while they are written."""

    def end_of_task(self, attempt):
        task = self.running[attempt]
        for channel in [channel for gate in task.descriptor.gates for channel in gate.channels]:
            producer = self.running.get(channel.partition.producer)
            if producer is not None and producer.address != task.address:
                failure = FailureInfo(
                    "PartitionConnectionError", "no answer within 5 s", retryable=True, partition=channel.partition
                )
                return self.stop(attempt, "FAILED", failure=failure)
        return UpdateTaskStates((TaskReport(attempt, "RUNNING"),)) if not task.descriptor.gates else None


def test_a_job_that_needs_both_ends_with_both_hosts():
    world = CutPipelines(job_graph([4, 4], [Edge(0, 1)]))
    restarts = world.run()
    failure = world.state.facts.failures.root
    assert world.recorded is JobStatus.FAILED and restarts <= 4
    assert failure.type_name == "ResourceError" and not failure.retryable
    first, second, _ = map(str, world.executors)
    assert first in failure.message and second in failure.message and "too few slots" in failure.message
