"""Hashes: the same from batches and rows, equal for equal keys, spread for others."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.records.row_codec import RowCodec
from tests.native import _records_probe as probe
from tests.records.batches import KEY_TYPES, batches, columns, sample_batch

MILLION = 1_000_000


def hashes(batch: pa.RecordBatch, keys: list[int] | None = None) -> np.ndarray:
    return np.frombuffer(probe.hashes_of_batch(batch, keys or list(range(batch.num_columns))), np.uint64)


def hash_of(values: list[object], data_type: pa.DataType) -> list[int]:
    return [int(value) for value in hashes(pa.record_batch({"key": pa.array(values, data_type)}))]


@settings(max_examples=200, deadline=None)
@given(batches(KEY_TYPES), st.data())
def test_rows_and_batches_have_the_same_hashes(batch: pa.RecordBatch, data: st.DataObject) -> None:
    keys = data.draw(st.permutations(range(batch.num_columns)))
    codec = RowCodec(batch.schema)
    assert probe.hashes_of_batch(batch, keys) == probe.hashes_of_rows(codec, codec.to_rows(batch), keys)


@settings(max_examples=100, deadline=None)
@given(batches(KEY_TYPES), st.data())
def test_hashes_do_not_depend_on_offsets(batch: pa.RecordBatch, data: st.DataObject) -> None:
    keys = list(range(batch.num_columns))
    start = data.draw(st.integers(0, batch.num_rows))
    whole = probe.hashes_of_batch(batch, keys)
    assert probe.hashes_of_batch(batch.slice(start), keys) == whole[start * 8 :]
    assert probe.hashes_of_batch(batch, keys, start, batch.num_rows - start) == whole[start * 8 :]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(KEY_TYPES)), st.data())
def test_hashes_of_one_column_are_equal_exactly_when_the_values_are(name: str, data: st.DataObject) -> None:
    array = data.draw(columns(KEY_TYPES[name], 12))
    found = hashes(pa.record_batch({"key": array}))

    def canonical(value: object) -> object:
        return "NaN" if isinstance(value, float) and math.isnan(value) else value

    values = [canonical(value) for value in array.to_pylist()]
    for one in range(12):
        for other in range(12):
            assert (found[one] == found[other]) == (values[one] == values[other])


@pytest.mark.parametrize(("data_type", "code", "bits"), [
    (pa.float16(), "<e", "<H"), (pa.float32(), "<f", "<I"), (pa.float64(), "<d", "<Q"),
])  # fmt: skip
def test_zeros_and_nans_are_one_value_each(data_type: pa.DataType, code: str, bits: str) -> None:
    negative_nan = struct.unpack(bits, struct.pack(code, math.nan))[0] | (1 << (data_type.bit_width - 1)) | 1
    buffer = (
        struct.pack(code, 0.0) + struct.pack(code, -0.0) + struct.pack(code, math.nan) + struct.pack(bits, negative_nan)
    )
    array = pa.Array.from_buffers(data_type, 4, [None, pa.py_buffer(buffer)])
    zero, negative_zero, nan, other_nan = hashes(pa.record_batch({"key": array}))
    assert zero == negative_zero
    assert nan == other_nan
    assert zero != nan


def test_large_and_plain_strings_hash_alike() -> None:
    words = ["", "EUR", "x" * 100, None]
    assert hash_of(words, pa.string()) == hash_of(words, pa.large_string())
    assert hash_of(words, pa.string()) == hash_of(
        [(w and w.encode()) or (b"" if w == "" else None) for w in words], pa.binary()
    )


def test_the_order_of_key_columns_matters() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2]), "b": pa.array([2, 1])})
    first, second = hashes(batch, [0, 1])
    assert first != second
    assert list(hashes(batch, [1, 0])) == [second, first]


def test_every_length_of_string_hashes_every_byte() -> None:
    for size in range(1, 70):
        texts = [b"a" * size] + [b"a" * position + b"b" + b"a" * (size - position - 1) for position in range(size)]
        assert len(set(hash_of(texts, pa.binary()))) == size + 1
    assert len(set(hash_of([b"\0" * size for size in range(200)], pa.binary()))) == 200


SEQUENCES = {
    "consecutive": pa.array,
    "multiples of 2^32": lambda numbers: pa.array(numbers << 32),
    "doubles": lambda numbers: pa.array(numbers.astype(np.float64)),
    "strings": lambda numbers: pa.array(numbers).cast(pa.string()),
    "long strings": lambda numbers: pc.binary_join_element_wise(
        "instrument-number-", pa.array(numbers).cast(pa.string()), ""
    ),
}


@pytest.mark.parametrize("name", sorted(SEQUENCES))
def test_a_million_keys_collide_as_seldom_as_chance_and_fill_all_bits(name: str) -> None:
    found = np.sort(hashes(pa.record_batch({"key": SEQUENCES[name](np.arange(MILLION))})))
    assert np.all(found[1:] != found[:-1])
    for shift, bits in ((48, 16), (32, 16), (16, 16), (0, 16), (40, 10), (26, 12)):
        buckets = 1 << bits
        counts = np.bincount((found >> np.uint64(shift)) & np.uint64(buckets - 1), minlength=buckets)
        expected = MILLION / buckets
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        # Five standard deviations around the mean of a chi-square distribution.
        assert abs(chi_square - (buckets - 1)) < 6 * math.sqrt(2 * (buckets - 1)), (shift, bits)
    # Equal upper halves: about n^2 / 2^33 pairs.
    halves = found >> np.uint64(32)
    upper = np.count_nonzero(halves[1:] == halves[:-1])
    assert 50 < upper < 200


@pytest.mark.parametrize("data_type", [pa.int64(), pa.binary(8), pa.binary(13), pa.binary(29)], ids=str)
def test_each_bit_of_the_key_turns_about_half_of_the_hash(data_type: pa.DataType) -> None:
    rng = np.random.default_rng(7)
    size = data_type.byte_width
    samples = 4000
    keys = rng.integers(0, 256, (samples, size), dtype=np.uint8)

    def hashes_of(items: np.ndarray) -> np.ndarray:
        array = pa.Array.from_buffers(data_type, samples, [None, pa.py_buffer(items.tobytes())])
        return hashes(pa.record_batch({"key": array}))

    base = hashes_of(keys)
    for bit in range(size * 8):
        turned = keys.copy()
        turned[:, bit // 8] ^= np.uint8(1 << bit % 8)
        difference = base ^ hashes_of(turned)
        shares = np.unpackbits(difference.view(np.uint8).reshape(samples, 8), axis=1).mean(axis=0)
        assert 0.44 < shares.min() <= shares.max() < 0.56, bit


@settings(max_examples=100, deadline=None)
@given(batches(KEY_TYPES), st.data())
def test_null_keys_are_flagged_in_batches_and_rows(batch: pa.RecordBatch, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.integers(0, batch.num_columns - 1), min_size=1))
    expected = [int(any(batch.column(key)[row].as_py() is None for key in keys)) for row in range(batch.num_rows)]
    of_batch, of_rows = probe.null_keys(RowCodec(batch.schema), batch, keys)
    assert of_batch == of_rows == (expected, sum(expected))


def test_a_batch_of_every_type_hashes_all_columns() -> None:
    batch = sample_batch(KEY_TYPES)
    whole = hashes(batch)
    assert len(set(whole.tolist())) == 4
    for column in range(batch.num_columns - 1):
        assert not np.array_equal(whole, hashes(batch.remove_column(column)))


@pytest.mark.parametrize("keys", [[3], [31], [32], [39], [3, 32], [31, 39, 3]])
def test_null_keys_are_flagged_wherever_their_columns_are(keys: list[int]) -> None:
    columns = {f"c{c}": pa.array([None if row % 41 == c else row for row in range(82)], pa.int64()) for c in range(40)}
    batch = pa.record_batch(columns)
    expected = [int(row % 41 in keys) for row in range(82)]
    of_batch, of_rows = probe.null_keys(RowCodec(batch.schema), batch, keys)
    assert of_batch == of_rows == (expected, sum(expected))
