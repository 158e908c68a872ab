"""PIPELINED queues: order, bounds, the end that comes once, waking of those that wait."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError
from engine.exchange.buffer_pool import Buffer, BufferKind, unpooled_buffer
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.pipelined_subpartition import PipelinedSubpartition, add_pages
from engine.exchange.ready_queue import CLOSED, TIMED_OUT, WOKEN, ReadyQueue
from tests.exchange.world import World

BATCH = pa.record_batch({"a": [1, 2, 3]})


def drain(queue: PipelinedSubpartition) -> list[object]:
    elements = []
    while (polled := queue.poll()[0]) is not None:
        elements.append(polled)
    return elements


@given(st.lists(st.booleans(), max_size=100))
def test_elements_come_out_in_the_order_they_went_in(writes: list[bool]) -> None:
    queue = PipelinedSubpartition(0)
    written: list[bytes] = []
    read: list[bytes] = []
    for is_write in writes:
        if is_write:
            written.append(str(len(written)).encode())
            queue.add_buffer(unpooled_buffer(written[-1]))
        elif len(read) < len(written):
            element, more = queue.poll()
            read.append(element.to_bytes())
            assert more == (len(read) < len(written))
        else:
            assert queue.poll() == (None, False)
    assert read + [element.to_bytes() for element in drain(queue)] == written


@given(st.text("rfbtp", max_size=80), st.integers(1, 8), st.integers(1, 300))
def test_pages_are_taken_together_as_far_as_nothing_else_is_between(steps: str, count_max: int, bytes_max: int) -> None:
    # r, f, b: rows, a fragment, a batch are queued; t, p: pages are taken together, one element is
    queue = PipelinedSubpartition(0, batch_count_max=100)
    expected: list[object] = []
    read: list[object] = []
    for step in steps:
        if step == "b":
            queue.add_batch(BATCH, 1)
            expected.append(BATCH)
        elif step in "rf":
            kind = BufferKind.ROWS if step == "r" else BufferKind.FRAGMENT
            expected.append(unpooled_buffer(bytes(100), int(kind)))
            queue.add_buffer(expected[-1])
        elif step == "t":
            ready = expected[len(read) :]
            others = (index for index, element in enumerate(ready) if not is_page(element))
            pages = [unpooled_buffer(b"taken before")]
            size = queue.poll_pages(pages, count_max, bytes_max)
            together = min(next(others, len(ready)), max(count_max - 1, 0), -(-bytes_max // 100))
            assert (len(pages), size) == (1 + together, 100 * together)
            read += pages[1:]
        elif len(read) < len(expected):
            read.append(queue.poll()[0])
    for element, taken in zip(expected, read + drain(queue), strict=True):
        assert element is taken


def is_page(element: object) -> bool:
    return isinstance(element, Buffer) and element.kind == BufferKind.ROWS


@pytest.mark.parametrize("end", ["finish", "fail", "release"])
def test_of_an_ended_queue_no_page_is_taken(end: str) -> None:
    queue = PipelinedSubpartition(0)
    page = unpooled_buffer(b"rows")
    queue.add_buffer(page)
    if end == "finish":
        queue.finish()
        assert queue.poll() == (page, True)
    elif end == "fail":
        queue.fail(ValueError("broken"))
    else:
        queue.release()
    pages: list[Buffer] = []
    assert (queue.poll_pages(pages, 8, 1000), pages) == (0, [])
    assert page.is_recycled == (end != "finish")


def test_the_end_event_comes_once_and_last() -> None:
    queue = PipelinedSubpartition(0)
    for number in range(40):
        queue.add_buffer(unpooled_buffer(bytes([number])))
    queue.finish()
    elements = drain(queue)
    assert elements.count(END_OF_PARTITION) == 1
    assert elements[-1] is END_OF_PARTITION


def test_adding_after_the_end_raises_and_recycles() -> None:
    queue = PipelinedSubpartition(0)
    queue.finish()
    buffer = unpooled_buffer(b"late")
    with pytest.raises(IllegalTransitionError):
        queue.add_buffer(buffer)
    assert buffer.is_recycled


def test_the_reader_is_told_when_an_empty_queue_gets_something() -> None:
    queue = PipelinedSubpartition(0)
    ready = ReadyQueue(3)
    queue.attach(ready, 2)
    assert ready.pop_channel(0) == 2  # once at the beginning
    assert ready.pop_channel(0) == TIMED_OUT
    queue.add_buffer(unpooled_buffer(b"1"))
    queue.add_buffer(unpooled_buffer(b"2"))
    assert ready.pop_channel(0) == 2
    assert ready.pop_channel(0) == TIMED_OUT
    with pytest.raises(IllegalTransitionError, match="has a reader"):
        queue.attach(ready, 1)


@pytest.mark.parametrize(("count_max", "bytes_max", "size"), [(4, 1 << 20, 10), (100, 40, 10), (100, 5, 10)])
def test_batches_by_reference_are_bounded_by_count_and_by_bytes(
    world: World, count_max: int, bytes_max: int, size: int
) -> None:
    queue = PipelinedSubpartition(0, count_max, bytes_max)
    bound = max(1, min(count_max, bytes_max // size))
    added: list[int] = []

    def produce() -> None:
        for number in range(12):
            queue.add_batch(BATCH, size)
            added.append(number)

    world.run(produce)
    while len(added) < bound:
        time.sleep(0.001)
    time.sleep(0.2)
    assert len(added) == bound
    for _ in range(12):
        while queue.queued_count == 0:
            time.sleep(0.001)
        assert queue.poll()[0] is BATCH
    world.join()
    assert len(added) == 12
    assert queue.blocked_ns > 0


def test_release_wakes_a_waiting_producer_and_drops_everything(world: World) -> None:
    queue = PipelinedSubpartition(0, 1)
    buffer = unpooled_buffer(b"x")
    queue.add_buffer(buffer)
    queue.add_batch(BATCH, 1)
    world.run(lambda: queue.add_batch(BATCH, 1))
    time.sleep(0.02)
    queue.release()
    world.join()
    assert isinstance(world.failures[0], PartitionReleasedError)
    assert buffer.is_recycled
    assert queue.queued_count == 0
    with pytest.raises(PartitionReleasedError):
        queue.poll()


def test_a_failed_producer_surfaces_with_its_error_as_cause() -> None:
    queue = PipelinedSubpartition(0)
    ready = ReadyQueue(1)
    queue.attach(ready, 0)
    ready.pop_channel(0)
    queue.add_buffer(unpooled_buffer(b"x"))
    queue.fail(ValueError("bad row"))
    assert ready.pop_channel(0) == 0
    with pytest.raises(ProducerFailedError, match="ValueError: bad row") as raised:
        queue.poll()
    assert isinstance(raised.value.__cause__, ValueError)


def test_ready_channels_are_fair_and_queued_once() -> None:
    ready = ReadyQueue(3)
    for channel in (1, 1, 0, 2, 0):
        ready.push_channel(channel)
    assert [ready.pop_channel(0) for _ in range(4)] == [1, 0, 2, TIMED_OUT]
    ready.wake()
    assert ready.pop_channel(-1) == WOKEN
    ready.close()
    assert ready.pop_channel(-1) == CLOSED
    with pytest.raises(IndexError):
        ready.push_channel(3)


def test_pages_for_several_queues_are_taken_out_of_the_list_up_to_the_one_that_is_refused() -> None:
    queues = tuple(PipelinedSubpartition(index) for index in range(3))
    queues[1].finish()
    buffers = [unpooled_buffer(bytes([index])) for index in range(5)]
    pages = list(zip(buffers, [0, 2, 0, 1, 2], strict=True))
    with pytest.raises(IllegalTransitionError):
        add_pages(queues, pages)
    assert pages == [(buffers[3], 1), (buffers[4], 2)]
    assert buffers[3].segment is not None  # it is the caller's
    assert [drain(queue) for queue in queues] == [[buffers[0], buffers[2]], [END_OF_PARTITION], [buffers[1]]]


def test_all_sleeping_consumers_of_pages_are_woken(world: World) -> None:
    queues = tuple(PipelinedSubpartition(index) for index in range(70))
    gates = [ReadyQueue(70) for _ in queues]
    woken = []
    for index, (queue, gate) in enumerate(zip(queues, gates, strict=True)):
        queue.attach(gate, index)
        assert gate.pop_channel(0) == index
    threads = [world.run(lambda gate=gate: woken.append(gate.pop_channel(-1))) for gate in gates]
    time.sleep(0.02)  # most of them sleep
    add_pages(queues, [(unpooled_buffer(b"page"), index) for index in range(70)])
    for thread in threads:
        thread.join(20)
    assert sorted(woken) == list(range(70))
