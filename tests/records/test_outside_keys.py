"""Out-of-line keys, outside of their rows: hashed, ordered and found equal as if they were inside, damage noticed."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.errors import CorruptBlockError
from engine.graph.sort_key import SortKey
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_space import SpillSpace
from engine.memory.value_stores import BLOCK_BYTES
from engine.records.comparator import KeyEquality, RowComparator
from engine.records.normalized_key import NormalizedKey
from engine.records.outside_values import set_outside_bytes
from engine.records.row_codec import RowCodec
from tests.iomanager.conftest import IDENTITY
from tests.native import _records_probe as probe

BLOCK = b"abcdefgh" * (BLOCK_BYTES // 8)
#: what is the same for long, what is a beginning of another, what is there twice, what has just 64 bytes
KEYS: list[bytes | None] = [
    None,
    b"",
    b"a" * 63,
    b"a" * 64,
    b"a" * 64,
    b"a" * 65,
    b"a" * 64 + b"b",
    b"a" * 64 + b"\x00",
    b"\xff" * 200,
    b"z" * 200,
    None,
    BLOCK,
    BLOCK + b"x",
    BLOCK + b"y",
    BLOCK + b"y",
    b"b" + BLOCK[1:],
    BLOCK[:-1] + b"!",
    BLOCK * 2 + b"end",
    BLOCK * 2 + b"enc",
    BLOCK * 2 + b"end",
    BLOCK * 2 + b"en",
]


@pytest.fixture
def space(tmp_path: Path) -> Iterator[SpillSpace]:
    with IOManager([str(tmp_path)]) as manager, manager.space(IDENTITY) as space:
        yield space
    set_outside_bytes()


def sign(left: bytes | None, right: bytes | None, key: SortKey) -> int:
    """Compare as a sort does: the oracle."""
    if left is None or right is None:
        if (left is None) == (right is None):
            return 0
        return 1 if (left is None) == key.nulls_last else -1
    return ((left > right) - (left < right)) * (-1 if key.descending else 1)


def batch_of(data_type: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch({"before": pa.array(range(len(KEYS)), pa.int32()), "key": pa.array(KEYS, data_type)})


def codec_of(schema: pa.Schema, space: SpillSpace | None) -> RowCodec:
    codec = RowCodec(schema)
    if space is not None:
        codec.keep_outside(space)
    return codec


@pytest.mark.parametrize("limit", [1, 64, 65, 1000])
@pytest.mark.parametrize("data_type", [pa.binary(), pa.large_binary()])
def test_the_hash_does_not_tell_where_a_key_lies(space: SpillSpace, data_type: pa.DataType, limit: int) -> None:
    set_outside_bytes(limit)
    batch = batch_of(data_type).slice(1)
    outside, inside = codec_of(batch.schema, space), codec_of(batch.schema, None)
    for columns in ([1], [1, 0], [0, 1]):
        expected = probe.hashes_of_batch(batch, columns)
        assert probe.hashes_of_batch(batch, columns, mover=outside) == expected
        assert probe.hashes_of_rows(inside, inside.to_rows(batch), columns) == expected
        assert probe.hashes_of_rows(outside, outside.to_rows(batch), columns) == expected
    assert space.spilled_bytes > 0


@pytest.mark.parametrize("limit", [1, 65, 1000])
@pytest.mark.parametrize("key", [SortKey("key", *flags) for flags in itertools.product([False, True], repeat=2)])
def test_keys_outside_have_the_order_of_their_bytes(space: SpillSpace, key: SortKey, limit: int) -> None:
    set_outside_bytes(limit)
    batch = batch_of(pa.binary())
    outside, inside = codec_of(batch.schema, space), codec_of(batch.schema, None)
    page = outside.to_rows(batch)
    expected = [[sign(left, right, key) for right in KEYS] for left in KEYS]
    assert probe.compare_all(RowComparator(outside, [key]), page) == expected
    of_inside = probe.prefixes(NormalizedKey(inside, [key]), inside.to_rows(batch))
    assert probe.prefixes(NormalizedKey(outside, [key]), page) == of_inside


@pytest.mark.parametrize(("left_limit", "right_limit"), [(1, 1), (65, 65), (None, 65), (65, None)])
def test_keys_are_equal_wherever_they_lie(space: SpillSpace, left_limit: int | None, right_limit: int | None) -> None:
    batch = batch_of(pa.binary())
    codec = codec_of(batch.schema, space)
    set_outside_bytes(left_limit)
    left = codec.to_rows(batch)
    set_outside_bytes(right_limit)
    right = codec.to_rows(batch)
    expected = [[one == other for other in KEYS] for one in KEYS]
    equality = KeyEquality(codec, [1], codec, [1])
    assert probe.rows_equal(equality, left, right) == expected
    assert probe.batch_equals_rows(equality, batch, right) == expected
    set_outside_bytes(left_limit)
    assert probe.batch_equals_rows(equality, batch, right, mover=codec) == expected


def test_a_damaged_key_is_an_error_in_the_thread_that_compares(space: SpillSpace, tmp_path: Path) -> None:
    set_outside_bytes(1000)
    batch = pa.record_batch({"key": pa.array([BLOCK + b"x", BLOCK + b"y"], pa.binary())})
    codec = codec_of(batch.schema, space)
    page = codec.to_rows(batch)
    comparator = RowComparator(codec, [SortKey("key")])
    (path,) = tmp_path.rglob("*.spill")
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"?")
    met: list[Any] = []

    def compare() -> None:
        try:
            probe.compare_all(comparator, page)
        except CorruptBlockError as error:
            met.append(error)

    threads = [threading.Thread(target=compare) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(met) == 2
    assert all("offset 0 is damaged" in str(error) for error in met)
    narrow = pa.record_batch({"key": pa.array([b"x", b"y"], pa.binary())})
    assert probe.compare_all(comparator, codec.to_rows(narrow)) == [[0, -1], [1, 0]]
