"""How operators divide a slot, and slots a process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import MemoryBudgetError
from engine.memory.page_budget import OPERATOR_PAGES_MIN, PageBudget, SlotWeights, operator_pages, pages_needed

WEIGHTS = st.lists(st.sampled_from([0.0, 0.1, 0.125, 0.5, 1.0, 10.0, 1000.0]), min_size=1, max_size=6)


@given(WEIGHTS, st.integers(36, 10_000))
def test_pages_of_a_slot_are_never_given_twice_and_every_operator_has_its_minimum(weights: list[float], slot: int):
    pages = [operator_pages(weight, SlotWeights.of(weights), slot) for weight in weights]
    assert sum(pages) <= slot
    assert all(each >= OPERATOR_PAGES_MIN if weight else each == 0 for each, weight in zip(pages, weights, strict=True))
    if any(weights):
        assert sum(pages) > slot - len(weights), "no page is left but for rounding"


@given(st.sampled_from([0.1, 0.125, 1 / 3, 0.7, 1.0]), st.integers(6, 100_000))
def test_an_operator_that_runs_alone_has_all_pages(weight: float, slot: int):
    assert operator_pages(weight, SlotWeights.of([0.0, weight]), slot) == slot


def test_a_slot_with_fewer_pages_than_its_operators_need_is_an_error_that_says_what_to_do():
    assert pages_needed([1.0, 0.0, 2.0]) == 12
    with pytest.raises(MemoryBudgetError, match=r"has 11 pages.*need 12.*taskmanager\.memory\.managed\.size"):
        operator_pages(1.0, SlotWeights.of([1.0, 1.0]), 11)


def test_a_process_has_the_same_pages_whatever_its_slots():
    budget = PageBudget(100 * 4096 + 1, 4096, 3)
    assert (budget.slot_bytes, budget.slot_pages, budget.operator_bytes) == (136533, 33, 68266)
    assert budget.with_slots(1).slot_pages == 100


def test_a_weight_is_the_part_of_a_slot_that_an_operator_fills():
    budget = PageBudget(1000, 4096, 2)
    assert [budget.weight(size, 0.25) for size in (10, 250, 5000)] == [0.25, 0.5, 1.0]
