"""FrozenHeap: frozen from the first user to the last, and thawed."""

import gc
import sys
import threading
import time

import pytest

from engine.memory.heap import FrozenHeap


@pytest.fixture(autouse=True)
def thawed():
    """Let the tests begin with nothing frozen: neither the engine's modules nor what the run has collected."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_the_heap_is_frozen_until_the_last_user_has_left():
    heap = FrozenHeap()
    with heap:
        with heap:
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_it_is_thawed_after_an_error_too():
    heap = FrozenHeap()
    with pytest.raises(ValueError), heap:
        raise ValueError
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_frozen_stays_frozen():
    gc.freeze()
    with FrozenHeap():
        pass
    assert gc.get_freeze_count() > 0


def test_what_is_frozen_is_not_counted_for_each_user(monkeypatch):
    heap = FrozenHeap()
    with heap:
        pass
    walks = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: walks.append(1) or 0)
    for _ in range(3):
        with heap, heap:
            pass
    assert len(walks) == 3, "once each, while nothing is frozen"


def test_blocks_are_not_counted_for_users_that_follow_each_other_at_once(monkeypatch):
    heap, counts = FrozenHeap(), []
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: counts.append(1) or 1000)
    for _ in range(5):
        with heap:
            pass
    assert len(counts) == 1
    monkeypatch.setattr(time, "monotonic", lambda: 1e12)
    with heap:
        pass
    assert len(counts) == 2


def test_users_in_many_threads_leave_it_thawed():
    heap = FrozenHeap()

    def use():
        for _ in range(20):
            with heap:
                pass

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.get_freeze_count() == 0


def test_garbage_made_meanwhile_is_collected():
    class Node:
        pass

    ended = []
    with FrozenHeap():
        node = Node()
        node.itself = node
        node.tell = type("Teller", (), {"__del__": lambda self: ended.append(1)})()
        del node
        gc.collect()
        assert ended == [1]


def test_what_job_after_job_leaves_in_cycles_does_not_pile_up():
    heap = FrozenHeap()

    class Node:
        pass

    def leave_cycles():
        for _ in range(1000):
            node = Node()
            node.itself = node

    gc.collect()
    before = len(gc.get_objects())
    for _ in range(60):
        leave_cycles()
        with heap:
            pass
    assert len(gc.get_objects()) < 1.6 * before + 4000
