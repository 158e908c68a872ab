"""Types and batches of every kind that rows hold: strategies for hypothesis and fixed samples."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

KEY_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal32": pa.decimal32(7, 2),
    "decimal64": pa.decimal64(15, 3),
    "decimal128_9": pa.decimal128(9, 2),
    "decimal128_38": pa.decimal128(38, 6),
    "decimal256_30": pa.decimal256(30, 2),
    "decimal256_76": pa.decimal256(76, 10),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32_s": pa.time32("s"),
    "time32_ms": pa.time32("ms"),
    "time64_us": pa.time64("us"),
    "timestamp_s": pa.timestamp("s"),
    "timestamp_us_zone": pa.timestamp("us", "Europe/Berlin"),
    "duration_ms": pa.duration("ms"),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "fixed_1": pa.binary(1),
    "fixed_3": pa.binary(3),
    "fixed_8": pa.binary(8),
    "fixed_16": pa.binary(16),
    "fixed_33": pa.binary(33),
    "null": pa.null(),
}

NESTED_TYPES: dict[str, pa.DataType] = {
    "list": pa.list_(pa.int32()),
    "list_of_string": pa.list_(pa.string()),
    "list_of_list": pa.list_(pa.list_(pa.bool_())),
    "large_list": pa.large_list(pa.large_string()),
    "fixed_list": pa.list_(pa.string(), 3),
    "fixed_list_of_bool": pa.list_(pa.bool_(), 2),
    "struct": pa.struct([("x", pa.int8()), ("y", pa.list_(pa.float64())), ("z", pa.string())]),
    "map": pa.map_(pa.string(), pa.list_(pa.int16())),
    "list_of_struct": pa.list_(pa.struct([("n", pa.null()), ("d", pa.decimal128(5, 2)), ("b", pa.bool_())])),
    "list_of_null": pa.list_(pa.null()),
    "empty_struct": pa.struct([]),
}

ALL_TYPES = KEY_TYPES | NESTED_TYPES

_SHORT_TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
_FLOATS = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}


def _decimals(data_type: pa.DataType) -> st.SearchStrategy[decimal.Decimal]:
    largest = 10**data_type.precision - 1
    context = decimal.Context(prec=100)
    return st.integers(-largest, largest).map(
        lambda value: context.create_decimal(value).scaleb(-data_type.scale, context)
    )


def _temporal(data_type: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_date(data_type):
        return st.dates(datetime.date(1900, 1, 1), datetime.date(2200, 1, 1))
    if pa.types.is_timestamp(data_type):
        moment = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2100, 1, 1))
        return moment.map(lambda value: value.replace(microsecond=0, tzinfo=datetime.UTC if data_type.tz else None))
    if pa.types.is_duration(data_type):
        return st.integers(-(10**9), 10**9).map(lambda value: datetime.timedelta(milliseconds=value))
    return st.times().map(lambda value: value.replace(microsecond=0))


def _nested(data_type: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(data_type):
        return st.fixed_dictionaries({field.name: values(field.type) for field in data_type})
    if pa.types.is_map(data_type):
        entry = st.tuples(values(data_type.key_type, nulls=False), values(data_type.item_type))
        return st.lists(entry, max_size=3, unique_by=lambda pair: pair[0])
    if pa.types.is_fixed_size_list(data_type):
        return st.lists(values(data_type.value_type), min_size=data_type.list_size, max_size=data_type.list_size)
    return st.lists(values(data_type.value_type), max_size=4)


def values(data_type: pa.DataType, nulls: bool = True) -> st.SearchStrategy[Any]:
    """Return Python values of a type, None among them."""
    if pa.types.is_null(data_type):
        return st.none()
    if pa.types.is_boolean(data_type):
        strategy: st.SearchStrategy[Any] = st.booleans()
    elif pa.types.is_integer(data_type):
        bits = data_type.bit_width
        unsigned = pa.types.is_unsigned_integer(data_type)
        strategy = st.integers(0, 2**bits - 1) if unsigned else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    elif pa.types.is_floating(data_type):
        strategy = st.floats(width=data_type.bit_width)
    elif pa.types.is_decimal(data_type):
        strategy = _decimals(data_type)
    elif pa.types.is_fixed_size_binary(data_type):
        strategy = st.binary(min_size=data_type.byte_width, max_size=data_type.byte_width)
    elif pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        strategy = _SHORT_TEXT
    elif pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        strategy = st.binary(max_size=40)
    elif pa.types.is_nested(data_type):
        strategy = _nested(data_type)
    else:
        strategy = _temporal(data_type)
    return st.none() | strategy if nulls else strategy


def _array(data_type: pa.DataType, items: list[Any]) -> pa.Array:
    return pa.array(items, data_type)


@st.composite
def columns(draw: st.DrawFn, data_type: pa.DataType, count: int, nulls: bool = True) -> pa.Array:
    """Return an array of count values, often a slice of a longer one."""
    before = draw(st.integers(0, 9))
    behind = draw(st.integers(0, 3))
    strategy = values(data_type, nulls=nulls)
    items = draw(st.lists(strategy, min_size=before + count + behind, max_size=before + count + behind))
    return _array(data_type, items).slice(before, count)


@st.composite
def batches(draw: st.DrawFn, types: dict[str, pa.DataType], max_rows: int = 20, max_columns: int = 5) -> pa.RecordBatch:
    """Return a batch of columns of some of the types; some columns have no nulls at all."""
    count = draw(st.integers(0, max_rows))
    chosen = draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=max_columns))
    arrays = [draw(columns(types[name], count, nulls=draw(st.booleans()))) for name in chosen]
    return pa.RecordBatch.from_arrays(arrays, names=[f"{name}_{index}" for index, name in enumerate(chosen)])


def sample_values(data_type: pa.DataType) -> list[Any]:
    """Return three values and a null of a type, always the same."""
    if pa.types.is_decimal(data_type):
        return [decimal.Decimal(text).scaleb(-data_type.scale) for text in ("0", "-12345", "999")] + [None]
    if pa.types.is_fixed_size_binary(data_type):
        width = data_type.byte_width
        return [b"\0" * width, b"\xff" * width, bytes(range(1, width + 1)), None]
    text = ["", "EUR", "a longer text of more than sixteen bytes", None]
    samples: dict[str, list[Any]] = {
        "bool": [True, False, True, None],
        "string": text,
        "large_string": text,
        "binary": [None if value is None else value.encode() for value in text],
        "large_binary": [None if value is None else value.encode() for value in text],
        "null": [None] * 4,
        "list": [[], [1, None, 3], [7], None],
        "list_of_string": [[], ["a", None], ["", "bcd"], None],
        "list_of_list": [[], [[True, None], None, []], [[False]], None],
        "large_list": [[], ["x" * 30, None], ["q"], None],
        "fixed_list": [["a", None, "b"], [None, None, None], ["", "", "x"], None],
        "fixed_list_of_bool": [[True, None], [False, False], [None, True], None],
        "struct": [
            {"x": 1, "y": [1.5, None], "z": "t"},
            {"x": None, "y": None, "z": None},
            {"x": -1, "y": [], "z": ""},
            None,
        ],
        "map": [[], [("k", [1, 2]), ("l", None)], [("", [])], None],
        "list_of_struct": [[], [{"n": None, "d": decimal.Decimal("1.50"), "b": True}, None], [], None],
        "list_of_null": [[], [None, None], [None] * 9, None],
        "empty_struct": [{}, {}, {}, None],
    }
    for name, known in samples.items():
        if ALL_TYPES[name].equals(data_type):
            return known
    if pa.types.is_floating(data_type):
        return [0.0, -1.5, float("nan"), None]
    if pa.types.is_temporal(data_type):
        numbers = [0, 86_400_000, 172_800_000, None] if pa.types.is_date64(data_type) else [0, 1_000, 80_000, None]
        return pa.array(numbers, pa.int64()).cast(_storage(data_type)).view(data_type).to_pylist()
    return [0, 1, 100, None]


def _storage(data_type: pa.DataType) -> pa.DataType:
    return pa.int32() if data_type.bit_width == 32 else pa.int64()


def sample_batch(types: dict[str, pa.DataType] = ALL_TYPES) -> pa.RecordBatch:
    """Return a batch of four rows with a column of every type."""
    arrays = [pa.array(sample_values(data_type), data_type) for data_type in types.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(types))
