"""Slots of a TaskExecutor: their states, their jobs, and their pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ResourceError
from engine.ids import AllocationId, ExecutionAttemptId, JobId, JobVertexId
from engine.taskexecutor.slot_table import SlotState, SlotTable

JOB, OTHER = JobId("1" * 32), JobId("2" * 32)


def attempt():
    return ExecutionAttemptId.create(JobVertexId(0), 0, 0)


def test_a_slot_goes_from_allocated_to_active_to_releasing_to_free():
    table = SlotTable(2, 100)
    allocation = AllocationId.random()
    slot = table.allocate(0, JOB, allocation, "jm")
    assert slot.state is SlotState.ALLOCATED and table.free_count == 1
    table.activate(allocation)
    running = attempt()
    table.add_task(allocation, JOB, running)
    assert slot.state is SlotState.ACTIVE
    assert table.release(slot) is False and slot.state is SlotState.RELEASING
    with pytest.raises(ResourceError, match="no slot with allocation"):
        table.add_task(allocation, JOB, attempt())
    assert table.remove_task(running) is slot
    table.remove(slot)
    assert table.is_idle


def test_a_slot_is_never_given_twice_and_the_same_allocation_is_the_same_slot():
    table = SlotTable(1, 100)
    allocation = AllocationId.random()
    slot = table.allocate(0, JOB, allocation, "jm")
    assert table.allocate(0, JOB, allocation, "jm") is slot
    for index in (0, 1, -1):
        with pytest.raises(ResourceError, match=f"slot {index} of 1 is not free"):
            table.allocate(index, OTHER, AllocationId.random(), "jm")


def test_a_task_of_another_job_does_not_get_into_the_slot():
    table = SlotTable(1, 100)
    allocation = AllocationId.random()
    table.allocate(0, JOB, allocation, "jm")
    with pytest.raises(ResourceError):
        table.add_task(allocation, OTHER, attempt())


@given(st.integers(1, 20), st.integers(0, 10_000), st.lists(st.integers(0, 19), max_size=40))
def test_pages_of_all_slots_together_are_never_more_than_there_are(count, pages, toggles):
    table = SlotTable(count, pages)
    taken = {}
    for index in toggles:
        if index >= count:
            continue
        if index in taken:
            table.remove(taken.pop(index))
        else:
            taken[index] = table.allocate(index, JOB, AllocationId.random(), "jm")
        assert sum(slot.pages for slot in taken.values()) <= pages
    for slot in taken.values():
        table.remove(slot)
    table.resize(count)
    shares = [table.allocate(index, JOB, AllocationId.random(), "jm").pages for index in range(count)]
    assert sum(shares) <= pages < sum(shares) + count


def test_a_slot_has_its_part_of_what_workers_spare():
    table = SlotTable(4, 100, 42)
    slot = table.allocate(0, JOB, AllocationId.random(), "jm")
    assert (slot.pages, slot.spare_pages) == (25, 10)


@given(st.integers(1, 20), st.integers(0, 10_000))
def test_a_table_that_one_slot_built_fits_in_the_place_of_any_other_slots(count, pages):
    table = SlotTable(count, pages)
    assert len({table.allocate(index, JOB, AllocationId.random(), "jm").pages for index in range(count)}) == 1
