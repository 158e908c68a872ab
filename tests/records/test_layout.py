"""The row format, held by golden bytes: a difference here is a new form of rows (``engine.versions``)."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from engine.records.layout import Kind, round_up, row_layout, slot_alignment
from engine.records.row_codec import RowCodec
from engine.versions import ROWS
from tests.records.batches import NESTED_TYPES, sample_values

GOLDEN_SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string()), ("small", pa.int32())])
GOLDEN_ROWS = [
    (
        {"number": 7, "text": "EUR", "small": -1},
        "28000000 00000000 0700000000000000 2000000003000000 ffffffff 00000000 4555520000000000",
    ),
    (
        {"number": None, "text": "currency-long", "small": 5},
        "30000000 01000000 0000000000000000 200000000d000000 05000000 00000000 63757272656e6379 2d6c6f6e67000000",
    ),
]

# The variable part of one row (null last left out) of each nested type, as hex.
GOLDEN_BODIES = {
    "list": "03000000 02 01000000 00000000 03000000",
    "list_of_string": "02000000 02 01000000 00000000 61",
    "list_of_list": "03000000 02 02000000 00000000 00000000 02 01",
    "large_list": "02000000 02 1e000000 00000000" + "78" * 30,
    "struct": "00 01 00 02000000 02 000000000000f83f 0000000000000000 00 01000000 74",
    "fixed_list_of_bool": "02 01",
    "map": "02000000 00 00 01000000 01000000 6b 6c 02 02000000 00000000 00 0100 0200",
    "list_of_null": "02000000 03",
}


def test_rows_are_these_bytes() -> None:
    batch = pa.RecordBatch.from_pylist([row for row, _ in GOLDEN_ROWS], schema=GOLDEN_SCHEMA)
    expected = b"".join(bytes.fromhex(text) for _, text in GOLDEN_ROWS)
    assert RowCodec(GOLDEN_SCHEMA).to_rows(batch) == expected
    assert ROWS.newest == 2


@pytest.mark.parametrize("name", sorted(GOLDEN_BODIES))
def test_nested_values_are_these_bytes(name: str) -> None:
    position = 0 if name in ("struct", "fixed_list_of_bool") else 1
    batch = pa.record_batch({"value": pa.array([sample_values(NESTED_TYPES[name])[position]], NESTED_TYPES[name])})
    body = bytes.fromhex(GOLDEN_BODIES[name])
    row = RowCodec(batch.schema).to_rows(batch)
    assert row[:16].hex() == (
        round_up(16 + len(body), 8).to_bytes(4, "little").hex()
        + "00000000"
        + (16).to_bytes(4, "little").hex()
        + len(body).to_bytes(4, "little").hex()
    )
    assert row[16 : 16 + len(body)].hex() == body.hex()
    assert not any(row[16 + len(body) :])


def test_slots_stand_by_alignment_without_holes() -> None:
    columns = [
        (Kind.BOOL, 1),
        (Kind.INT64, 8),
        (Kind.INT16, 2),
        (Kind.BYTES, 0),
        (Kind.FIXED_BYTES, 12),
        (Kind.NULL, 0),
    ]
    layout = row_layout(columns)
    assert layout.slots == (38, 8, 36, 16, 24, 39)
    assert layout.widths == (1, 8, 2, 8, 12, 0)
    assert (layout.fixed_size, layout.null_bytes) == (40, 1)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 96, 97, 300])
def test_slots_never_overlap_and_are_aligned(count: int) -> None:
    widths = [1, 8, 2, 4, 16, 32, 3, 5, 24]
    layout = row_layout([(Kind.FIXED_BYTES, widths[index % len(widths)]) for index in range(count)])
    taken = sorted(zip(layout.slots, layout.widths, strict=True))
    assert taken[0][0] == round_up(4 + layout.null_bytes, 8)
    assert all(slot + width <= behind for (slot, width), (behind, _) in itertools.pairwise(taken))
    assert all(slot % slot_alignment(width) == 0 for slot, width in taken)
    assert layout.fixed_size - (taken[-1][0] + taken[-1][1]) in range(8)


def test_no_columns_are_a_row_of_eight_bytes() -> None:
    codec = RowCodec(pa.schema([]))
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert codec.to_rows(batch).hex() == "0800000000000000" * 2
    assert codec.from_rows(codec.to_rows(batch)).num_rows == 2
