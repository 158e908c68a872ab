"""Network buffer pools: fair shares when pools come and go, waiting, recycling."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from engine.errors import ConfigurationError, IllegalTransitionError, TaskCancelledError
from engine.exchange.buffer_pool import Buffer, BufferKind, LocalBufferPool, NetworkBufferPool, unpooled_buffer
from tests.exchange.world import World


def take(pool: LocalBufferPool, count: int) -> list[Buffer]:
    buffers = [pool.request(0) for _ in range(count)]
    assert None not in buffers
    return buffers


def test_segments_are_allocated_lazily_and_reused() -> None:
    network = NetworkBufferPool(2048, 32768)
    assert network.allocated_count == 0
    pool = network.local_pool(1, 2048)
    for _ in range(100):
        pool.request(0).recycle()
    assert network.allocated_count == 32  # one slab of 1 MiB
    assert network.in_use == 0
    network.close()


def test_one_local_pool_gets_everything_and_two_share_the_spare_equally() -> None:
    network = NetworkBufferPool(20, 4096)
    first = network.local_pool(2, 100)
    assert first.size == 20
    second = network.local_pool(6, 100)
    assert (first.size, second.size) == (8, 12)
    third = network.local_pool(1, 2)
    assert third.size == 2
    assert first.size + second.size + third.size <= 20
    assert (first.size - 2, second.size - 6) == (5, 5)
    second.close()
    assert (first.size, third.size) == (18, 2)
    first.close()
    third.close()
    network.close()


def test_a_pool_never_gets_more_than_its_maximum() -> None:
    network = NetworkBufferPool(20, 4096)
    pool = network.local_pool(1, 3)
    buffers = take(pool, 3)
    assert pool.request(0) is None
    for buffer in buffers:
        buffer.recycle()
    network.close()


def test_a_shrunk_pool_gives_back_to_the_network_pool() -> None:
    network = NetworkBufferPool(10, 4096)
    first = network.local_pool(1, 10)
    held = take(first, 10)
    second = network.local_pool(1, 10)
    assert first.size == 5
    for buffer in held[:4]:
        buffer.recycle()
    assert first.request(0) is None  # still above its size
    others = take(second, 4)
    held[4].recycle()
    held[5].recycle()
    held.append(first.request(0))
    assert first.in_use == 5
    for buffer in [*held[6:], *others]:
        buffer.recycle()
    assert network.in_use == 0
    network.close()


def test_the_required_minimum_is_there_even_when_others_hold_everything() -> None:
    network = NetworkBufferPool(4, 4096)
    greedy = network.local_pool(1, 4)
    held = take(greedy, 4)
    late = network.local_pool(3, 4)
    minimum = take(late, 3)
    assert late.request(0) is None
    assert network.in_use == 7
    for buffer in [*held, *minimum]:
        buffer.recycle()
    network.close()


def test_a_network_pool_that_is_too_small_degrades_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    network = NetworkBufferPool(4, 4096)
    with caplog.at_level(logging.INFO):
        first = network.local_pool(3, 3, "a")
        second = network.local_pool(3, 3, "b")
        third = network.local_pool(3, 3, "c")
    assert [pool.required for pool in (first, second, third)] == [3, 1, 1]
    assert caplog.text.count("it gets 1") == 2
    buffers = [*take(first, 3), *take(second, 1), *take(third, 1)]
    for buffer in buffers:
        buffer.recycle()
    network.close()


def test_shrinking_tells_the_owner_how_many_segments_are_wanted() -> None:
    network = NetworkBufferPool(10, 4096)
    asked: list[int] = []
    pool = network.local_pool(1, 10)
    pool.set_owner(asked.append)
    held = take(pool, 10)
    other = network.local_pool(5, 5)
    assert asked == [5]
    for buffer in held:
        buffer.recycle()
    other.close()
    assert asked == [5]
    network.close()


def test_a_waiting_request_gets_the_buffer_that_another_thread_recycles(world: World) -> None:
    pool = world.network.local_pool(1, 1)
    buffer = pool.request(0)
    got: list[Buffer] = []
    world.run(lambda: got.append(pool.request(-1)))
    while not pool.is_waiting:
        time.sleep(0.001)
    buffer.recycle()
    world.join()
    assert len(got) == 1
    assert pool.blocked_ns > 0
    got[0].recycle()


def test_a_waiting_request_gets_what_another_pool_gives_back(world: World) -> None:
    greedy = world.network.local_pool(1, 64)
    held = take(greedy, 64)
    pool = world.network.local_pool(1, 64)
    mine = take(pool, 1)
    got: list[Buffer] = []
    world.run(lambda: got.append(pool.request(-1)))
    while not pool.is_waiting:
        time.sleep(0.001)
    for buffer in held:
        buffer.recycle()
    world.join()
    for buffer in [*mine, *got]:
        buffer.recycle()


def test_what_is_given_back_wakes_those_who_may_have_it_and_not_all_who_wait(world: World) -> None:
    count, turns = 12, 150
    network = NetworkBufferPool(count + 1, 4096)
    pools = [network.local_pool(1, 1) for _ in range(count)]
    held = [pool.request(0) for pool in pools]
    others: list[int] = []

    def wait_for_one(pool: LocalBufferPool) -> None:
        others.append(threading.get_native_id())
        buffer = pool.request(-1)
        assert buffer is not None
        buffer.recycle()

    for pool in pools:
        world.run(partial(wait_for_one, pool))
    while not all(pool.is_waiting for pool in pools):
        time.sleep(0.001)
    before = sum(map(times_asleep, others))
    busy = network.local_pool(1, 1)
    for _ in range(turns):
        take(busy, 1)[0].recycle()
        time.sleep(0)
    # They look by themselves now and then, which is told apart from being woken by each of the turns.
    assert sum(map(times_asleep, others)) - before < turns * count / 4
    for buffer in held:
        buffer.recycle()
    world.join()
    assert not world.failures
    network.close()


def times_asleep(thread_id: int) -> int:
    """Return how often a thread of this process has gone to sleep."""
    lines = Path(f"/proc/self/task/{thread_id}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt_switches")).split()[1])


def test_closing_a_pool_wakes_its_waiter_with_a_cancellation(world: World) -> None:
    pool = world.network.local_pool(1, 1)
    buffer = pool.request(0)
    world.run(lambda: pool.request(-1))
    while not pool.is_waiting:
        time.sleep(0.001)
    pool.close()
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)
    assert not TaskCancelledError.retryable
    with pytest.raises(TaskCancelledError):
        pool.request(0)
    buffer.recycle()


def test_a_timed_request_returns_nothing_after_its_time() -> None:
    network = NetworkBufferPool(1, 4096)
    pool = network.local_pool(1, 1)
    buffer = pool.request(0)
    began = time.monotonic()
    assert pool.request(30) is None
    assert time.monotonic() - began > 0.025
    buffer.recycle()
    network.close()


def test_a_buffer_is_recycled_exactly_once() -> None:
    network = NetworkBufferPool(1, 4096)
    pool = network.local_pool(1, 1)
    buffer = pool.request(0)
    buffer.recycle()
    with pytest.raises(IllegalTransitionError):
        buffer.recycle()
    assert network.in_use == 0
    network.close()


def test_the_segment_goes_back_with_the_last_share() -> None:
    network = NetworkBufferPool(1, 4096)
    pool = network.local_pool(1, 1)
    buffer = pool.request(0)
    buffer.fill(b"12345678", BufferKind.FRAGMENT)
    shares = [buffer.share(), buffer.share()]
    shares.append(shares[0].share())
    buffer.recycle()
    assert [share.to_bytes() for share in shares] == [b"12345678"] * 3
    assert shares[0].kind == BufferKind.FRAGMENT
    for share in shares:
        assert network.in_use == 1
        share.recycle()
    assert network.in_use == 0
    with pytest.raises(IllegalTransitionError):
        shares[0].recycle()
    network.close()


def test_closing_the_network_pool_with_buffers_out_is_logged_and_harmless(caplog: pytest.LogCaptureFixture) -> None:
    network = NetworkBufferPool(4, 4096)
    buffer = network.local_pool(1, 1).request(0)
    buffer.fill(b"still here")
    with caplog.at_level(logging.ERROR):
        network.close()
    assert "1 buffers not recycled" in caplog.text
    assert buffer.to_bytes() == b"still here"
    buffer.recycle()
    assert network.in_use == 0


def test_an_unpooled_buffer_has_its_own_memory() -> None:
    buffer = unpooled_buffer(b"abc")
    assert buffer.to_bytes() == b"abc"
    buffer.recycle()
    assert buffer.is_recycled


@pytest.mark.parametrize(("count", "size"), [(0, 4096), (1, 100), (1, 4097)])
def test_sizes_that_make_no_sense_are_refused(count: int, size: int) -> None:
    with pytest.raises(ConfigurationError):
        NetworkBufferPool(count, size)


def test_a_pool_below_one_buffer_is_refused() -> None:
    network = NetworkBufferPool(4, 4096)
    for required, maximum in ((0, 1), (2, 1)):
        with pytest.raises(ConfigurationError):
            network.local_pool(required, maximum)
    network.close()


def test_a_pool_remembers_the_most_buffers_that_it_had_out(world: World) -> None:
    pool = world.network.local_pool(2, 8)
    for count in (3, 5, 1):
        for buffer in [pool.request(0) for _ in range(count)]:
            assert buffer is not None
            buffer.recycle()
    assert (pool.in_use, pool.peak_count) == (0, 5)


def test_every_owner_is_asked_for_buffers_and_an_error_of_one_keeps_no_segments() -> None:
    network = NetworkBufferPool(8, 4096)
    asked: list[str] = []

    def refuse(_count: int) -> None:
        asked.append("first")
        raise OSError("the disk is full")

    first, second = network.local_pool(1, 4, "first"), network.local_pool(1, 4, "second")
    buffers = take(first, 4) + take(second, 4)
    first.set_owner(refuse)
    second.set_owner(lambda _count: asked.append("second"))
    with pytest.raises(OSError, match="the disk is full"):
        network.local_pool(4, 4, "third")
    assert asked == ["first", "second"] and network.pools == (first, second)
    for buffer in buffers:
        buffer.recycle()
    network.close()
