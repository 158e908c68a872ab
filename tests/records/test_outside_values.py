"""Out-of-line values, outside of their rows: golden bytes, round trips of every variable type, damaged references."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NoReturn
from zlib import crc32

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError, NotYetSupportedError, SpillError
from engine.memory import value_stores
from engine.records.outside_values import set_outside_bytes
from engine.records.row_codec import RowCodec
from tests.records.batches import NESTED_TYPES, sample_values

LIMIT = 100
REFERENCE_BYTES = 112


class ValuesInMemory:
    """A store that keeps values in a list."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.number = value_stores.register(self)

    def find_value(self, value: memoryview, value_hash: int) -> None:
        """All are written."""

    def write_value(self, value: memoryview, value_hash: int | None = None) -> tuple[int, int, int, int]:
        self.values.append(bytes(value))
        return self.number, 5, len(self.values) - 1, 0xABCD

    def read_value(self, file: int, offset: int, checksum: int, into: memoryview) -> None:
        assert (file, checksum) == (5, 0xABCD)
        into[:] = self.values[offset]

    def open_value(self, file: int, offset: int, size: int, checksum: int) -> NoReturn:
        raise AssertionError("nothing is compared here")


@pytest.fixture
def store() -> Iterator[ValuesInMemory]:
    set_outside_bytes(LIMIT)
    store = ValuesInMemory()
    yield store
    value_stores.forget(store.number)
    set_outside_bytes()


def codec_of(schema: pa.Schema, store: ValuesInMemory, inside: tuple[int, ...] = ()) -> RowCodec:
    codec = RowCodec(schema)
    codec.keep_outside(store, inside)
    return codec


def test_a_row_with_an_outside_value_is_these_bytes(store: ValuesInMemory) -> None:
    value = bytes(range(200))
    batch = pa.record_batch({"id": [7], "blob": [value]})
    row = codec_of(batch.schema, store).to_rows(batch)
    assert store.values == [value]
    assert row[:24].hex() == "880000000000000007000000000000001800000070000080"
    size, _, number, file, offset, checksum, own, hashed, prefix = struct.unpack("<QQIIQIIQ64s", row[24:])
    assert (size, number, file, offset, checksum, prefix) == (200, store.number, 5, 0, 0xABCD, value[:64])
    assert hashed == 5038193865536330354
    assert own == crc32(row[24:60] + bytes(4) + row[64:])


@pytest.mark.parametrize("data_type", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_narrow_and_wide_values_and_nulls_come_back(store: ValuesInMemory, data_type: pa.DataType, start: int) -> None:
    texts = ["", None, "a" * 99, "b" * 100, "c", None, "d" * 5000, "e" * 15, "f" * 101, "", "g" * 16] * 70
    values = pa.array(texts, pa.string()).cast(data_type)
    batch = pa.record_batch({"a": pa.array(range(len(texts)), pa.int16()), "b": values, "c": values}).slice(start)
    codec = codec_of(batch.schema, store, inside=(2,))
    rows = codec.to_rows(batch)
    assert codec.from_rows(rows).equals(batch)
    assert len(store.values) == sum(len(text or "") >= LIMIT for text in texts[start:])
    assert RowCodec(batch.schema).from_rows(rows).equals(batch)


@pytest.mark.parametrize("name", sorted(NESTED_TYPES))
def test_nested_values_come_back(store: ValuesInMemory, name: str) -> None:
    set_outside_bytes(1)
    data_type = NESTED_TYPES[name]
    values = pa.array([*sample_values(data_type), None] * 3, data_type)
    batch = pa.record_batch({"before": pa.array(range(len(values))), "value": values})
    codec = codec_of(batch.schema, store)
    assert codec.from_rows(codec.to_rows(batch)).equals(batch)
    assert codec.from_rows(codec.to_rows(batch.slice(2))).equals(batch.slice(2))
    assert store.values or name == "empty_struct"


def test_wide_lists_and_structs_come_back(store: ValuesInMemory) -> None:
    lists = pa.array([list(range(2000)), None, [1], [None] * 50, list(range(13))], pa.list_(pa.int64()))
    structs = pa.array([{"s": "x" * 400, "n": 1}, {"s": "y", "n": None}, None, {"s": None, "n": 4}, {"s": "z", "n": 5}])
    batch = pa.record_batch({"lists": lists, "structs": structs})
    codec = codec_of(batch.schema, store)
    assert codec.from_rows(codec.to_rows(batch)).equals(batch)
    assert len(store.values) == 4


def damaged(row: bytes, position: int) -> bytes:
    return row[:position] + bytes([row[position] ^ 0x10]) + row[position + 1 :]


@pytest.mark.parametrize("position", range(16, 16 + 8 + REFERENCE_BYTES))
def test_a_damaged_reference_is_told(store: ValuesInMemory, position: int) -> None:
    batch = pa.record_batch({"id": [7], "blob": [b"x" * 200]})
    codec = codec_of(batch.schema, store)
    with pytest.raises(CorruptBlockError):
        codec.from_rows(damaged(codec.to_rows(batch), position))


def test_a_value_of_another_process_is_refused(store: ValuesInMemory) -> None:
    batch = pa.record_batch({"id": [7], "blob": [b"x" * 200]})
    codec = codec_of(batch.schema, store)
    row = bytearray(codec.to_rows(batch))
    row[32] ^= 1
    row[60:64] = bytes(4)
    row[60:64] = crc32(row[24:]).to_bytes(4, "little")
    with pytest.raises(NotYetSupportedError, match="another process"):
        codec.from_rows(bytes(row))


def test_a_value_of_a_closed_store_is_told(store: ValuesInMemory) -> None:
    batch = pa.record_batch({"id": [7], "blob": [b"x" * 200]})
    codec = codec_of(batch.schema, store)
    row = codec.to_rows(batch)
    value_stores.forget(store.number)
    with pytest.raises(SpillError, match="closed"):
        codec.from_rows(row)
