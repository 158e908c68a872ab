"""Programs of another version are refused by both sides, whichever begins, and say which ones they are."""

from __future__ import annotations

import json

import pytest

from engine.errors import ConfigurationError, VersionMismatchError
from engine.rpc.http_messages import Access, Route, json_response
from engine.rpc.program import PROGRAM_HEADER, Program, heard
from engine.rpc.refusals import Reason
from tests.rpc.served import served
from tests.rpc.test_local_gateway import Add

OURS = Program("0.2.0", "aaaa1111", "jm-1", "JobManager")
OTHERS = [Program("0.3.0", "aaaa1111", "tm-7", "TaskManager"), Program("0.2.0", "bbbb2222", "tm-7", "TaskManager")]
TELLS_OURS = "the JobManager on jm-1 has Drey 0.2.0 (protocol aaaa1111)"


@pytest.mark.parametrize("other", OTHERS)
def test_both_are_named_with_their_hosts(other):
    with pytest.raises(VersionMismatchError) as refused:
        OURS.check(other.header)
    text = str(refused.value)
    assert f"the TaskManager on tm-7 has Drey {other.version} (protocol {other.protocol})" in text
    assert TELLS_OURS in text and "install the same version on all machines" in text
    assert isinstance(refused.value, ConfigurationError) and not refused.value.retryable


def test_the_same_one_is_taken_whatever_its_host_and_role():
    OURS.check(Program("0.2.0", "aaaa1111", "elsewhere", "client").header)


def spoken(oldest, newest, digits="aaaa1111", version="0.3.0"):
    return Program(version, f"{oldest}-{newest}:{digits}", "tm-7", "TaskManager")


@pytest.mark.parametrize("other", [spoken(2, 3), spoken(1, 2, "b", "0.2.0"), spoken(3, 4, "c", "0.4.0"), spoken(2, 9)])
def test_one_that_knows_a_form_of_messages_that_this_one_knows_is_understood(other):
    ours = spoken(2, 3, version="0.3.1")
    ours.check(other.header)
    other.check(ours.header)


@pytest.mark.parametrize("other", [spoken(1, 1), spoken(4, 5, "d", "0.5.0"), spoken(3, 3, "other"), OURS])
def test_of_programs_without_a_common_form_both_refuse_the_other_one_and_say_what_to_do(other):
    """The third has the same newest form with other messages; the last says no numbers."""
    ours = spoken(2, 3)
    for one, heard_one in ((ours, other), (other, ours)):
        with pytest.raises(VersionMismatchError, match="install the same version on all machines") as refused:
            one.check(heard_one.header)
        assert str(one) in str(refused.value) and str(heard_one) in str(refused.value)
    assert ("upgrade by way of one between them" in str(refused.value)) == (other.protocol[0] in "14")


@pytest.mark.parametrize(
    "header", [None, "", "0.2.0", "0.2.0 aaaa1111 jm-1", "0.2.0 a b c d", "a\n b c d", "a b c <b>"]
)
def test_who_does_not_say_it_readably_has_another_one(header):
    assert heard(header) is None
    with pytest.raises(VersionMismatchError, match="the process at tm-7 does not say which Drey it has, so it is"):
        OURS.check(header, "tm-7")


@pytest.mark.parametrize("other", [*OTHERS, None])
@pytest.mark.parametrize("calls", [True, False])
def test_a_call_between_two_versions_is_refused_before_anything_is_decoded(run, other, calls):
    """``calls``: whether ours is the one that calls; the other one may be too old to say what it is."""

    async def scenario(world):
        called, calling = world.servers
        called.program, calling.program = (other, OURS) if calls else (OURS, other)
        with pytest.raises(VersionMismatchError) as refused:
            await world.gateway().ask(Add([1]))
        text = str(refused.value)
        assert TELLS_OURS in text
        if other is not None:
            assert f"the TaskManager on tm-7 has Drey {other.version} (protocol {other.protocol})" in text
            assert world.endpoint.numbers == []

    run(scenario)


def test_programs_of_one_version_speak_to_each_other(run):
    async def scenario(world):
        for server in world.servers:
            server.program = OURS
        assert (await world.gateway().ask(Add([1, 2]))).numbers == [1, 2]

    run(scenario)


def test_people_and_their_tools_are_answered_whatever_they_are(refusals):
    async def submit(request):
        return json_response({})

    internal = Route("POST", "/internal", submit, Access.SECRET, is_internal=True)
    with served(routes=[internal]) as one:
        one.server.program = OURS
        assert one.ask("GET", "/open/x")[0] == 200 and one.ask("POST", "/echo", b"a")[0] == 200
        assert one.ask("POST", "/internal")[0] == 412
        for target in ("/open/x", "/echo"):
            method = "GET" if "open" in target else "POST"
            assert one.ask(method, target, headers={PROGRAM_HEADER: OURS.header})[0] == 200
            status, answer = one.ask(method, target, headers={PROGRAM_HEADER: OTHERS[0].header})
            assert status == 412 and TELLS_OURS in json.loads(answer)["errors"][0]
    assert refusals.counts[Reason.VERSION] == 3
    (caller,) = refusals.latest
    assert (caller.address, caller.reason, caller.count) == ("127.0.0.1", Reason.VERSION, 3)


def test_a_stranger_does_not_hear_which_version_this_is():
    with served() as one:
        one.server.program = OURS
        status, answer = one.ask("POST", "/echo", headers={PROGRAM_HEADER: OTHERS[0].header}, signed=False)
    assert status == 401 and b"0.2.0" not in answer
