"""SlotManager: a state machine drives it together with a model of what TaskExecutors and jobs did."""

from __future__ import annotations

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from engine.gateways.messages import RequestSlots, SlotStatus
from engine.ids import AllocationId, JobId, ResourceId
from engine.resourcemanager.slot_manager import SlotManager

JOB_A, JOB_B = JobId("a" * 32), JobId("b" * 32)
TM_1, TM_2 = ResourceId("1" * 32), ResourceId("2" * 32)


def request(job_id, request_id, count):
    return RequestSlots(job_id, f"job {job_id.value[0]}", "jobmaster", request_id, count)


def registered(*counts, is_spread=False):
    manager = SlotManager(is_spread=is_spread)
    for resource_id, count in zip((TM_1, TM_2), counts, strict=False):
        manager.register(resource_id, tuple(SlotStatus(index) for index in range(count)))
    return manager


def test_a_request_is_served_whole_over_several_task_executors_or_not_at_all():
    manager = registered(2, 2)
    manager.request(request(JOB_A, 1, 5))
    assert manager.assign() == ()
    manager.withdraw(JOB_A, 1)
    manager.request(request(JOB_A, 2, 3))
    assert sorted((a.resource_id, a.index) for a in manager.assign()) == [(TM_1, 0), (TM_1, 1), (TM_2, 0)]


def test_slots_are_taken_where_the_smallest_share_is_taken_when_they_are_spread():
    manager = registered(4, 2, is_spread=True)
    manager.request(request(JOB_A, 1, 3))
    first = manager.assign()
    assert sorted((a.resource_id, a.index) for a in first) == [(TM_1, 0), (TM_1, 1), (TM_2, 0)]
    # Half of each is taken. Three more: two of four are left here, one of two there.
    manager.request(request(JOB_B, 1, 1))
    manager.request(request(JOB_B, 2, 1))
    assert [a.resource_id for a in manager.assign()] == [TM_1, TM_2]


def test_slots_of_one_that_drains_are_assigned_no_more_and_count_for_no_job():
    manager = registered(2, 2)
    manager.request(request(JOB_A, 1, 1))
    (first,) = manager.assign()
    assert first.resource_id == TM_1
    manager.draining.add(TM_1)
    manager.request(request(JOB_A, 2, 2))
    manager.request(request(JOB_B, 3, 3))
    assert [each.resource_id for each in manager.assign()] == [TM_2, TM_2]
    assert manager.short() == {JOB_B}, "three slots there are no more"
    assert (manager.counts_of(TM_1), manager.counts_of(TM_2)) == ((2, 0), (2, 0))
    assert manager.overview().total_count == 2
    manager.unregister(TM_1)
    manager.register(TM_1, (SlotStatus(0),))
    assert manager.counts_of(TM_1) == (1, 1), "one that comes back drains only when it says so"


def test_what_a_request_avoids_comes_last_also_when_slots_are_spread():
    manager = registered(2, 2, is_spread=True)
    manager.request(msgspec.structs.replace(request(JOB_A, 1, 3), avoided=(TM_1,)))
    assert [(a.resource_id, a.index) for a in manager.assign()] == [(TM_2, 0), (TM_2, 1), (TM_1, 0)]


def test_what_a_request_avoids_is_not_taken_while_others_could_serve_it():
    manager = registered(2, 1)
    manager.request(msgspec.structs.replace(request(JOB_A, 1, 1), avoided=(TM_1,)))
    manager.request(msgspec.structs.replace(request(JOB_A, 2, 1), avoided=(TM_1,)))
    (first,) = manager.assign()
    assert first.resource_id == TM_2
    manager.confirm(first.allocation_id)
    manager.free(first.resource_id, first.index, first.allocation_id)
    assert [assigned.resource_id for assigned in manager.assign()] == [TM_2]


def test_requests_are_served_in_order_and_a_small_one_does_not_overtake():
    manager = registered(2)
    manager.request(request(JOB_A, 1, 1))
    manager.request(request(JOB_A, 2, 2))
    manager.request(request(JOB_B, 1, 1))
    (first,) = manager.assign()
    assert manager.assign() == ()
    manager.confirm(first.allocation_id)
    manager.free(first.resource_id, first.index, first.allocation_id)
    assert [a.request.request_id for a in manager.assign()] == [2, 2]


def test_the_same_request_again_changes_nothing():
    manager = registered(4)
    manager.request(request(JOB_A, 1, 2))
    manager.request(request(JOB_A, 1, 2))
    assert len(manager.assign()) == 2 and manager.assign() == ()


def test_a_refused_slot_is_replaced_first_and_not_tried_again_until_it_is_registered():
    manager = registered(2)
    manager.request(request(JOB_A, 1, 1))
    manager.request(request(JOB_B, 1, 1))
    first, second = manager.assign()
    manager.reject(first.allocation_id)
    assert manager.overview().total_count == 1
    manager.confirm(second.allocation_id)
    manager.free(second.resource_id, second.index, second.allocation_id)
    (again,) = manager.assign()
    assert again.request.job_id == JOB_A


def test_the_overview_says_who_holds_what():
    manager = registered(3)
    manager.request(request(JOB_A, 1, 2))
    manager.assign()
    overview = manager.overview()
    assert (overview.total_count, overview.free_count, overview.task_executor_count) == (3, 1, 1)
    assert [(holder.job_name, holder.count) for holder in overview.holders] == [("job a", 2)]


