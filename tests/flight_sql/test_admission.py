"""Places: so many at once, the others in order, and beyond the queue none."""

import threading

import pytest

from engine.flight_sql import admission as module
from engine.flight_sql.admission import Admission, BusyError, GoneError


def wait_for(condition):
    event = threading.Event()
    for _ in range(2000):
        if condition():
            return
        event.wait(0.005)
    raise AssertionError("it did not come")


def never():
    return False


def test_places_are_given_in_order_and_given_back_once():
    admission = Admission(1, 10, lambda: None)
    first, order, threads = admission.place(never), [], []

    def run(number):
        with admission.place(never):
            order.append(number)

    for number in range(4):
        threads.append(threading.Thread(target=run, args=(number,)))
        threads[-1].start()
        wait_for(lambda number=number: admission.waiting == number + 1)
    assert (admission.running, order) == (1, [])
    first.give_back()
    first.give_back()
    for thread in threads:
        thread.join(30)
    assert (order, admission.running, admission.waiting) == ([0, 1, 2, 3], 0, 0)


def test_beyond_the_queue_a_statement_is_refused_at_once():
    admission = Admission(1, 0, lambda: None)
    with admission.place(never), pytest.raises(BusyError, match="busy: 1 statements run and 0 wait"):
        admission.place(never)
    with admission.place(never):
        assert admission.running == 1
    assert admission.running == 0


def test_a_client_that_goes_leaves_the_queue(monkeypatch):
    monkeypatch.setattr(module, "GIVE_WAY_S", 0.0)
    asked = threading.Event()
    admission = Admission(1, 10, asked.set)
    with admission.place(never):
        with pytest.raises(GoneError):
            admission.place(lambda: True)
        assert admission.waiting == 0
        thread = threading.Thread(target=lambda: admission.place(never).give_back())
        thread.start()
        assert asked.wait(30), "those that run were not asked to make room"
    thread.join(30)
    assert admission.running == 0
