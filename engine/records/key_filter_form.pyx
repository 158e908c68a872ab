"""The form of a KeyFilter between processes: one row of a batch.

    batch_of_filter(filter) -> RecordBatch            filter_of_batch(batch) -> KeyFilter

    value_count, is_exact, lowest, highest, word_shift │ least, greatest: of the type of the keys │ bits

The bits of the batch are those of the filter, which it keeps; the filter of a batch has a copy of them.
What comes from another process is checked: a filter looks its bits up without asking how many there are.

Held by: tests/records/test_key_filter_form.py
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy

import pyarrow as pa

from engine.records.key_filter cimport KeyFilter

cdef enum:
    WORDS_SHIFT_MIN = 3
    WORDS_SHIFT_MAX = 32
    BITS_BYTES_MAX = 1 << 24

cdef tuple _NUMBERS = ("value_count", "is_exact", "lowest", "highest", "word_shift")


def batch_of_filter(KeyFilter known not None):
    """Return a filter as a batch of one row."""
    held = pa.py_buffer(b"")
    if known.size_bytes:
        address = <uintptr_t>known._bits if known.is_exact else <uintptr_t>known._words
        held = pa.foreign_buffer(address, known.size_bytes, known)
    ends = pa.array([0, known.size_bytes], pa.int64()).buffers()[1]
    bits = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, held])
    numbers = (known.value_count, bool(known.is_exact), known._lowest, known._highest, known._word_shift)
    types = (pa.int64(), pa.bool_(), pa.uint64(), pa.uint64(), pa.int32())
    bounds = [
        pa.nulls(1, known.data_type) if bound is None else pa.array([bound.as_py()], known.data_type)
        for bound in (known._least, known._greatest)
    ]
    arrays = [pa.array([number], data_type) for number, data_type in zip(numbers, types)]
    return pa.RecordBatch.from_arrays(
        [*arrays, *bounds, bits], names=[*_NUMBERS, "least", "greatest", "bits"]
    )


def filter_of_batch(batch):
    """Return the filter of a batch.

    Raises:
        ValueError: the batch is none of a filter.
    """
    cdef KeyFilter made
    cdef const uint8_t* held
    cdef uint64_t size
    if batch.schema.names != [*_NUMBERS, "least", "greatest", "bits"] or batch.num_rows != 1:
        raise ValueError(f"a filter of keys has other columns than {batch.schema.names}")
    values = {name: batch.column(name)[0].as_py() for name in _NUMBERS}
    made = KeyFilter(batch.column("least").type)
    made.value_count, made._lowest, made._highest = values["value_count"], values["lowest"], values["highest"]
    if made._has_order():
        made._least, made._greatest = batch.column("least")[0], batch.column("greatest")[0]
    bits = batch.column("bits")[0].as_buffer()
    if bits is None:
        raise ValueError("a filter of keys without bits")
    held, size = <const uint8_t*><uintptr_t>bits.address, bits.size
    if made.value_count == 0 and size == 0:
        return made
    if made.value_count <= 0 or size == 0 or size > BITS_BYTES_MAX:
        raise ValueError(f"a filter of {made.value_count} keys in {size} bytes")
    if values["is_exact"]:
        if (not made._width or made._lowest > made._highest or made._highest - made._lowest >= 8 * size
                or size != (made._highest - made._lowest + 2 + 63) // 64 * 8):
            raise ValueError(f"an exact filter from {made._lowest} to {made._highest} in {size} bytes")
        made._take_bits()
        memcpy(made._bits, held, size)
        return made
    if not WORDS_SHIFT_MIN <= values["word_shift"] < WORDS_SHIFT_MAX or size != <uint64_t>8 << values["word_shift"]:
        raise ValueError(f"a Bloom filter of 2^{values['word_shift']} words in {size} bytes")
    made._take_words(size // 2, <int64_t>size)
    if <uint64_t>made.size_bytes != size:
        raise ValueError(f"a Bloom filter in {size} bytes")
    memcpy(made._words, held, size)
    return made
