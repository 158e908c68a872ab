"""Signals wait while something is cleaned up, and raise at its end; elsewhere they raise at once."""

import signal
import threading

import pytest

from engine.client import termination
from engine.client.termination import HungUpError, TerminatedError, after, leaving_on_termination, uninterrupted


@pytest.fixture(autouse=True)
def now(monkeypatch):
    """Signals of this test alone, in a time that stands still until it is moved."""
    handlers = {
        number: signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    signals = termination._Signals()
    signals._is_watching_the_end = True
    clock = [100.0]
    monkeypatch.setattr(termination, "_SIGNALS", signals)
    monkeypatch.setattr(termination.time, "monotonic", lambda: clock[0])
    yield clock
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, TerminatedError), (signal.SIGHUP, HungUpError)],
    ids=["int", "term", "hup"],
)
def test_what_is_cleaned_up_is_cleaned_up_whole_however_often_it_is_interrupted(number, error):
    done = []
    with pytest.raises(error) as raised, uninterrupted():
        for step in range(3):
            signal.raise_signal(number)
            done.append(step)
    assert done == [0, 1, 2]
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    assert getattr(raised.value, "code", 128 + number) == 128 + number


def test_the_interrupt_takes_the_place_of_the_error_that_it_caused():
    def cancelled():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("the job was cancelled")

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        cancelled()


def test_blocks_within_blocks_raise_at_the_end_of_the_outermost():
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        done.append("between")
    assert done == ["between"]


@pytest.mark.parametrize("is_early", [True, False])
def test_who_listens_is_told_once(is_early):
    told = []
    with pytest.raises(KeyboardInterrupt), uninterrupted() as interrupts:
        if is_early:
            signal.raise_signal(signal.SIGINT)
        interrupts.tell(lambda: told.append(1))
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert told == [1]


def test_a_key_that_bounces_is_one_interrupt_and_later_ones_are_others(now):
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
    now[0] += 0.02
    signal.raise_signal(signal.SIGINT)
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    now[0] += 2
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_who_waits_too_long_for_the_cleaning_can_leave(now):
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        now[0] += 9
        signal.raise_signal(signal.SIGINT)
        now[0] += 2
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_handlers_are_given_back_and_those_of_a_script_are_kept(now):
    with uninterrupted(), leaving_on_termination():
        assert signal.getsignal(signal.SIGINT) != signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    taken = []
    signal.signal(signal.SIGINT, lambda *_: taken.append(1))
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert taken == [1]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(TerminatedError), leaving_on_termination():
        signal.raise_signal(signal.SIGTERM)
    now[0] += 2
    with uninterrupted():
        pass
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_other_threads_neither_take_nor_keep_signals():
    seen = []

    def work():
        with uninterrupted() as interrupts, leaving_on_termination():
            interrupts.tell(lambda: seen.append("told"))
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_signals_wait_while_python_ends():
    termination._SIGNALS._end()
    signal.raise_signal(signal.SIGINT)
    with uninterrupted():
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_is_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with leaving_on_termination():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_what_is_said_to_a_terminal_that_is_gone_is_no_error(monkeypatch):
    monkeypatch.setattr(termination, "guard_output", lambda: None)
    with after(HungUpError(129)):
        raise OSError(5, "Input/output error")
    with pytest.raises(OSError, match="Input"), after(TerminatedError(143)):
        raise OSError(5, "Input/output error")
