"""Rows of several batches as one, against Arrow's concat_batches."""

import pyarrow as pa
import pytest

from engine.records.joined_batches import joined_batches
from engine.records.kept_rows import kept_rows
from tests.records.test_kept_rows import TYPES, column_of, mask_of

SIZES = [1, 63, 64, 0, 65, 200, 7]


def batches_of(data_type, nulls, offset, sizes=SIZES):
    arrays = [column_of(data_type, nulls if index % 2 else 0.0, offset, size) for index, size in enumerate(sizes)]
    return [pa.RecordBatch.from_arrays([array, array], names=["a", "b"]) for array in arrays]


def check(batches):
    joined = joined_batches(batches)
    joined.validate(full=True)
    assert joined.equals(pa.concat_batches(batches), check_metadata=True)
    return joined


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("offset", [0, 5])
def test_types(data_type, nulls, offset):
    batches = batches_of(data_type, nulls, offset)
    if pa.types.is_dictionary(data_type):  # of which each array has one of its own
        batches = [pa.RecordBatch.from_arrays(batch.columns, schema=batches[0].schema) for batch in batches]
    check(batches)
    check([batch.slice(1, max(0, batch.num_rows - 2)) for batch in batches])
    check([kept_rows(batch, mask_of(0.5, rows=batch.num_rows)) for batch in batches])


def test_codes_of_one_dictionary_keep_it():
    texts = pa.array(["a", "b", None, "c"])
    codes = [pa.array([0, 1, None], pa.int32()), pa.array([], pa.int32()), pa.array([3, 2], pa.int32())]
    arrays = [pa.DictionaryArray.from_arrays(each, texts) for each in codes]
    joined = check([pa.RecordBatch.from_arrays([array], names=["t"]) for array in arrays])
    assert joined.column(0).dictionary.buffers()[1].address == texts.buffers()[1].address


def test_an_extension_type_and_metadata_of_fields_stay():
    field = pa.field("a", pa.int64(), metadata={"k": "v"})
    values = pa.array([1, None, 3])
    check([pa.RecordBatch.from_arrays([values], schema=pa.schema([field], metadata={"of": "schema"}))] * 3)
    check([pa.RecordBatch.from_arrays([pa.array([b"0" * 16] * 2, pa.uuid())], names=["u"])] * 2)


def test_no_columns_and_one_batch():
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})
    assert joined_batches([batch]) is batch
    assert joined_batches([batch.select([]), batch.select([])]).num_rows == 4


def test_texts_that_no_offsets_reach_are_arrow_s_error():
    texts = pa.array(["x" * (1 << 20)])
    batch = pa.RecordBatch.from_arrays(
        [pa.DictionaryArray.from_arrays([0] * 300, texts).cast(pa.string())], names=["t"]
    )
    with pytest.raises(pa.ArrowInvalid, match="offset overflow"):
        joined_batches([batch] * 8)
