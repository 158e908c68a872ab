"""Who was turned away is counted and told, and strangers cannot fill a log or the memory with it."""

from __future__ import annotations

import logging

import pytest

from engine.clock import ManualClock
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.refusals import CALLERS_MAX, TELL_S, Reason, Refusals
from tests.rpc.served import SECRET, served


def test_a_caller_is_told_of_once_in_a_while_with_how_often_it_was_refused_in_between(caplog):
    clock = ManualClock(0.0)
    refused = Refusals(clock)
    for _ in range(5):
        refused.note(Reason.WRONG_SECRET, "10.0.0.7", "POST /jobs", "it has another secret")
    refused.note(Reason.WRONG_SECRET, "10.0.0.8", "POST /jobs", "it has another secret")
    clock.advance(TELL_S)
    refused.note(Reason.WRONG_SECRET, "10.0.0.7", "POST /jobs", "it has another secret")
    assert caplog.messages == [
        "POST /jobs from 10.0.0.7 is refused: it has another secret",
        "POST /jobs from 10.0.0.8 is refused: it has another secret",
        "POST /jobs from 10.0.0.7 is refused: it has another secret (and 4 more since the last such line)",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert refused.counts[Reason.WRONG_SECRET] == 7 and refused.counts[Reason.VERSION] == 0
    assert [(each.address, each.count) for each in refused.latest] == [("10.0.0.7", 6), ("10.0.0.8", 1)]


def test_the_callers_that_were_refused_last_are_remembered_and_no_more():
    refused = Refusals()
    for number in range(CALLERS_MAX + 10):
        refused.note(Reason.MISSING_SECRET, f"10.0.1.{number}", "GET /", "it shows none")
    refused.note(Reason.MISSING_SECRET, "10.0.1.20", "GET /", "it shows none")
    addresses = [each.address for each in refused.latest]
    assert len(addresses) == CALLERS_MAX and addresses[:2] == ["10.0.1.20", f"10.0.1.{CALLERS_MAX + 9}"]
    assert "10.0.1.9" not in addresses and refused.counts[Reason.MISSING_SECRET] == CALLERS_MAX + 11


@pytest.mark.parametrize(
    ("sent", "reason"),
    [("none", Reason.MISSING_SECRET), ("wrong", Reason.WRONG_SECRET), ("late", Reason.CLOCK)],
)
def test_a_server_tells_apart_why_it_refuses_a_caller(refusals, sent, reason):
    with served() as one:
        signers = {"wrong": Credentials(b"another secret!!!"), "late": Credentials(SECRET, ManualClock(0.0))}
        signer = signers.get(sent)
        headers = {} if signer is None else {AUTHORIZATION: signer.sign("POST", "/echo")}
        assert one.ask("POST", "/echo", headers=headers, signed=False)[0] == 401
    assert {each for each, count in refusals.counts.items() if count} == {reason}
    (caller,) = refusals.latest
    assert (caller.reason, caller.address, caller.what) == (reason, "127.0.0.1", "POST /echo") and caller.why
