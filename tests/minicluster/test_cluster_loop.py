"""The loop of a cluster in one process: order, time, errors, other threads, and how often it looks for events."""

import asyncio
import contextvars
import socket
import threading

import pytest

from engine.minicluster.local_loop import TURNS, LocalLoop


def run(main):
    with asyncio.Runner(loop_factory=LocalLoop) as runner:
        return runner.run(main)


def test_an_event_is_seen_after_some_turns_by_who_has_work():
    async def main():
        here, there = socket.socketpair()
        with here, there:
            loop, heard = asyncio.get_running_loop(), []
            loop.add_reader(here, lambda: heard.append(here.recv(1)))
            turns = []
            for _ in range(3):
                there.send(b"x")
                turns.append(0)
                while not heard:
                    await asyncio.sleep(0)
                    turns[-1] += 1
                heard.clear()
            loop.remove_reader(here)
            return turns

    assert run(main())[1:] == [TURNS, TURNS]


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

    assert run(main()) <= 4 * TURNS


def test_a_loop_with_nothing_to_do_is_woken_by_another_thread():
    loop = LocalLoop()
    try:
        loop.run_until_complete(asyncio.wait_for(loop.run_in_executor(None, lambda: None), 10))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def test_threads_that_queue_calls_while_the_loop_waits_and_works_are_all_heard():
    async def main():
        loop, heard = asyncio.get_running_loop(), []

        def call(number):
            for index in range(500):
                answered = threading.Event()
                loop.call_soon_threadsafe(heard.append, (number, index))
                loop.call_soon_threadsafe(answered.set)
                assert answered.wait(10)

        await asyncio.gather(*(asyncio.to_thread(call, number) for number in range(3)))
        return heard

    heard = run(main())
    assert sorted(heard) == [(number, index) for number in range(3) for index in range(500)]
    assert [index for number, index in heard if number == 1] == list(range(500))


def test_calls_are_made_in_order_and_timed_ones_at_their_time():
    async def main():
        loop, made = asyncio.get_running_loop(), []
        loop.call_later(0.03, made.append, "later")
        soon = loop.call_at(loop.time() + 0.01, made.append, "sooner")
        loop.call_later(0.02, made.append, "never").cancel()
        loop.call_soon(made.append, 1)
        loop.call_soon(made.append, 2).cancel()
        loop.call_soon(made.append, 3)
        assert soon.when() > loop.time() - 0.01 and not soon.cancelled()
        await asyncio.sleep(0.05)
        return made

    assert run(main()) == [1, 3, "sooner", "later"]


def test_timers_that_are_stopped_are_not_kept():
    async def main():
        loop = asyncio.get_running_loop()
        fired = asyncio.Event()
        loop.call_later(0.02, fired.set)
        for _ in range(1000):
            loop.call_later(1000, fired.clear).cancel()
        await asyncio.sleep(0)
        kept = len(loop._scheduled)
        await asyncio.wait_for(fired.wait(), 10)
        return kept

    assert run(main()) <= 2


def test_the_error_of_a_call_is_told_and_the_loop_goes_on():
    async def main():
        loop, told = asyncio.get_running_loop(), []
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(0.01)
        return told

    (error,) = run(main())
    assert isinstance(error, ZeroDivisionError)


def test_a_call_has_the_context_in_which_it_was_queued():
    async def main():
        loop, name, seen = asyncio.get_running_loop(), contextvars.ContextVar("name"), []
        name.set("outer")
        loop.call_soon(lambda: (seen.append(name.get()), name.set("inner")))
        other = contextvars.copy_context()
        other.run(name.set, "other")
        loop.call_soon(lambda: seen.append(name.get()), context=other)
        await asyncio.sleep(0)
        return [*seen, name.get()]

    assert run(main()) == ["outer", "other", "outer"]


def test_a_closed_loop_takes_no_calls():
    loop = LocalLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon_threadsafe(print)


def test_what_asyncio_builds_on_a_loop_works_on_this_one():
    async def later(value):
        await asyncio.sleep(0.001)
        return value

    async def use():
        running = asyncio.get_running_loop()
        assert await asyncio.gather(*(later(number) for number in range(20))) == list(range(20))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        async with asyncio.TaskGroup() as group:
            named = group.create_task(later(1), name="named")
        assert (named.get_name(), named.result()) == ("named", 1)
        assert await running.run_in_executor(None, lambda: 2) == 2
        queue = asyncio.Queue(1)
        filling = asyncio.create_task(fill(queue))
        assert [await queue.get() for _ in range(3)] == [0, 1, 2]
        await filling
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            assert await reader.read() == b"answer"
            writer.close()
        sleeping = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping

    async def fill(queue):
        for number in range(3):
            await queue.put(number)

    async def answer(_reader, writer):
        writer.write(b"answer")
        writer.close()

    run(use())
