"""Turns of those who handle very wide rows."""

import threading
import time

from engine.memory.wide_turns import WIDE_BYTES, Turns

PATIENCE_S = 60


class Worker:
    """A thread that takes one turn and stays in it until told."""

    def __init__(self, turns, row_bytes=WIDE_BYTES, *, is_handed=False):
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self._turns, self._row_bytes, self._is_handed = turns, row_bytes, is_handed
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        with self._turns.turn(self._row_bytes, is_handed=self._is_handed):
            self.has_begun.set()
            assert self.may_end.wait(PATIENCE_S)

    def end(self):
        self.may_end.set()
        self.thread.join()


def test_wide_rows_are_handled_one_at_a_time_and_narrow_ones_wait_for_nobody():
    turns = Turns(PATIENCE_S)
    first = Worker(turns)
    assert first.has_begun.wait(PATIENCE_S)
    second, narrow = Worker(turns), Worker(turns, WIDE_BYTES - 1)
    assert narrow.has_begun.wait(PATIENCE_S)
    assert not second.has_begun.is_set()
    first.end()
    assert second.has_begun.wait(PATIENCE_S)
    second.end()
    narrow.end()


def test_a_turn_inside_a_turn_waits_for_nothing_and_does_not_end_it():
    turns = Turns(PATIENCE_S)
    with turns.turn(WIDE_BYTES):
        with turns.turn(WIDE_BYTES):
            pass
        other = Worker(turns)
        assert not other.has_begun.is_set()
    assert other.has_begun.wait(PATIENCE_S)
    other.end()


def test_who_pauses_lets_another_thread_have_the_turn_and_gets_it_back():
    turns = Turns(PATIENCE_S)
    with turns.turn(WIDE_BYTES):
        with turns.paused():
            other = Worker(turns)
            assert other.has_begun.wait(PATIENCE_S)
            other.end()
        third = Worker(turns)
        assert not third.has_begun.is_set()
    assert third.has_begun.wait(PATIENCE_S)
    third.end()


def test_who_takes_a_row_acts_in_the_turn_of_who_handed_it_over_and_readers_wait():
    turns = Turns(PATIENCE_S)
    with turns.turn(WIDE_BYTES):
        with turns.lent():
            taker = Worker(turns, is_handed=True)
            assert taker.has_begun.wait(PATIENCE_S)
            assert turns.has_guest
            reader, second = Worker(turns), Worker(turns, is_handed=True)
            assert not reader.has_begun.is_set() and not second.has_begun.is_set()
            taker.end()
            assert second.has_begun.wait(PATIENCE_S)
            second.end()
        late = Worker(turns, is_handed=True)
        assert not late.has_begun.is_set() and not reader.has_begun.is_set()
    reader.may_end.set()
    late.end()
    reader.end()
    assert reader.has_begun.is_set() and late.has_begun.is_set()


def test_who_lent_the_turn_goes_on_when_its_guest_has_left():
    turns = Turns(PATIENCE_S)
    is_over = threading.Event()
    taker = []

    def hand_over():
        with turns.turn(WIDE_BYTES):
            with turns.lent():
                taker.append(Worker(turns, is_handed=True))
                assert taker[0].has_begun.wait(PATIENCE_S)
            is_over.set()

    giver = threading.Thread(target=hand_over)
    giver.start()
    while not taker:
        time.sleep(0.001)
    assert not is_over.wait(0.05)
    taker[0].end()
    assert is_over.wait(PATIENCE_S)
    giver.join()


def test_nobody_waits_for_ever_for_a_turn_that_does_not_end():
    turns = Turns(wait_s=0.01)
    first = Worker(turns)
    assert first.has_begun.wait(PATIENCE_S)
    with turns.turn(WIDE_BYTES), turns.paused():
        pass
    first.end()
    with turns.turn(WIDE_BYTES):
        other = Worker(turns)
    assert other.has_begun.wait(PATIENCE_S)
    other.end()


def test_a_turn_ends_when_its_generator_is_closed_by_another_thread():
    turns = Turns(PATIENCE_S)

    def rows():
        with turns.turn(WIDE_BYTES):
            yield 1

    reader = rows()
    assert next(reader) == 1
    closer = threading.Thread(target=reader.close)
    closer.start()
    closer.join()
    other = Worker(turns)
    assert other.has_begun.wait(PATIENCE_S)
    other.end()


def test_who_waits_until_a_row_is_let_go_is_called_once_by_the_next_go_on_of_his_thread():
    turns = Turns(PATIENCE_S)
    called = []

    def wait():
        called.append(threading.get_ident())

    turns.when_let_go(wait)
    turns.when_let_go(wait)
    other = threading.Thread(target=turns.go_on)
    other.start()
    other.join()
    assert called == []
    turns.go_on()
    turns.go_on()
    assert called == [threading.get_ident()]


def test_who_is_called_may_pause_the_turn_that_goes_on_afterwards():
    turns = Turns(PATIENCE_S)
    workers = []

    def wait():
        with turns.paused():
            workers.append(Worker(turns))
            assert workers[0].has_begun.wait(PATIENCE_S)
            workers[0].end()

    with turns.turn(WIDE_BYTES):
        turns.when_let_go(wait)
        turns.go_on()
        late = Worker(turns)
        assert len(workers) == 1
        assert not late.has_begun.is_set()
    assert late.has_begun.wait(PATIENCE_S)
    late.end()


def test_a_turn_that_was_left_without_its_end_is_given_up():
    turns = Turns(PATIENCE_S)
    left = turns.turn(WIDE_BYTES)
    left.__enter__()  # as a generator that is held by the traceback of an error
    turns.when_let_go(lambda: None)
    turns.give_up()
    other = Worker(turns)
    assert other.has_begun.wait(PATIENCE_S)
    other.end()
    assert not turns._waits
