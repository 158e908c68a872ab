"""Types, and of each null and three values in ascending order (equal ones where a type has no three).

``TYPES[name]`` is an array of eight rows: nulls and values as ``ROWS`` has them.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_UTC = dt.UTC
#: which of the three values a row has; None: it has null
ROWS = (1, None, 2, 0, 1, None, 2, 1)


def _integers(data_type, low, high):
    return data_type, [low, 1, high]


def _moments(unit, zone=None):
    moments = [dt.datetime(1931, 4, 5, 6, 7, 8), dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59)]
    return pa.timestamp(unit, zone), [moment.replace(tzinfo=_UTC) if zone else moment for moment in moments]


def _durations(unit):
    return pa.duration(unit), [dt.timedelta(days=-3), dt.timedelta(0), dt.timedelta(days=400, seconds=7)]


_DAYS = [dt.date(1931, 4, 5), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]
_TIMES = [dt.time(0), dt.time(6, 7, 8), dt.time(23, 59, 59)]
_TEXTS = ["", "b", 'żółć, "quoted" and longer than a prefix']
_BYTES = [b"", b"b", b"\x80\xff and longer than a prefix"]
_PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])

_VALUES = {
    "null": (pa.null(), [None, None, None]),
    "bool": (pa.bool_(), [False, True, True]),
    "int8": _integers(pa.int8(), -(2**7), 2**7 - 1),
    "int16": _integers(pa.int16(), -(2**15), 2**15 - 1),
    "int32": _integers(pa.int32(), -(2**31), 2**31 - 1),
    # a sum of its values fits, in any order of the rows: a sum that leaves 64 bits on the way is an error
    "int64": _integers(pa.int64(), -(2**62), 2**61 - 1),
    "uint8": _integers(pa.uint8(), 0, 2**8 - 1),
    "uint16": _integers(pa.uint16(), 0, 2**16 - 1),
    "uint32": _integers(pa.uint32(), 0, 2**32 - 1),
    "uint64": _integers(pa.uint64(), 0, 2**64 - 1),
    "float16": (pa.float16(), [-1.5, 0.25, 2048.0]),
    "float32": (pa.float32(), [-1.5, 0.25, 2.0**100]),
    "float64": (pa.float64(), [-1.5, 0.1, 1e300]),
    "decimal32": (pa.decimal32(5, 2), [Decimal("-999.99"), Decimal("0.01"), Decimal("999.99")]),
    "decimal64": (pa.decimal64(12, 3), [Decimal("-1.005"), Decimal("0.001"), Decimal("123456789.012")]),
    "decimal128": (pa.decimal128(20, 2), [Decimal("-1.05"), Decimal("0.01"), Decimal("123456789012345678.12")]),
    "decimal128_38": (pa.decimal128(38, 18), [Decimal("-1.000000000000000001"), Decimal(0), Decimal("9" * 20)]),
    "decimal256": (pa.decimal256(50, 3), [Decimal("-" + "8" * 40 + ".125"), Decimal("0.001"), Decimal("7" * 45)]),
    "date32": (pa.date32(), _DAYS),
    "date64": (pa.date64(), _DAYS),
    **{f"time32_{unit}": (pa.time32(unit), _TIMES) for unit in ("s", "ms")},
    **{f"time64_{unit}": (pa.time64(unit), _TIMES) for unit in ("us", "ns")},
    **{f"timestamp_{unit}": _moments(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp_{unit}_utc": _moments(unit, "UTC") for unit in ("s", "ms", "us", "ns")},
    "timestamp_us_zone": _moments("us", "Europe/Zurich"),
    "timestamp_us_offset": _moments("us", "+05:30"),
    **{f"duration_{unit}": _durations(unit) for unit in ("s", "ms", "us", "ns")},
    "month_day_nano_interval": (pa.month_day_nano_interval(), [(-1, 0, 0), (0, 1, 5), (2, 3, 4)]),
    "string": (pa.string(), _TEXTS),
    "large_string": (pa.large_string(), _TEXTS),
    "string_view": (pa.string_view(), _TEXTS),
    "binary": (pa.binary(), _BYTES),
    "large_binary": (pa.large_binary(), _BYTES),
    "binary_view": (pa.binary_view(), _BYTES),
    "fixed_size_binary": (pa.binary(4), [b"\x00abc", b"abcd", b"\xff\xff\xff\xff"]),
    "dictionary_string": (pa.dictionary(pa.int32(), pa.string()), _TEXTS),
    "dictionary_int64": (pa.dictionary(pa.int8(), pa.int64()), [-5, 0, 2**40]),
    "dictionary_float16": (pa.dictionary(pa.int16(), pa.float16()), [-1.5, 0.25, 2048.0]),
    "dictionary_ordered": (pa.dictionary(pa.uint8(), pa.string(), ordered=True), _TEXTS),
    "runs_string": (pa.run_end_encoded(pa.int32(), pa.string()), _TEXTS),
    "runs_float16": (pa.run_end_encoded(pa.int16(), pa.float16()), [-1.5, 0.25, 2048.0]),
    "list_int64": (pa.list_(pa.int64()), [[], [1], [2, None, 3]]),
    "list_string": (pa.list_(pa.string()), [[], ["a"], ["b", None, _TEXTS[2]]]),
    "list_null": (pa.list_(pa.null()), [[], [None], [None, None]]),
    "list_float16": (pa.list_(pa.float16()), [[], [1.5], [2.5, None]]),
    "list_decimal256": (pa.list_(pa.decimal256(50, 3)), [[], [Decimal("7" * 45)], [None, Decimal("0.001")]]),
    "list_date64": (pa.list_(pa.date64()), [[], [_DAYS[0]], [None, _DAYS[2]]]),
    "list_time64": (pa.list_(pa.time64("us")), [[], [_TIMES[1]], [None, _TIMES[2]]]),
    "list_duration": (pa.list_(pa.duration("us")), [[], [dt.timedelta(1)], [None, dt.timedelta(-1)]]),
    "list_timestamp": (pa.list_(pa.timestamp("us", "UTC")), [[], _moments("us", "UTC")[1][:1], [None]]),
    "list_binary": (pa.list_(pa.binary()), [[], [b"a"], [None, _BYTES[2]]]),
    "list_dictionary": (pa.list_(pa.dictionary(pa.int8(), pa.string())), [[], ["a"], ["b", None, "b"]]),
    "list_struct": (pa.list_(_PAIR), [[], [{"x": 1, "y": "a"}], [None, {"x": None, "y": None}]]),
    "list_struct_null": (pa.list_(pa.struct([("n", pa.null())])), [[], [{"n": None}], [None, {"n": None}]]),
    "list_list": (pa.list_(pa.list_(pa.int8())), [[], [[1]], [[2, None], None, []]]),
    "large_list": (pa.large_list(pa.int64()), [[], [1], [2, None, 3]]),
    "fixed_size_list": (pa.list_(pa.int64(), 2), [[1, 2], [1, 3], [2, None]]),
    "fixed_size_list_null": (pa.list_(pa.null(), 2), [[None, None]] * 3),
    "list_view": (pa.list_view(pa.int64()), [[], [1], [2, None, 3]]),
    "large_list_view": (pa.large_list_view(pa.string()), [[], ["a"], ["b", None]]),
    "struct": (_PAIR, [{"x": 1, "y": "a"}, {"x": 2, "y": None}, {"x": None, "y": "c"}]),
    "struct_null": (pa.struct([("n", pa.null()), ("x", pa.int8())]), [{"n": None, "x": n} for n in (1, 2, None)]),
    "struct_float16": (pa.struct([("h", pa.float16())]), [{"h": 0.5}, {"h": 1.5}, {"h": None}]),
    "struct_empty": (pa.struct([]), [{}, {}, {}]),
    "struct_wide_types": (
        pa.struct([("u", pa.uint64()), ("t", pa.time32("s")), ("b", pa.binary(2)), ("d", pa.decimal32(4, 1))]),
        [{"u": n, "t": _TIMES[1], "b": b"ab", "d": Decimal("1.5")} for n in (0, 2**63, None)],
    ),
    "map_string": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1)], [("b", None), ("c", 3)]]),
    "map_int": (pa.map_(pa.int32(), pa.string()), [[], [(1, "a")], [(2, None), (3, "c")]]),
    "map_null": (pa.map_(pa.string(), pa.null()), [[], [("a", None)], [("b", None), ("c", None)]]),
    "map_list_null": (pa.map_(pa.string(), pa.list_(pa.null())), [[], [("a", [None])], [("b", None), ("c", [])]]),
    "extension_uuid": (pa.uuid(), [bytes(16), b"0123456789abcdef", b"\xff" * 16]),
    "extension_json": (pa.json_(), ['""', "[1]", '{"a": 1}']),
    "extension_bool8": (pa.bool8(), [0, 1, 1]),
    "extension_opaque": (pa.opaque(pa.int32(), "money", "bank"), [1, 2, 3]),
    "extension_tensor": (pa.fixed_shape_tensor(pa.int32(), [2]), [[1, 2], [1, 3], [2, 4]]),
    "list_uuid": (pa.list_(pa.uuid()), [[], [bytes(16)], [b"\xff" * 16, None]]),
    "struct_uuid": (pa.struct([("id", pa.uuid())]), [{"id": bytes(16)}, {"id": None}, {"id": b"\xff" * 16}]),
}


def _listed(data_type, values):
    """Return a list or a struct of an extension type, of which pyarrow makes no array."""
    if pa.types.is_struct(data_type):
        field = data_type.field(0)
        child = _array(field.type, [None if value is None else value[field.name] for value in values])
        return pa.StructArray.from_arrays([child], fields=[field], mask=pa.array([value is None for value in values]))
    plain = pa.array(values, pa.list_(data_type.value_type.storage_type))
    child = pa.ExtensionArray.from_storage(data_type.value_type, plain.values)
    return pa.ListArray.from_arrays(plain.offsets, child, data_type, mask=plain.is_null())


def _array(data_type, values):
    """Return an array also of types that pyarrow makes of no Python values."""
    if isinstance(data_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(data_type, pa.array(values, data_type.storage_type))
    if any(isinstance(data_type.field(index).type, pa.BaseExtensionType) for index in range(data_type.num_fields)):
        return _listed(data_type, values)
    if pa.types.is_run_end_encoded(data_type):
        ends = pa.array(range(1, len(values) + 1), data_type.run_end_type)
        return pa.RunEndEncodedArray.from_arrays(ends, _array(data_type.value_type, values), data_type)
    if pa.types.is_dictionary(data_type):
        distinct = list(dict.fromkeys(value for value in values if value is not None))
        codes = pa.array([None if value is None else distinct.index(value) for value in values], data_type.index_type)
        return pa.DictionaryArray.from_arrays(codes, _array(data_type.value_type, distinct), ordered=data_type.ordered)
    if pa.types.is_float16(data_type):
        return pa.array([None if value is None else np.float16(value) for value in values], data_type)
    return pa.array(values, data_type)


def sample(name):
    """Return the eight rows of a type."""
    data_type, values = _VALUES[name]
    return _array(data_type, [None if one is None else values[one] for one in ROWS])


def _unions():
    """Return arrays of the types that have no rows: they are refused wherever they come in."""
    tags = pa.array([0, 1] * 4, pa.int8())
    numbers, texts = pa.array(range(8), pa.int64()), pa.array(["a"] * 8)
    offsets = pa.array([0, 0, 1, 1, 2, 2, 3, 3], pa.int32())
    sparse = pa.UnionArray.from_sparse(tags, [numbers, texts])
    dense = pa.UnionArray.from_dense(tags, offsets, [numbers, texts])
    listed = pa.ListArray.from_arrays(pa.array(range(9), pa.int32()), sparse)
    return {"sparse_union": sparse, "dense_union": dense, "list_union": listed}


#: types whose values Drey has, by name
TYPES = {name: sample(name) for name in _VALUES}
#: types of which Drey has no rows
FOREIGN = _unions()
#: names of types with an order: what can be a key
KEYS = tuple(
    name
    for name, array in TYPES.items()
    if not (
        isinstance(array.type, pa.BaseExtensionType)
        or pa.types.is_interval(array.type)
        or (pa.types.is_nested(array.type) and not pa.types.is_run_end_encoded(array.type))
    )
)


def plain(data_type):
    """Return the type that rows have for one that is encoded."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return data_type.value_type
    if pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_large_list_view(data_type):
        return pa.large_list(data_type.value_type)
    if pa.types.is_list(data_type) or pa.types.is_list_view(data_type):
        return pa.list_(plain(data_type.value_type))
    return data_type


def values_of(name, is_plain=False):
    """Return the rows of a type, as they are or decoded."""
    array = {**TYPES, **FOREIGN}[name]
    if not is_plain or plain(array.type) == array.type:
        return array
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return pa.array(array.to_pylist(), plain(array.type))
