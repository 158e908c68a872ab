"""Credits of one channel under any interleaving of producer, consumer and network."""

from __future__ import annotations

from collections import deque

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.native._credit_probe import Receiver, Sender

OK, GAP, NOT_GRANTED, OVERFLOW = range(4)
EXCLUSIVE = 2
POOL = 6


class CreditMachine(RuleBasedStateMachine):
    """Two ends with a queue of frames in each direction; the pool behind the receiver is small."""

    def __init__(self) -> None:
        super().__init__()
        self.sender = Sender(EXCLUSIVE)
        self.receiver = Receiver(EXCLUSIVE, EXCLUSIVE)
        self.to_receiver: deque[tuple[str, int, int]] = deque()
        self.to_sender: deque[int] = deque()
        self.produced = self.sent = self.received = 0
        self.held = 0
        self.in_pool = POOL - EXCLUSIVE
        self.is_queued = False
        self.is_ended = False

    @rule()
    @precondition(lambda self: not self.is_ended)
    def produce(self) -> None:
        self.produced += 1

    @rule()
    def send(self) -> None:
        backlog = self.produced - self.sent
        if backlog == 0:
            return
        if self.sender.may_send(False):
            self.to_receiver.append(("data", self.sender.next(False), backlog - 1))
            self.sent += 1
        else:
            assert self.sender.credit == 0
            if self.sender.announces(backlog):
                assert not self.sender.announces(backlog), "once is enough"
                self.to_receiver.append(("backlog", 0, backlog))

    @rule()
    @precondition(lambda self: not self.is_ended and self.produced == self.sent)
    def end(self) -> None:
        assert self.sender.may_send(True), "an event needs no credit"
        before = self.sender.credit
        self.to_receiver.append(("end", self.sender.next(True), 0))
        assert self.sender.credit == before
        self.is_ended = True

    @rule()
    @precondition(lambda self: self.to_receiver)
    def deliver(self) -> None:
        kind, sequence, backlog = self.to_receiver.popleft()
        if kind == "backlog":
            self.receiver.on_backlog(backlog)
            return
        assert self.receiver.on_frame(sequence + 1, kind == "end", backlog) == GAP
        assert self.receiver.on_frame(sequence, kind == "end", backlog) == OK
        assert self.receiver.on_frame(sequence, kind == "end", backlog) == GAP
        if kind == "data":
            self.received += 1
            self.held += 1
            self.is_queued = self.is_queued or self.receiver.is_due

    @rule()
    @precondition(lambda self: self.held)
    def recycle(self) -> None:
        self.held -= 1
        if self.receiver.free < EXCLUSIVE:
            self._add_buffer()
        else:
            self.in_pool += 1

    @rule()
    @precondition(lambda self: self.in_pool)
    def take_floating(self) -> None:
        if self.receiver.wanted:
            self.in_pool -= 1
            self._add_buffer()

    @rule()
    @precondition(lambda self: self.is_queued)
    def announce(self) -> None:
        self.is_queued = False
        credit = self.receiver.announce()
        assert credit > 0
        self.to_sender.append(credit)

    @rule()
    @precondition(lambda self: self.to_sender)
    def take_credit(self) -> None:
        assert self.sender.add_credit(self.to_sender.popleft()) == OK

    @rule(credit=st.sampled_from([0, 1 << 20, (1 << 32) - 1]))
    def refuse_credit_that_nobody_can_have(self, credit: int) -> None:
        if credit == 0 or self.sender.credit > 0:
            assert self.sender.add_credit(credit) == OVERFLOW

    def _add_buffer(self) -> None:
        self.receiver.add_buffer()
        self.is_queued = self.is_queued or self.receiver.is_due

    @invariant()
    def no_credit_is_lost_or_made(self) -> None:
        under_way = sum(kind == "data" for kind, _, _ in self.to_receiver)
        assert self.sender.credit + sum(self.to_sender) + under_way == self.receiver.announced
        assert self.receiver.free + self.held + self.in_pool == POOL
        # what is due stays so until it is announced
        assert self.receiver.is_due == self.is_queued == (0 < self.receiver.unannounced >= self.receiver.announced)

    @invariant()
    def data_arrives_once(self) -> None:
        under_way = sum(kind == "data" for kind, _, _ in self.to_receiver)
        assert self.received + under_way == self.sent <= self.produced

    def teardown(self) -> None:
        """Whatever has happened, both ends can finish: no credit is stuck."""
        for _ in range(20 * (self.produced + 2)):
            self.send()
            while self.to_receiver:
                self.deliver()
            while self.held:
                self.recycle()
            while self.in_pool and self.receiver.wanted:
                self.take_floating()
            if self.is_queued:
                self.announce()
            while self.to_sender:
                self.take_credit()
        assert self.received == self.produced
        self.no_credit_is_lost_or_made()


TestCredits = CreditMachine.TestCase
TestCredits.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_sender_is_told_of_several_buffers_at_once_and_of_any_one_when_it_has_none() -> None:
    receiver = Receiver(4, 4)
    receiver.add_buffer()
    assert not receiver.is_due, "four may still be filled"
    assert [(receiver.on_frame(sequence, False, 0), receiver.is_due) for sequence in range(3)] == [
        (OK, False),
        (OK, False),
        (OK, True),
    ]
    assert receiver.announce() == 1
    assert not receiver.is_due, "nothing is unannounced"
    assert [(receiver.on_frame(sequence, False, 0), receiver.is_due) for sequence in (3, 4)] == [(OK, False)] * 2
    receiver.add_buffer()
    assert receiver.is_due, "nothing may be filled"


def test_data_without_credit_is_refused() -> None:
    receiver = Receiver(1, 1)
    assert receiver.on_frame(0, False, 0) == OK
    assert receiver.on_frame(1, False, 0) == NOT_GRANTED
    assert receiver.on_frame(1, True, 0) == OK


def test_backlog_is_announced_again_after_a_credit_was_used() -> None:
    sender = Sender(0)
    assert sender.announces(3)
    assert not sender.announces(4)
    assert sender.add_credit(1) == OK
    assert not sender.announces(4), "there is credit"
    sender.next(False)
    assert sender.announces(3)
    assert not sender.announces(0)