def test_a_job_whose_slot_is_reported_to_a_new_leader_counts_among_those_that_run():
    manager = SlotManager(running_max=1)
    manager.register(TM_1, (SlotStatus(0, AllocationId.random(), JOB_A), SlotStatus(1), SlotStatus(2)))
    manager.request(request(JOB_B, 1, 1))
    assert manager.assign() == ()
    manager.request(request(JOB_A, 1, 1))
    assert [assigned.request.job_id for assigned in manager.assign()] == [JOB_A]


def test_a_lost_task_executor_takes_its_slots_and_names_the_jobs():
    manager = registered(1, 1)
    manager.request(request(JOB_A, 1, 2))
    for assignment in manager.assign():
        manager.confirm(assignment.allocation_id)
    assert manager.unregister(TM_1) == (JOB_A,)
    assert manager.overview().total_count == 1


def test_a_late_word_about_another_allocation_does_not_free_the_slot():
    manager = registered(1)
    manager.request(request(JOB_A, 1, 1))
    (old,) = manager.assign()
    manager.free(old.resource_id, old.index, old.allocation_id)
    manager.request(request(JOB_B, 1, 1))
    (new,) = manager.assign()
    manager.free(old.resource_id, old.index, old.allocation_id)
    manager.confirm(old.allocation_id)
    assert manager.overview().free_count == 0
    manager.confirm(new.allocation_id)
    assert [holder.job_id for holder in manager.overview().holders] == [JOB_B]


def test_a_report_of_another_allocation_has_the_assigned_one_sought_elsewhere():
    manager = registered(1)
    manager.request(request(JOB_A, 1, 1))
    (old,) = manager.assign()
    manager.unregister(TM_1)
    manager.register(TM_1, (SlotStatus(0),))
    (new,) = manager.assign()
    manager.register(TM_1, (SlotStatus(0, old.allocation_id, JOB_A),))  # it was given before it was lost
    manager.reject(new.allocation_id)
    manager.validate()
    assert manager.overview().free_count == 0
    manager.register(TM_2, (SlotStatus(0),))
    (again,) = manager.assign()
    assert (again.resource_id, again.request.job_id) == (TM_2, JOB_A)


class SlotMachine(RuleBasedStateMachine):
    """Slots are never double-booked, whatever comes in whatever order."""

    assignments = Bundle("assignments")

    def __init__(self) -> None:
        super().__init__()
        self.manager = SlotManager()
        #: what TaskExecutors really gave, by slot
        self.given: dict[tuple[ResourceId, int], object] = {}
        self.sizes: dict[ResourceId, int] = {}
        self.request_ids = 0

    @initialize(is_spread=st.booleans())
    def begin(self, is_spread):
        self.manager = SlotManager(is_spread=is_spread)

    def _statuses(self, resource_id):
        return tuple(
            SlotStatus(index, allocation.allocation_id, allocation.request.job_id)
            if (allocation := self.given.get((resource_id, index))) is not None
            else SlotStatus(index)
            for index in range(self.sizes.get(resource_id, 0))
        )

    @rule(resource_id=st.sampled_from([TM_1, TM_2]), count=st.integers(0, 4))
    def register(self, resource_id, count):
        self.sizes[resource_id] = max([count, *(index + 1 for (owner, index) in self.given if owner == resource_id)])
        self.manager.register(resource_id, self._statuses(resource_id))

    @rule(job_id=st.sampled_from([JOB_A, JOB_B]), count=st.integers(1, 5))
    def request(self, job_id, count):
        self.request_ids += 1
        self.manager.request(request(job_id, self.request_ids, count))

    @rule(job_id=st.sampled_from([JOB_A, JOB_B]))
    def withdraw(self, job_id):
        self.manager.withdraw(job_id)

    @rule(target=assignments)
    def assign(self):
        return self.manager.assign()

    @rule(batch=assignments, is_given=st.booleans())
    def answer(self, batch, is_given):
        for assignment in batch:
            key = (assignment.resource_id, assignment.index)
            is_there = assignment.index < self.sizes.get(assignment.resource_id, 0)
            if is_given and is_there and key not in self.given:
                self.given[key] = assignment
                self.manager.confirm(assignment.allocation_id)
            else:
                self.manager.reject(assignment.allocation_id)

    @rule(data=st.data())
    def free(self, data):
        if self.given:
            key = data.draw(st.sampled_from(sorted(self.given)))
            assignment = self.given.pop(key)
            self.manager.free(*key, assignment.allocation_id)

    @rule(resource_id=st.sampled_from([TM_1, TM_2]))
    def lose(self, resource_id):
        self.manager.unregister(resource_id)
        self.given = {key: value for key, value in self.given.items() if key[0] != resource_id}
        self.sizes.pop(resource_id, None)

    @invariant()
    def invariants_hold(self):
        self.manager.validate()
        overview = self.manager.overview()
        assert 0 <= overview.free_count <= overview.total_count
        assert overview.total_count - overview.free_count == sum(holder.count for holder in overview.holders)


SlotMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSlotMachine = SlotMachine.TestCase
