"""Arrays of which some rows have other values, or are gone.

    flags = flags_of(places, count)              true at some places
    patched(array, flags, values)                with the values, one after the other, where flags are true
    numbers_from(first, count)

Texts that are numbers of a dictionary stay so: the dictionary grows by those that it lacks.

Held by: tests/formats/test_patched_rows.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def flags_of(places: pa.Array, count: int) -> pa.BooleanArray:
    """Return ``count`` flags, true at some places, each of which is there once."""
    if not count:
        return pa.array([], pa.bool_())
    found = pc.scatter(pa.repeat(scalar_of(True), len(places)), places, max_index=count - 1)
    return pc.fill_null(found, scalar_of(False))


def patched(array: pa.Array, flags: pa.BooleanArray, values: pa.Array) -> pa.Array:
    """Return an array with other values where flags are true."""
    if pa.types.is_dictionary(array.type):
        return _patched_texts(array, flags, values)
    data_type = array.type
    if pa.types.is_primitive(data_type) or pa.types.is_decimal(data_type):
        return pc.replace_with_mask(array, flags, values)
    if not len(values):
        return array
    rows = numbers_from(0, len(array) + len(values))
    chosen = pc.replace_with_mask(rows.slice(0, len(array)), flags, rows.slice(len(array)))
    return pa.concat_arrays([array, values]).take(chosen)


def numbers_from(first: int, count: int) -> pa.Array:
    """Return whole numbers, one after the other."""
    return pc.cumulative_sum(pa.repeat(scalar_of(1, pa.int64()), count), start=scalar_of(first - 1, pa.int64()))


def _patched_texts(array: pa.DictionaryArray, flags: pa.BooleanArray, values: pa.Array) -> pa.DictionaryArray:
    coded = values.dictionary_encode()
    known, texts = array.dictionary, coded.dictionary.cast(array.dictionary.type)
    there = pc.index_in(texts, value_set=known)
    missing = pc.is_null(there)
    if missing.true_count:
        known = pa.concat_arrays([known, texts.filter(missing)])
        there = pc.index_in(texts, value_set=known)
    numbers = there.take(coded.indices).cast(array.indices.type)
    return pa.DictionaryArray.from_arrays(pc.replace_with_mask(array.indices, flags, numbers), known)
