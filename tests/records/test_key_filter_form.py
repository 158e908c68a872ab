"""The form of a filter of keys between processes: what is read is what was written, and what is none is refused."""

import datetime
import decimal
import gc

import pyarrow as pa
import pytest

from engine.records.key_filter import key_filter, merged
from engine.records.key_filter_form import batch_of_filter, filter_of_batch

_KEYS = {
    "near numbers": (pa.array([3, None, 7, 900], pa.int32()), pa.array([3, 4, 7, 901, None], pa.int32())),
    "far numbers": (pa.array([-(2**62), 5, 2**62]), pa.array([-(2**62), 6, 2**62])),
    "unsigned": (pa.array([0, 2**64 - 1], pa.uint64()), pa.array([0, 1, 2**64 - 1], pa.uint64())),
    "dates": (pa.array([datetime.date(2024, 2, 29)]), pa.array([datetime.date(2024, 2, 29), datetime.date(1, 1, 1)])),
    "texts": (pa.array(["a", "", "é", None]), pa.array(["a", "b", "", None])),
    "bytes": (pa.array([b"\0", b"\xff"]), pa.array([b"\0", b"\1"])),
    "decimals": (pa.array([decimal.Decimal("1.50")]), pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00")])),
    "floats": (pa.array([0.5, float("nan")]), pa.array([0.5, 1.5, float("nan")])),
    "nulls alone": (pa.array([None, None], pa.int64()), pa.array([1, None], pa.int64())),
    "texts of nulls alone": (pa.array([None], pa.string()), pa.array(["a", None], pa.string())),
}


def _sent(known):
    sink = pa.BufferOutputStream()
    batch = batch_of_filter(known)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return filter_of_batch(pa.ipc.open_stream(sink.getvalue()).read_next_batch())


@pytest.mark.parametrize("name", _KEYS)
def test_a_filter_that_was_sent_is_the_same(name):
    keys, probed = _KEYS[name]
    known = key_filter([keys], 1 << 20)
    found = _sent(known)
    assert (str(found), found.data_type, found.size_bytes) == (str(known), known.data_type, known.size_bytes)
    assert found.mask(probed).array().equals(known.mask(probed).array())
    pairs = probed.slice(0, 1), probed.slice(len(probed) - 2, 1)
    assert found.may_lie_between(*pairs) == known.may_lie_between(*pairs)


def test_a_batch_has_the_bits_of_its_filter_and_keeps_them():
    before = pa.total_allocated_bytes()
    batch = batch_of_filter(key_filter([pa.array(range(8_000_000), pa.int64())], 1 << 20))
    assert pa.total_allocated_bytes() - before < 100_000 < len(batch.column("bits")[0].as_buffer())
    gc.collect()
    assert filter_of_batch(batch).mask(pa.array([0, 7_999_999, 8_000_000])).kept == 2


@pytest.mark.parametrize("step", [1, 1 << 40], ids=["exact", "Bloom"])
def test_filters_that_were_sent_have_a_union(step):
    parts = [pa.array([number * step for number in range(begin, 3000, 3)]) for begin in range(3)]
    whole = merged([_sent(key_filter([part], 1 << 20)) for part in parts], 1 << 20)
    assert whole.mask(pa.array([number * step for number in range(3000)])).kept == 3000


def _with(batch, **changes):
    arrays = [pa.array([changes[name]], column.type) if name in changes else column
              for name, column in zip(batch.schema.names, batch.columns, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ([1, 100], {"highest": 2**63 + 200}),
        ([1, 100], {"highest": 2**64 - 1, "lowest": 0}),
        ([1, 100], {"lowest": 2**63 + 101}),
        ([1, 100], {"bits": b""}),
        ([1, 100], {"bits": None}),
        ([1, 100], {"bits": b"12345678"}),
        ([1, 100], {"value_count": -1}),
        ([1, 100], {"value_count": 0}),
        ([1, 2**60], {"word_shift": 9}),
        ([1, 2**60], {"word_shift": 40}),
        ([1, 2**60], {"word_shift": 2, "bits": bytes(32)}),
        (["a"], {"is_exact": True}),
    ],
)
def test_bits_that_do_not_fit_are_refused(keys, changes):
    batch = batch_of_filter(key_filter([pa.array(keys)], 1 << 20))
    filter_of_batch(batch)
    with pytest.raises(ValueError, match="filter"):
        filter_of_batch(_with(batch, **changes))


def test_another_batch_is_no_filter():
    with pytest.raises(ValueError, match="has other columns"):
        filter_of_batch(pa.RecordBatch.from_pydict({"n": [1]}))
