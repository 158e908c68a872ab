"""TaskExecutorWatch: who does not listen is lost at once, who is silent after the time-out."""

from __future__ import annotations

import asyncio

import pytest

from engine.clock import ManualClock
from engine.errors import EngineError
from engine.ids import ResourceId
from engine.jobmaster.task_executor_watch import TaskExecutorWatch
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError, UntrustedReplyError
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
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if outcome is not None:
            raise outcome
        return ACKNOWLEDGE


def suspected(peer):
    """Look after a TaskExecutor twice at one time; return who was lost."""

    async def body():
        tasks, lost = [], []

        def note(resource_id, reason):
            watch.forget(resource_id)
            lost.append((resource_id, reason))

        watch = TaskExecutorWatch(
            peer, "me", 1, 5.0, 20.0, ManualClock(), lambda work, name: tasks.append(asyncio.create_task(work)), note
        )
        watch.look_after(RESOURCE_ID)
        assert not tasks, "it is not watched"
        watch.watch(RESOURCE_ID, "there")
        watch.look_after(RESOURCE_ID)
        watch.look_after(RESOURCE_ID)
        assert len(tasks) == 1
        await asyncio.gather(*tasks)
        return lost

    return asyncio.run(body())


def test_who_does_not_listen_is_lost_at_once():
    assert suspected(Peer(EndpointUnreachableError("refused"))) == [(RESOURCE_ID, "nothing answers at its address")]


def test_a_connection_that_broke_once_is_no_loss_when_the_next_one_is_taken():
    peer = Peer(EndpointUnreachableError("the connection broke"), None)
    assert suspected(peer) == [] and peer.asked == 2


@pytest.mark.parametrize("failure", [RpcTimeoutError("late"), UntrustedReplyError("changed"), EngineError("odd"), None])
def test_who_is_silent_or_odd_is_there(failure):
    assert suspected(Peer(failure)) == []
