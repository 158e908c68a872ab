"""How often the loop of a cluster in one process asks for events from outside."""

import asyncio
import socket

from engine.minicluster.cluster_loop import TURNS, SeldomSelector, cluster_loop


def new_pair(selector):
    here, there = socket.socketpair()
    selector.register(here, 1)
    return here, there


def test_an_event_is_seen_at_once_by_who_waits_and_after_some_turns_by_who_has_work():
    with SeldomSelector() as selector:
        here, there = new_pair(selector)
        with here, there:
            there.send(b"x")
            assert [key.fileobj for key, _ in selector.select()] == [here]
            assert [len(selector.select(0)) for _ in range(2 * TURNS)] == 2 * ([0] * (TURNS - 1) + [1])
            assert selector.select(0) == []
            assert len(selector.select(5.0)) == 1


def test_a_loop_that_is_never_idle_hears_of_its_sockets():
    async def main():
        here, there = socket.socketpair()
        with here, there:
            reader, writer = await asyncio.open_connection(sock=here)
            there.send(b"x")
            heard = asyncio.create_task(reader.read(1))
            turns = 0
            while not heard.done():
                await asyncio.sleep(0)
                turns += 1
            writer.close()
            return turns

    with asyncio.Runner(loop_factory=cluster_loop) as runner:
        assert runner.run(main()) <= 4 * TURNS


def test_a_loop_with_nothing_to_do_is_woken_by_another_thread():
    loop = cluster_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(loop.run_in_executor(None, lambda: None), 10))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
