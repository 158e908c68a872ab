"""Rows larger than a buffer on their way: of the very wide ones one at a time in each gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.exchange import row_pieces
from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import OversizedRow
from engine.exchange.input_gate import InputGate
from engine.exchange.row_pieces import RowPieces
from engine.records.row_codec import RowCodec
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id
from tests.transport.remote_world import RemoteWorld

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
WIDE, SEGMENT = 50_000, 4096
GATES, PRODUCERS, ROWS = 2, 3, 12


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteWorld]:
    monkeypatch.setattr(row_pieces, "WIDE_BYTES", WIDE)
    world = RemoteWorld(tmp_path, segments=200, segment_size=SEGMENT)
    yield world
    world.close()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After each fragment: how many rows of its gate are here with more than their first one."""
    counts: list[int] = []
    sizes: dict[tuple[int, int], int] = {}
    add, take = RowPieces.add, RowPieces.take

    def counted_add(self: RowPieces, buffer: Buffer, *, is_row: bool = True) -> None:
        add(self, buffer, is_row=is_row)
        gate = id(self._arrivals)
        sizes[gate, id(self)] = len(self._bytes) if self._row_bytes >= WIDE else 0
        counts.append(sum(size > SEGMENT for (of, _), size in list(sizes.items()) if of == gate))

    def counted_take(self: RowPieces) -> bytearray:
        sizes[id(self._arrivals), id(self)] = 0
        return take(self)

    monkeypatch.setattr(RowPieces, "add", counted_add)
    monkeypatch.setattr(RowPieces, "take", counted_take)
    return counts


def produce(side: World, partition: Any, first: int) -> None:
    def work() -> None:
        writer = side.writer(partition, SCHEMA)
        for key in range(first, first + ROWS):
            # wide ones, narrow ones, and some that are larger than a buffer
            text = "wxyz"[key % 4] * (3 * WIDE, 20, 2 * SEGMENT, 2 * WIDE)[key % 4]
            writer.emit(pa.record_batch({"k": [key], "s": [text]}, SCHEMA))
        writer.finish()
        writer.close()

    side.run(work)


def read(gate: InputGate, keys: list[int]) -> None:
    codec = RowCodec(SCHEMA)
    while (element := gate.next()) is not None:
        if isinstance(element, OversizedRow):
            batch = codec.from_rows(element.take())
        else:
            batch = codec.from_rows(bytes(memoryview(element.segment)[: element.size]))
            element.recycle()
        for row in batch.to_pylist():
            assert row["s"] == "wxyz"[row["k"] % 4] * (3 * WIDE, 20, 2 * SEGMENT, 2 * WIDE)[row["k"] % 4]
            keys.append(row["k"])
    gate.close()


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
@pytest.mark.parametrize("is_remote", [True, False])
def test_one_very_wide_row_at_a_time_is_put_together(
    world: RemoteWorld, begun: list[int], result_type: Any, is_remote: bool
) -> None:
    side = world.far if is_remote else world.near
    found: list[list[int]] = [[] for _ in range(GATES)]
    for number in range(GATES):
        identities = [partition_id(number * PRODUCERS + producer) for producer in range(PRODUCERS)]
        for producer, identity in enumerate(identities):
            partition = side.partition(descriptor(1, "GLOBAL", result_type=result_type, identity=identity))
            produce(side, partition, 1000 * producer)
        if result_type is BLOCKING:
            side.join()
        gate = (world if is_remote else world.near).gate(identities)
        world.run(lambda gate=gate, keys=found[number]: read(gate, keys))
    world.join()
    expected = sorted(1000 * producer + row for producer in range(PRODUCERS) for row in range(ROWS))
    assert [sorted(keys) for keys in found] == [expected] * GATES
    assert max(begun) == 1
