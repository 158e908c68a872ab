"""Batches that are made in turns: the wide ones within a turn, from being made until they have been handled."""

import threading
import weakref

import pyarrow as pa
import pytest

from engine.memory import value_stores, wide_turns
from engine.memory.wide_turns import WIDE_BYTES
from engine.operators.wide_batches import NARROW_COUNT, in_turns


@pytest.fixture
def wide_values():
    """Some value lies outside of its row, and a wide row has been seen."""
    with wide_turns.turn(WIDE_BYTES):
        pass
    number = value_stores.register(object())
    yield
    value_stores.forget(number)


def has_turn():
    return wide_turns._turns._holder == threading.get_ident()


def batch_of(size_bytes):
    return pa.record_batch({"blob": [b"x" * size_bytes]})


def test_wide_batches_between_narrow_ones_are_made_and_handled_in_a_turn(wide_values):
    made = []

    def source():
        for size_bytes in (10, WIDE_BYTES, 10, 10, WIDE_BYTES, WIDE_BYTES, 10):
            made.append(has_turn())
            yield batch_of(size_bytes)

    handled = [(batch.nbytes >= WIDE_BYTES, has_turn()) for batch in in_turns(source())]
    assert all(made)
    assert len(handled) == 7
    assert all(is_wide == is_in_turn for is_wide, is_in_turn in handled)
    assert not has_turn()


def test_behind_many_narrow_batches_none_waits_for_a_turn_but_a_wide_one_is_handled_in_one(wide_values):
    made = []

    def source():
        for size_bytes in (*[10] * (NARROW_COUNT + 1), WIDE_BYTES, 10):
            made.append(has_turn())
            yield batch_of(size_bytes)

    handled = [has_turn() for _ in in_turns(source())]
    assert made == [True] * NARROW_COUNT + [False, False, True]
    assert handled == [False] * (NARROW_COUNT + 1) + [True, False]


def test_narrow_batches_take_no_turn_where_no_value_lies_outside():
    made = []

    def source():
        for _ in range(3):
            made.append(has_turn())
            yield batch_of(10)

    assert [has_turn() for _ in in_turns(source())] == [False] * 3
    assert made == [False] * 3


def test_a_batch_is_let_go_before_the_next_is_made(wide_values):
    seen = []
    called = []

    def source():
        for size_bytes in (WIDE_BYTES, 10, WIDE_BYTES):
            assert all(reference() is None for reference in seen)
            assert len(called) == len(seen)
            handed = [batch_of(size_bytes)]
            seen.append(weakref.ref(handed[0]))
            yield handed.pop()

    for batch in in_turns(source()):
        wide_turns.when_let_go(lambda: called.append(seen[-1]()))
        del batch
    assert called == [None] * 3
