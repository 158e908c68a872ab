"""TaskExecutorWatch: who does not listen is lost at once, who is silent after the time-out."""

from __future__ import annotations

import asyncio

import pytest

from engine.clock import ManualClock
from engine.errors import EngineError, VersionMismatchError
from engine.ids import ResourceId
from engine.jobmaster.task_executor_watch import TaskExecutorWatch
from engine.rpc.errors import AccessDeniedError, EndpointUnreachableError, RpcTimeoutError, UntrustedReplyError
from engine.rpc.request import ACKNOWLEDGE

RESOURCE_ID = ResourceId("a" * 32)


class Peer:
    """An RpcService whose other side answers with each of some outcomes once, and then with the last."""

    def __init__(self, *outcomes: EngineError | None) -> None:
        self.outcomes = list(outcomes)
        self.asked = 0

    def connect(self, address, epoch):
        return self

    async def ask(self, request, timeout_s=None):
        self.asked += 1
        await asyncio.sleep(0)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if outcome is not None:
            raise outcome
        return ACKNOWLEDGE


def suspected(peer):
    """Look after a TaskExecutor twice at one time; return who was lost, and who has answered."""

    async def body():
        lost = []

        def note(resource_id, reason):
            watch.forget(resource_id)
            lost.append((resource_id, reason))

        watch = TaskExecutorWatch(peer, "me", 1, 5.0, 20.0, ManualClock(), lambda work, name: None, note)
        assert not await watch.look_after(RESOURCE_ID) and not peer.asked, "it is not watched"
        watch.watch(RESOURCE_ID, "there")
        first, second = await asyncio.gather(watch.look_after(RESOURCE_ID), watch.look_after(RESOURCE_ID))
        assert not second, "it is being asked"
        return lost, first

    return asyncio.run(body())


def test_who_does_not_listen_is_lost_at_once():
    lost = [(RESOURCE_ID, "nothing answers at its address")]
    assert suspected(Peer(EndpointUnreachableError("refused"))) == (lost, False)


@pytest.mark.parametrize("refusal", [AccessDeniedError("its clock"), VersionMismatchError("its version")])
def test_who_takes_no_message_is_lost_with_what_it_says(refusal):
    assert suspected(Peer(refusal)) == ([(RESOURCE_ID, str(refusal))], False)


@pytest.mark.parametrize("once", [EndpointUnreachableError("the connection broke"), AccessDeniedError("changed")])
def test_what_happened_once_is_no_loss_when_the_next_call_is_taken(once):
    peer = Peer(once, None)
    assert suspected(peer) == ([], True) and peer.asked == 2


@pytest.mark.parametrize("failure", [RpcTimeoutError("late"), UntrustedReplyError("changed"), EngineError("odd"), None])
def test_who_is_silent_or_odd_is_there(failure):
    assert suspected(Peer(failure)) == ([], failure is None)
