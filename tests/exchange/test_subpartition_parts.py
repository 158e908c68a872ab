"""Parts of a stored subpartition: side by side they hold everything once, and no row is torn apart."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import IllegalTransitionError
from engine.exchange.blocking_data import BlockingData, BlockingView
from engine.exchange.buffer_pool import Buffer, BufferKind, unpooled_buffer
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.input_gate import InputGate
from engine.exchange.page_reader import gate_batches
from engine.exchange.partition_file import PartitionFile
from engine.exchange.ready_queue import ReadyQueue
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from engine.graph.subpartition_share import PARTS, SubpartitionShare, are_complete, whole_share
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id
from tests.transport.remote_world import RemoteWorld

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])

#: rows of several pages' length, 1 for a page of rows
LENGTHS = st.lists(st.sampled_from([1, 1, 1, 2, 5]), max_size=25)
CUTS = st.lists(st.integers(0, PARTS), max_size=6)


def buffers_of(lengths: list[int]) -> list[Buffer]:
    """Return pages, and rows that are larger, as pieces."""
    buffers = []
    for row, length in enumerate(lengths):
        kinds = [BufferKind.FRAGMENT] * (length - 1) + [BufferKind.LAST_FRAGMENT if length > 1 else BufferKind.ROWS]
        buffers += [unpooled_buffer(b"%d.%d" % (row, piece), int(kind)) for piece, kind in enumerate(kinds)]
    return buffers


def read(reader: BlockingView) -> list[tuple[bytes, int]]:
    contents = []
    while True:
        assert reader.backlog() >= 0
        element, _ = reader.poll()
        assert element is not None
        if element is END_OF_PARTITION:
            assert reader.backlog() == 0
            reader.release()
            return contents
        assert isinstance(element, Buffer)
        contents.append((element.to_bytes(), element.kind))
        element.recycle()


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LENGTHS, CUTS, st.integers(0, 60), st.sampled_from(["at the end", "between", "never"]))
def test_parts_side_by_side_are_the_whole_and_begin_with_a_row(
    tmp_path: Path, lengths: list[int], cuts: list[int], spill_at: int, spill: str
) -> None:
    names = iter(range(100))
    data = BlockingData(1, lambda: PartitionFile(tmp_path / f"{next(names)}.shuffle.data", bytes(16), 1))
    expected = []
    for number, buffer in enumerate(buffers_of(lengths)):
        if spill == "between" and number == spill_at:
            data.spill()
        expected.append((buffer.to_bytes(), buffer.kind))
        data.add(buffer, 0)
    data.finish()
    ends = sorted({0, PARTS, *cuts})
    parts = list(itertools.pairwise(ends))
    views = [data.open_view(0, ReadyQueue(1), 0, None, part) for part in parts]
    got = [read(view) for view in views[::2]]
    if spill == "at the end":
        data.spill()
    got_late = [read(view) for view in views[1::2]]
    in_order = [*got, *got_late]
    in_order[::2], in_order[1::2] = got, got_late
    assert [each for part in in_order for each in part] == expected
    assert all(part[0][0].endswith(b".0") for part in in_order if part)
    data.release()


def test_a_view_of_a_part_that_was_there_before_the_end_reads_it(tmp_path: Path) -> None:
    data = BlockingData(1, lambda: PartitionFile(tmp_path / "0.shuffle.data", bytes(16), 1))
    reader = data.open_view(0, ReadyQueue(1), 0, None, (PARTS // 2, PARTS))
    for number in range(4):
        data.add(unpooled_buffer(b"%d" % number), 0)
    assert reader.poll() == (None, False) and reader.backlog() == 0
    data.finish()
    assert reader.backlog() == 2
    assert [content for content, _ in read(reader)] == [b"2", b"3"]
    data.release()


def test_a_part_is_asked_of_stored_results_only_and_within_bounds(tmp_path: Path) -> None:
    world = World(tmp_path)
    stored, streamed = (
        world.partition(descriptor(1, "GLOBAL", [], kind, partition_id(number)))
        for number, kind in enumerate((BLOCKING, PIPELINED))
    )
    for part in ((-1, 5), (5, PARTS + 1), (6, 5)):
        with pytest.raises(IndexError, match="no part"):
            stored.create_view(0, ReadyQueue(1), 0, part=part)
    with pytest.raises(IllegalTransitionError, match="read whole"):
        streamed.create_view(0, ReadyQueue(1), 0, part=(0, 5))
    for partition in (stored, streamed):
        partition.release()
    world.close()


def test_parts_come_from_another_process_as_from_this_one(tmp_path: Path) -> None:
    world = RemoteWorld(tmp_path)
    batches = [
        pa.record_batch({"k": range(100 * number, 100 * number + 100), "s": ["x" * 60] * 100}, schema=SCHEMA)
        for number in range(20)
    ] + [pa.record_batch({"k": [9000, 9001], "s": ["y" * 20_000] * 2}, schema=SCHEMA)]
    parts = [(0, 20_000), (20_000, 20_001), (20_001, PARTS)]
    got = []
    for side, number in ((world.far, 0), (world.near, 1)):
        partition = side.partition(descriptor(1, "GLOBAL", [], BLOCKING, partition_id(number)))
        writer = side.writer(partition, SCHEMA)
        for batch in batches:
            writer.emit(batch)
        writer.finish()
        writer.close()
        is_far = side is world.far
        location = PartitionLocation.REMOTE if is_far else PartitionLocation.LOCAL
        channels = tuple(
            InputChannelDescriptor(partition.id, location, 0, world.far_plane.address if is_far else "", part)
            for part in parts
        )
        per_part = []
        for channel in channels:
            gate = InputGate((channel,), world.near.manager, reads=world.reads(1) if is_far else None)
            per_part.append([key for batch in gate_batches(gate, SCHEMA) for key in batch["k"].to_pylist()])
            gate.close()
        got.append(per_part)
    assert got[0] == got[1]
    assert sorted(key for part in got[0] for key in part) == [*range(2000), 9000, 9001]
    assert got[0][0] and got[0][2] and not got[0][1]
    world.close()


@pytest.mark.parametrize(
    ("shares", "is_right"),
    [
        ([(0, 0, 2 * PARTS), (1, 0, 2 * PARTS)], True),
        ([(0, 0, 2 * PARTS), (0, 0, 2 * PARTS), (1, 0, 2 * PARTS)], True),
        ([(0, 0, 7), (0, 7, 2 * PARTS), (1, 0, 2 * PARTS)], True),
        ([(0, 0, 2 * PARTS)], False),
        ([(0, 0, 7), (0, 8, 2 * PARTS), (1, 0, 2 * PARTS)], False),
        ([(0, 0, 7), (0, 6, 2 * PARTS), (1, 0, 2 * PARTS)], False),
        ([(0, 0, 7), (0, 0, 7), (0, 7, 2 * PARTS), (1, 0, 2 * PARTS)], False),
        ([(0, 0, 7), (0, 0, 2 * PARTS), (1, 0, 2 * PARTS)], False),
        ([(0, 0, 2 * PARTS), (1, 0, 2 * PARTS), (2, 0, 2 * PARTS)], False),
        ([(0, 0, PARTS), (1, 0, 2 * PARTS)], False),
    ],
)
def test_shares_hold_every_position_once_or_are_whole(shares: list[tuple[int, int, int]], is_right: bool) -> None:
    assert are_complete([SubpartitionShare(*share) for share in shares], 2, 2) == is_right


def test_a_share_of_many_producers_is_a_part_of_each() -> None:
    share = SubpartitionShare(3, PARTS // 2, 2 * PARTS + 5)
    parts = [share.part_of(producer) for producer in range(4)]
    assert parts[:3] == [(PARTS // 2, PARTS), (0, PARTS), (0, 5)] and parts[3][0] >= parts[3][1]
    assert whole_share(3, 2) == SubpartitionShare(3, 0, 2 * PARTS)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(share), type=SubpartitionShare) == share
