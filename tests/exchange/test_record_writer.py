"""Record writers: every channel gets its rows in order, large ones in fragments, and flushes at the right time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import DataError, IllegalTransitionError, PartitionReleasedError, SchemaError, TaskCancelledError
from engine.exchange.buffer_pool import BufferKind
from engine.exchange.channel_selector import GlobalSelector
from engine.exchange.input_gate import NOTHING_YET
from engine.exchange.output_flusher import OutputFlusher
from engine.exchange.page_reader import gate_batches
from engine.exchange.record_writer import RecordWriter
from engine.exchange.reference_writer import BatchBroadcastWriter, ForwardRecordWriter
from engine.exchange.selector_choice import selector_for
from engine.graph.ship_strategy import PartitionerSpec
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])


def batch_of(rows: list[tuple[int | None, str | None]]) -> pa.RecordBatch:
    return pa.record_batch({"k": [row[0] for row in rows], "s": [row[1] for row in rows]}, schema=SCHEMA)


def with_channels(rows: list[tuple[int | None, str | None]], channels: list[int]) -> pa.RecordBatch:
    return batch_of(rows).append_column("__channel", pa.array(channels, pa.int32()))


def rows_of(batch: pa.RecordBatch) -> list[tuple[int | None, str | None]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def exchange(
    world: World, partition: Any, batches: list[pa.RecordBatch], **options: Any
) -> list[list[tuple[int | None, str | None]]]:
    """Write in one thread, read every subpartition in another; return the rows of each."""
    received: list[list[tuple[int | None, str | None]]] = [[] for _ in range(partition.subpartition_count)]
    writer = world.writer(partition, SCHEMA, **options)

    def write() -> None:
        for batch in batches:
            writer.emit(batch)
        writer.finish()
        writer.close()

    def read(index: int) -> None:
        gate = world.gate([partition.id], index)
        for batch in gate_batches(gate, SCHEMA):
            received[index].extend(rows_of(batch))
        gate.close()

    world.run(write)
    for index in range(partition.subpartition_count):
        world.run(lambda index=index: read(index))
    world.join(30)
    assert world.failures == []
    return received


ROW = st.tuples(
    st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.text(max_size=20), st.integers(0, 12_000).map(lambda size: "x" * size)),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(ROW, max_size=30), max_size=6),
    st.sampled_from(["GLOBAL", "SHUFFLE", "REBALANCE", "RESCALE", "BROADCAST", "HASH"]),
    st.integers(1, 6),
    st.sampled_from([PIPELINED, BLOCKING]),
    st.sampled_from([None, (1, 1), (2, 3)]),
)
def test_every_channel_gets_exactly_its_rows_in_order(
    world: World, content: list[Any], kind: str, channels: int, result_type: Any, bounds: Any
) -> None:
    batches = [batch_of(rows) for rows in content]
    spec = PartitionerSpec(kind, ("k",))
    seed = 3
    oracle = selector_for(spec, SCHEMA, channels, 0, seed=seed)
    expected: list[list[Any]] = [[] for _ in range(channels)]
    for rows, batch in zip(content, batches, strict=True):
        targets = [range(channels)] * len(rows) if kind == "BROADCAST" else [[c] for c in oracle.channels_of(batch)]
        for row, row_targets in zip(rows, targets, strict=True):
            for target in row_targets:
                expected[target].append(row)
    partition = world.partition(descriptor(channels, kind, ["k"], result_type), bounds)
    selector = selector_for(spec, SCHEMA, channels, 0, seed=seed)
    options = {} if kind == "BROADCAST" else {"selector": selector}
    received = exchange(world, partition, batches, **options)
    assert received == expected
    assert partition.rows == sum(len(rows) for rows in content)
    world.manager.release_partitions_produced_by(partition.id.producer)
    assert world.network.in_use == 0


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
@pytest.mark.parametrize("bounds", [(1, 1), (3, 20)])
def test_a_record_of_a_megabyte_passes_through_buffers_of_4_kib(world: World, result_type: str, bounds: Any) -> None:
    big = [(1, "a"), (2, "b" * (1 << 20)), (3, "c"), (4, "d" * 5000), (5, "e" * 4000)]
    partition = world.partition(descriptor(1, "GLOBAL", result_type=result_type), bounds)
    assert exchange(world, partition, [batch_of(big)]) == [big]
    if result_type == PIPELINED:
        assert world.network.peak_count <= bounds[1]


def test_fragments_are_full_buffers_and_the_last_one_is_marked(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"), (1, 20))
    writer = world.writer(partition, SCHEMA)
    writer.emit(batch_of([(1, "a"), (2, "x" * 10_000), (3, "c")]))
    writer.finish()
    queue = partition.queues[0]
    buffers = [queue.poll()[0] for _ in range(5)]
    kinds = [BufferKind(buffer.kind).name for buffer in buffers]
    assert kinds == ["ROWS", "FRAGMENT", "FRAGMENT", "LAST_FRAGMENT", "ROWS"]
    assert [buffer.size for buffer in buffers[1:3]] == [4096, 4096]
    for buffer in buffers:
        buffer.recycle()
    writer.close()


def test_the_builder_chooses_by_type_and_partitioner(world: World) -> None:
    wanted = {
        (PIPELINED, "FORWARD"): ForwardRecordWriter,
        (PIPELINED, "BROADCAST"): BatchBroadcastWriter,
        (PIPELINED, "GLOBAL"): RecordWriter,
        (BLOCKING, "FORWARD"): RecordWriter,
        (BLOCKING, "BROADCAST"): RecordWriter,
    }
    for number, ((result_type, kind), writer_class) in enumerate(wanted.items()):
        partition = world.partition(descriptor(1, kind, result_type=result_type, identity=partition_id(number)))
        assert type(world.writer(partition, SCHEMA)) is writer_class


def test_a_broadcast_is_encoded_once_for_eight_channels(world: World) -> None:
    partition = world.partition(descriptor(8, "BROADCAST", result_type=BLOCKING))
    writer = world.writer(partition, SCHEMA)
    writer.emit(batch_of([(1, "x")] * 10))
    writer.finish()
    assert (partition.total_buffers, partition.rows) == (1, 10)
    assert writer.bytes == partition.total_bytes


@pytest.mark.parametrize("kind", ["FORWARD", "BROADCAST"])
def test_batches_cross_by_reference_in_process(world: World, kind: str) -> None:
    count = 1 if kind == "FORWARD" else 3
    partition = world.partition(descriptor(count, kind))
    writer = world.writer(partition, SCHEMA)
    batch = batch_of([(1, "x"), (2, "y")])
    writer.emit(batch)
    writer.emit(batch_of([]))
    writer.flush()
    assert writer.flush_if_older_than(0) is False
    writer.finish()
    writer.close()
    for index in range(count):
        gate = world.gate([partition.id], index)
        assert gate.next() is batch
        assert gate.next() is None
        gate.close()
    assert (writer.rows, partition.rows, writer.bytes) == (2, 2, batch.nbytes)


def test_an_earlier_error_of_the_flusher_is_raised_before_anything_is_written(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"))
    writer = world.writer(partition, SCHEMA, timeout_ms=100)
    writer.emit(batch_of([(1, "x")]))
    partition.release()
    assert writer.flush_if_older_than(0) is False
    for call in (lambda: writer.emit(batch_of([(2, "y")])), writer.flush):
        with pytest.raises(PartitionReleasedError):
            call()
    assert writer.rows == 1
    writer.close()


def test_timeout_0_flushes_every_batch(world: World) -> None:
    partition = world.partition(descriptor(2, "REBALANCE"))
    writer = world.writer(partition, SCHEMA, timeout_ms=0)
    for number in range(1, 4):
        writer.emit(batch_of([(1, "x"), (2, "y")]))
        assert partition.total_buffers == 2 * number
    writer.close()


def test_timeout_minus_1_hands_over_full_buffers_and_the_end_only(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"))
    writer = world.writer(partition, SCHEMA, timeout_ms=-1)
    writer.emit(batch_of([(1, "x" * 1000)] * 3))
    assert partition.total_buffers == 0
    writer.emit(batch_of([(1, "x" * 1000)] * 3))
    assert partition.total_buffers == 1
    writer.finish()
    assert partition.total_buffers == 2
    writer.close()


def test_a_timeout_hands_over_what_waits_long_enough(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"))
    writer = world.writer(partition, SCHEMA, timeout_ms=100)
    assert writer.flush_if_older_than(0) is False
    writer.emit(batch_of([(1, "x")]))
    assert writer.flush_if_older_than(60_000) is False
    assert writer.flush_if_older_than(0) is True
    assert partition.total_buffers == 1
    assert writer.flush_if_older_than(0) is False
    writer.close()
    assert writer.flush_if_older_than(0) is False


def test_a_flush_does_nothing_under_back_pressure(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"), (2, 2))
    writer = world.writer(partition, SCHEMA, timeout_ms=60_000)
    world.run(lambda: writer.emit(batch_of([(1, "x" * 3000)] * 9)))
    while not partition.pool.is_waiting:
        time.sleep(0.001)
    before = partition.total_buffers
    assert writer.flush_if_older_than(0) is False
    assert partition.total_buffers == before
    partition.cancel()
    world.join()
    writer.close()


def test_the_flusher_s_thread_lets_a_reader_see_a_half_full_buffer(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"))
    writer = world.writer(partition, SCHEMA, timeout_ms=20)
    gate = world.gate([partition.id])
    flusher = OutputFlusher()
    flusher.register(writer, 20)
    writer.emit(batch_of([(1, "x")]))
    page = gate.poll(60_000)
    assert page is not NOTHING_YET
    page.recycle()
    flusher.unregister(writer)
    flusher.close()
    flusher.close()
    writer.finish()
    writer.close()
    gate.close()


class Flushed:
    """A writer that notes the ages it is asked for."""

    def __init__(self):
        self.ages_ms = []
        self.asked = threading.Event()

    def flush_if_older_than(self, age_ms):
        self.ages_ms.append(age_ms)
        self.asked.set()


def test_the_flusher_gives_each_writer_its_own_time_out():
    flusher = OutputFlusher()
    slow, quick = Flushed(), Flushed()
    flusher.register(slow, 3_600_000)
    flusher.register(quick, 1)  # the thread waits for an hour already
    assert quick.asked.wait(60)
    assert slow.asked.wait(60)
    flusher.close()
    assert (set(slow.ages_ms), set(quick.ages_ms)) == ({3_600_000}, {1})


def test_a_writer_that_comes_before_a_look_in_time_for_it_wakes_no_flusher():
    flusher = OutputFlusher()
    woken = []

    class Changed(threading.Condition):
        def notify(self, n=1):
            woken.append(n)
            super().notify(n)

    flusher._changed = Changed(flusher._lock)
    first = Flushed()
    flusher.register(first, 3_600_000)
    while flusher._next_look_s is None:  # until the thread waits for an hour
        time.sleep(0.001)
    flusher.unregister(first)
    woken.clear()
    flusher.register(Flushed(), 7_200_000)
    assert not woken
    flusher.register(Flushed(), 1000)
    assert woken
    flusher.close()


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_writers_that_flush_at_once_or_never_need_no_flusher(timeout_ms):
    flusher = OutputFlusher()
    flusher.register(Flushed(), timeout_ms)
    assert flusher._thread is None
    flusher.close()


def test_half_full_buffers_are_handed_over_when_waiting_gets_long(world: World) -> None:
    """Channel 1's consumer waits for rows that lie half full here while the writer waits for channel 0's."""
    partition = world.partition(descriptor(2, "CUSTOM", ["__channel"]), (3, 3))
    writer = world.writer(partition, SCHEMA)
    rows = [(1, "for 1"), *[(0, "x" * 3000)] * 5]
    world.run(lambda: writer.emit(with_channels(rows, [1, 0, 0, 0, 0, 0])))
    gates = [world.gate([partition.id], index) for index in range(2)]
    page = gates[1].poll(60_000)
    assert page is not NOTHING_YET
    page.recycle()
    for gate in gates:
        gate.close()
    partition.cancel()
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)
    writer.close()


def test_emitting_after_finish_or_release_raises(world: World) -> None:
    for number, (kind, end, error) in enumerate(
        [
            ("GLOBAL", "finish", IllegalTransitionError),
            ("FORWARD", "finish", IllegalTransitionError),
            ("GLOBAL", "release", PartitionReleasedError),
            ("FORWARD", "release", PartitionReleasedError),
            ("GLOBAL", "cancel", TaskCancelledError),
            ("FORWARD", "cancel", TaskCancelledError),
        ]
    ):
        partition = world.partition(descriptor(1, kind, identity=partition_id(number)))
        writer = world.writer(partition, SCHEMA)
        getattr(partition, end)()
        with pytest.raises(error):
            writer.emit(batch_of([(1, "x")]))
        writer.close()


def test_a_batch_of_another_schema_is_refused(world: World) -> None:
    partition = world.partition(descriptor(1, "GLOBAL"))
    writer = world.writer(partition, SCHEMA)
    with pytest.raises(SchemaError):
        writer.emit(pa.record_batch({"k": ["no number"], "s": ["x"]}))
    writer.close()


def test_a_selector_of_another_width_is_refused(world: World) -> None:
    partition = world.partition(descriptor(2, "REBALANCE"))
    with pytest.raises(IllegalTransitionError, match="2 subpartitions"):
        RecordWriter(partition, SCHEMA, GlobalSelector(3))
    with pytest.raises(ValueError, match="one consumer"):
        ForwardRecordWriter(partition)


def test_a_channel_that_is_none_leaks_nothing(world: World) -> None:
    partition = world.partition(descriptor(2, "CUSTOM", ["__channel"]))
    writer = world.writer(partition, SCHEMA)
    writer.emit(with_channels([(0, "x"), (1, "y")], [0, 1]))
    with pytest.raises(DataError):
        writer.emit(with_channels([(5, "x")], [5]))
    assert partition.pool.in_use == 2
    writer.close()
    writer.close()
    assert partition.pool.in_use == 0


def test_rebalance_spreads_over_the_whole_exchange(world: World) -> None:
    partition = world.partition(descriptor(4, "REBALANCE"))
    rows = [(number, "x") for number in range(1003)]
    received = exchange(world, partition, [batch_of(rows)])
    assert sorted(len(channel) for channel in received) == [250, 251, 251, 251]
    assert Counter(row for channel in received for row in channel) == Counter(rows)


def test_rows_that_have_a_place_but_no_bytes_are_never_handed_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = world.partition(descriptor(4, "HASH", ["k"]))
    writer = world.writer(partition, SCHEMA, timeout_ms=1)
    held = [partition.request_buffer() for _ in range(partition.pool.available - 2)]

    def refuse(_timeout_ms: int = -1) -> Any:
        raise MemoryError("no memory for network buffers")

    monkeypatch.setattr(partition, "request_buffer", refuse)
    with pytest.raises(MemoryError):
        writer.emit(batch_of([(key, "text") for key in range(100)]))
    time.sleep(0.005)
    assert not writer.flush_if_older_than(1)
    assert partition.pool.in_use == len(held)
    assert partition.total_buffers == 0
    writer.close()
    for buffer in held:
        buffer.recycle()


@pytest.mark.parametrize("timeout_ms", [0, 1, 100])
def test_a_writer_of_a_stored_result_never_flushes_by_time(world: World, timeout_ms: int) -> None:
    stored = world.partition(descriptor(2, "REBALANCE", result_type=BLOCKING, identity=partition_id(1)))
    streamed = world.partition(descriptor(2, "REBALANCE", identity=partition_id(2)))
    writers = [world.writer(each, SCHEMA, timeout_ms=timeout_ms) for each in (stored, streamed)]
    assert [writer.timeout_ms for writer in writers] == [-1, timeout_ms]
    for writer in writers:
        writer.emit(batch_of([(1, "x"), (2, "y")]))
    assert (stored.total_buffers, streamed.total_buffers > 0) == (0, timeout_ms == 0)
    for writer in writers:
        writer.close()
