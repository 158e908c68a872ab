"""How wide the rows of a batch are, and the room in which a very wide one is read or written."""

import threading
import weakref

import pyarrow as pa
import pytest

from engine.errors import MemoryBudgetError
from engine.memory.budget import Budget, Kind
from engine.records import wide_rows
from engine.records.wide_rows import COPIES, WIDE_BYTES, one_by_one, room_for, width_of


@pytest.fixture
def budget(monkeypatch):
    made = Budget()
    made.set_limit(Kind.ARROW, 4 * WIDE_BYTES)
    made.set_limit(Kind.WORKER, 0)
    monkeypatch.setattr(wide_rows, "process_budget", made)
    return made


def test_many_narrow_rows_are_no_wide_one():
    assert width_of(WIDE_BYTES, 3) >= WIDE_BYTES
    assert width_of(WIDE_BYTES, 30_000) < 1000


def test_narrow_rows_need_no_room(budget):
    with room_for(WIDE_BYTES - 1) as room:
        assert room is None
        assert budget.held(Kind.ARROW) == 0


def test_a_row_that_no_process_of_this_size_can_hold_is_refused_before_it_is_read(budget):
    batches = iter([pytest.fail])
    with pytest.raises(MemoryBudgetError, match=r"a record of 40mb .* 32mb .*taskmanager\.memory\.process\.size"):
        next(one_by_one(batches, 5 * WIDE_BYTES))
    assert budget.held(Kind.ARROW) == 0


def test_a_wide_row_is_read_in_its_room_and_reserved_until_the_next_one_is_asked_for(budget):
    held = []

    def source():
        for index in range(3):
            held.append(budget.held(Kind.ARROW))
            yield pa.record_batch({"blob": [bytes([index]) * WIDE_BYTES]})

    for number, batch in enumerate(one_by_one(source(), WIDE_BYTES)):
        assert batch.column(0)[0].as_py()[0] == number
        assert budget.held(Kind.ARROW) == batch.nbytes
        with room_for(WIDE_BYTES) as room:
            assert room is not None
            assert budget.held(Kind.ARROW) == batch.nbytes + COPIES * WIDE_BYTES
    assert held == [COPIES * WIDE_BYTES] * 3
    assert budget.held(Kind.ARROW) == 0


def test_a_reader_that_is_closed_in_the_middle_gives_its_reservation_back(budget):
    batches = one_by_one(iter([pa.record_batch({"blob": [b"x" * WIDE_BYTES]})] * 2), WIDE_BYTES)
    next(batches)
    batches.close()
    assert budget.held(Kind.ARROW) == 0


def test_a_row_that_is_handed_on_is_waited_for_by_nobody(budget):
    first = one_by_one(iter([pa.record_batch({"blob": [b"x" * 4 * WIDE_BYTES]})]), 4 * WIDE_BYTES)
    kept = next(first)
    done = threading.Thread(target=lambda: list(one_by_one(iter([kept]), WIDE_BYTES)))
    done.start()
    done.join(60)
    assert not done.is_alive()
    first.close()


def test_a_batch_of_narrow_rows_is_not_kept_by_its_reader():
    made = [pa.record_batch({"n": [1]}), pa.record_batch({"n": [2]})]
    seen = [weakref.ref(batch) for batch in made]
    batches = one_by_one((made.pop(0) for _ in range(2)), 10)
    del made[2:]
    next(batches)
    next(batches)
    assert seen[0]() is None
