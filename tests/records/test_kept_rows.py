"""Rows that a mask keeps, and masks of codes, against Arrow's filter and take."""

import decimal
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.records.kept_rows import kept_columns, kept_rows

ROWS = 1000
TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.date32()),
    *(pa.timestamp("us", tz="UTC"), pa.decimal128(20, 2), pa.decimal256(50, 3), pa.bool_(), pa.string(), pa.binary()),
    *(pa.large_string(), pa.large_binary(), pa.binary(3), pa.null(), pa.list_(pa.int64()), pa.struct({"a": pa.int8()})),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string(), ordered=True)),
]


def value_of(data_type, chosen):
    if pa.types.is_null(data_type):
        return None
    if pa.types.is_list(data_type):
        return [chosen.randrange(9)] * chosen.randrange(3)
    if pa.types.is_struct(data_type):
        return {"a": chosen.randrange(100)}
    if pa.types.is_dictionary(data_type):
        return chosen.choice(["", "one", "another one"])
    if pa.types.is_fixed_size_binary(data_type):
        return chosen.randbytes(3)
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return chosen.randbytes(chosen.choice([0, 1, 7, 31, 32, 33, 90]))
    if pa.types.is_decimal(data_type):
        return decimal.Decimal(chosen.randrange(-(10**15), 10**15)).scaleb(-2)
    number = chosen.randrange(100)
    text = "text " * chosen.randrange(9) + "é"
    return text if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) else number


def column_of(data_type, nulls, offset, rows=ROWS):
    chosen = random.Random(f"{data_type} {nulls}")
    if pa.types.is_dictionary(data_type):
        values = column_of(pa.string(), nulls, offset, rows)
        texts = pc.if_else(pc.greater(pc.binary_length(values), 20), "long", "short")
        return texts.dictionary_encode().cast(data_type)
    total = rows + offset
    plain = pa.int64() if pa.types.is_temporal(data_type) or pa.types.is_floating(data_type) else data_type
    values = [None if nulls and chosen.random() < nulls else value_of(plain, chosen) for _ in range(total)]
    if pa.types.is_boolean(data_type):
        return pa.array([None if value is None else value % 2 == 0 for value in values], data_type).slice(offset)
    if pa.types.is_date32(data_type):
        return pa.array(values, pa.int32()).cast(data_type).slice(offset)
    return pa.array(values, plain).cast(data_type).slice(offset)


def mask_of(share, nulls=0.0, offset=0, rows=ROWS):
    chosen = random.Random(f"{share} {nulls}")
    values = [None if chosen.random() < nulls else chosen.random() < share for _ in range(rows + offset)]
    return pa.array(values, pa.bool_()).slice(offset)


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize(("nulls", "offset"), [(0.0, 0), (0.0, 13), (0.3, 0), (0.01, 77)])
def test_the_rows_of_every_type_are_those_that_arrow_keeps(data_type, nulls, offset):
    column = column_of(data_type, nulls, offset)
    batch = pa.RecordBatch.from_arrays([column, column], names=["one", "other"])
    for share in (0.0, 0.02, 0.3, 0.6, 0.9, 0.99, 1.0):
        for mask in (mask_of(share), mask_of(share, nulls=0.1), mask_of(share, offset=5)):
            found = kept_rows(batch, mask)
            found.validate(full=True)
            assert found.equals(pc.filter(batch, mask))
            assert found.schema.equals(batch.schema)
            assert [one.null_count for one in found.columns] == [one.null_count for one in pc.filter(batch, mask)]


@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 127, 128, 129, 192])
def test_runs_that_end_with_words_and_with_the_batch(rows):
    columns = [column_of(data_type, 0.0, 0, rows) for data_type in (pa.int64(), pa.string(), pa.bool_())]
    batch = pa.RecordBatch.from_arrays(columns, names=["a", "b", "c"])
    for first in range(0, rows, 7):
        for last in range(first, rows, 5):
            mask = pa.array([first <= row <= last for row in range(rows)])
            assert kept_rows(batch, mask).equals(batch.slice(first, last - first + 1))
            gone = pc.invert(mask)
            assert kept_rows(batch, gone).equals(pc.filter(batch, gone))


def test_texts_of_slices_without_bytes_and_at_the_end_of_their_buffer():
    for texts in (["", ""], ["a", "b"], ["x" * 40, "y"], [None, None], ["long enough to have 32 bytes and more", "z"]):
        batch = pa.record_batch({"text": pa.array(texts * 50, pa.string()).slice(3)})
        mask = mask_of(0.5, rows=batch.num_rows)
        assert kept_rows(batch, mask).equals(pc.filter(batch, mask))


def test_all_rows_are_the_batch_itself_and_no_columns_have_rows_too():
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert kept_rows(batch, pa.array([True] * 3)) is batch
    assert kept_rows(batch, pa.array([None, None, None], pa.bool_())).num_rows == 0
    assert kept_rows(batch.select([]), pa.array([True, False, True])).num_rows == 2


def test_extension_types_stay_what_they_are():
    storage = pa.array([bytes(16), b"x" * 16] * 40, pa.binary(16))
    batch = pa.record_batch({"id": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    mask = mask_of(0.5, rows=80)
    assert kept_rows(batch, mask).equals(pc.filter(batch, mask))


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(pa.ArrowInvalid, match="a mask of 2 rows for a batch of 3"):
        kept_rows(pa.record_batch({"a": [1, 2, 3]}), pa.array([True, False]))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_some_columns_of_the_kept_rows(share):
    batch = pa.record_batch({str(data_type): column_of(data_type, 0.2, 5) for data_type in TYPES})
    places = [3, 0, 13, len(TYPES) - 1]
    schema = pa.schema([batch.schema.field(place) for place in places])
    mask = mask_of(share, 0.1)
    found = kept_columns(batch, mask, places, schema)
    found.validate(full=True)
    assert found.schema == schema
    assert found.equals(batch.filter(mask).select(places))
