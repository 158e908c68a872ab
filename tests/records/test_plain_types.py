"""Encoded types become plain ones, extension types stay around their storage, others are refused by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.errors import SchemaError
from engine.records.layout import Kind
from engine.records.plain_types import plain_batch, plain_schema, plain_type
from engine.records.row_codec import RowCodec
from tests.native import _records_probe as probe


class OpaqueType(pa.ExtensionType):
    """An opaque value for these tests: bytes with a name."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "drey.test.opaque")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> OpaqueType:
        return cls()


WORDS = ["a", None, "bcd", "a", "a long word of more than twelve bytes"]
ENCODED: dict[str, tuple[pa.Array, pa.DataType]] = {
    "dictionary": (pa.array(WORDS).dictionary_encode(), pa.string()),
    "dictionary of int8 indexes": (pa.array(WORDS, pa.dictionary(pa.int8(), pa.large_string())), pa.large_string()),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(
            pa.array([0, None, 1, 0, 2]), pa.array(["a", "bcd", WORDS[4]], pa.string_view())
        ),
        pa.string(),
    ),
    "run_end": (pc.run_end_encode(pa.array([1, 1, None, None, 5])), pa.int64()),
    "string_view": (pa.array(WORDS, pa.string_view()), pa.string()),
    "binary_view": (pa.array([None if w is None else w.encode() for w in WORDS], pa.binary_view()), pa.binary()),
    "list of dictionary": (
        pa.array([["a"], None, [], ["b", None], ["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.list_(pa.string()),
    ),
    "list view": (pa.array([[1], None, [], [2, 3], [4]], pa.list_view(pa.int32())), pa.list_(pa.int32())),
    "large list view": (
        pa.array([["x"], None, [], ["y", None], ["z"]], pa.large_list_view(pa.string_view())),
        pa.large_list(pa.string()),
    ),
    "struct of views": (
        pa.array([{"s": "x"}, None, {"s": None}, {"s": ""}, {"s": "y"}], pa.struct([("s", pa.string_view())])),
        pa.struct([("s", pa.string())]),
    ),
    "map of views": (
        pa.array([[("k", "v")], None, [], [("l", None)], [("m", "")]], pa.map_(pa.string(), pa.string_view())),
        pa.map_(pa.string(), pa.string()),
    ),
    "fixed list of views": (
        pa.array([["a", None], None, ["", "b"], ["c", "d"], [None, None]], pa.list_(pa.string_view(), 2)),
        pa.list_(pa.string(), 2),
    ),
}


@pytest.mark.parametrize("name", sorted(ENCODED))
@pytest.mark.parametrize("start", [0, 1, 3])
def test_encoded_types_become_plain_ones_with_the_same_values(name: str, start: int) -> None:
    array, expected = ENCODED[name]
    batch = pa.record_batch({"value": array, "plain": pa.array(range(5))}).slice(start)
    codec = RowCodec(batch.schema)
    assert plain_type(array.type).equals(expected)
    assert codec.schema.equals(pa.schema([("value", expected), ("plain", pa.int64())]))
    found = codec.from_rows(codec.to_rows(batch))
    found.validate(full=True)
    assert found.schema.equals(codec.schema)
    assert found.to_pylist() == batch.to_pylist()
    assert plain_batch(batch).schema.equals(codec.schema)


def test_plain_batches_are_returned_as_they_are() -> None:
    batch = pa.record_batch({"a": pa.array([1]), "b": pa.array([[{"x": "y"}]])})
    assert plain_batch(batch) is batch


def test_schema_keeps_names_nullability_and_metadata() -> None:
    field = pa.field("d", pa.dictionary(pa.int32(), pa.string()), nullable=False, metadata={"k": "v"})
    schema = plain_schema(pa.schema([field], metadata={"s": "m"}))
    assert schema.field(0).equals(pa.field("d", pa.string(), nullable=False), check_metadata=False)
    assert schema.field(0).metadata == {b"k": b"v"}
    assert schema.metadata == {b"s": b"m"}


def test_extension_types_travel_as_their_storage_and_come_back() -> None:
    storage = pa.array([b"pickle", None, b""], pa.binary())
    opaque = pa.ExtensionArray.from_storage(OpaqueType(), storage)
    bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8()))
    nested = pa.ListArray.from_arrays([0, None, 1, 2], bools)
    uuid = pa.array([b"0123456789abcdef", None, b"\0" * 16], pa.uuid())
    batch = pa.record_batch({"opaque": opaque, "nested": nested, "uuid": uuid})
    codec = RowCodec(batch.schema)
    found = codec.from_rows(codec.to_rows(batch))
    assert found.schema.equals(batch.schema)
    assert found.equals(batch)
    assert probe.kind_of_columns(batch)[0][0] == Kind.BYTES


