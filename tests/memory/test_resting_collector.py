"""RestingCollector: off from the first user to the last, and on again then, unless other code has switched it off."""

import gc

import pytest

from engine.memory.heap import FrozenHeap, RestingCollector


@pytest.fixture(autouse=True)
def thawed():
    """Let the tests begin with nothing frozen; what the run has collected is again for the tests that follow."""
    was_on = gc.isenabled()
    gc.enable()
    gc.unfreeze()
    yield
    gc.freeze()
    if not was_on:
        gc.disable()


def test_it_rests_until_the_last_user_has_left():
    resting = RestingCollector(FrozenHeap())
    with pytest.raises(ValueError), resting:
        with resting:
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_what_was_made_meanwhile_is_old_and_collected_all_the_same():
    class Cycle:
        alive = 0

        def __init__(self):
            Cycle.alive += 1
            self.itself = self

        def __del__(self):
            Cycle.alive -= 1

    with RestingCollector(FrozenHeap()):
        Cycle()
    gc.collect(1)
    assert Cycle.alive == 1
    gc.collect()
    assert Cycle.alive == 0


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    with RestingCollector(FrozenHeap()):
        pass
    assert not gc.isenabled()
    gc.enable()


def test_what_is_frozen_is_walked_through_once_at_most(monkeypatch):
    walks = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: walks.append(1) or 7)
    resting = RestingCollector(FrozenHeap())
    for _ in range(3):
        with resting:
            pass
    assert len(walks) == 1


def test_a_heap_that_tasks_have_frozen_stays_so():
    heap = FrozenHeap()
    with heap, RestingCollector(heap):
        pass
    gc.collect()
    with heap:
        with RestingCollector(heap):
            pass
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