UNSUPPORTED: dict[str, Any] = {
    "union": pa.dense_union([pa.field("a", pa.int32())]),
    "list of union": pa.list_(pa.sparse_union([pa.field("a", pa.int32())])),
}


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_types_that_rows_cannot_hold_are_refused_by_column_and_type(name: str) -> None:
    schema = pa.schema([("fine", pa.int32()), ("odd", UNSUPPORTED[name])])
    with pytest.raises(SchemaError, match=r"column 'odd' has the type .*, which rows cannot hold"):
        RowCodec(schema)


def test_types_nested_too_deep_are_refused() -> None:
    data_type = pa.int8()
    for _ in range(70):
        data_type = pa.list_(data_type)
    with pytest.raises(SchemaError, match="column 'deep': a type is nested deeper than 64"):
        RowCodec(pa.schema([("deep", data_type)]))


def test_kinds_have_the_same_numbers_in_python_and_in_kernels() -> None:
    types = {
        Kind.NULL: pa.null(),
        Kind.BOOL: pa.bool_(),
        Kind.INT8: pa.int8(),
        Kind.INT16: pa.int16(),
        Kind.INT32: pa.date32(),
        Kind.INT64: pa.timestamp("ns"),
        Kind.UINT8: pa.uint8(),
        Kind.UINT16: pa.uint16(),
        Kind.UINT32: pa.uint32(),
        Kind.UINT64: pa.uint64(),
        Kind.FLOAT16: pa.float16(),
        Kind.FLOAT32: pa.float32(),
        Kind.FLOAT64: pa.float64(),
        Kind.DECIMAL128: pa.decimal128(5),
        Kind.DECIMAL256: pa.decimal256(5),
        Kind.FIXED_BYTES: pa.binary(7),
        Kind.BYTES: pa.string(),
        Kind.LARGE_BYTES: pa.large_binary(),
        Kind.LIST: pa.map_(pa.string(), pa.string()),
        Kind.LARGE_LIST: pa.large_list(pa.int8()),
        Kind.FIXED_LIST: pa.list_(pa.int8(), 4),
        Kind.STRUCT: pa.struct([("a", pa.int8()), ("b", pa.int8())]),
    }
    assert set(types) == set(Kind)
    schema = pa.schema([(kind.name, data_type) for kind, data_type in types.items()])
    found = probe.kind_of_columns(pa.RecordBatch.from_pylist([{}, {}], schema=schema))
    assert [kind for kind, _, _, _ in found] == list(types)
    widths = {kind: width for kind, width, _, _ in found}
    assert widths[Kind.FIXED_LIST] == 4
    assert widths[Kind.FIXED_BYTES] == 7
    assert widths[Kind.DECIMAL256] == 32
    assert [nulls for _, _, nulls, _ in found] == [2] * len(types)


def test_nulls_are_counted_exactly_in_slices() -> None:
    array = pa.array([None if index % 3 == 0 else index for index in range(1000)])
    for start, count in ((0, 1000), (1, 2), (7, 700), (64, 129), (3, 0)):
        batch = pa.record_batch({"a": array.slice(start, count)})
        assert probe.kind_of_columns(batch)[0][2] == sum(index % 3 == 0 for index in range(start, start + count))
