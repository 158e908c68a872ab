"""The table: what types become on a way, where they do not come out as they went in.

``REFUSED[way]`` are types that are an error before anything runs, which names column and type and says what to do.
``KEPT[way]`` are types that come out as another one, with the same values; ``ENDED[way]`` those of whose values some
end the job, with an error that shows one. Every other type comes out as its plain type, with all its values. The page
of types in the docs is made from this (``docs/generators/types_page.py``).
"""

from __future__ import annotations

import pyarrow as pa

from tests.types_table.sampled_types import FOREIGN, KEYS, TYPES

UNIONS = frozenset(FOREIGN)
EXTENSIONS = frozenset(name for name, array in TYPES.items() if isinstance(array.type, pa.BaseExtensionType))
#: lists, maps and structs
NESTED = frozenset(
    name for name, array in TYPES.items() if pa.types.is_nested(array.type) and name not in EXTENSIONS | set(KEYS)
)
INTERVAL = frozenset({"month_day_nano_interval"})
#: what is compared nowhere
UNORDERED = NESTED | EXTENSIONS | INTERVAL

_NS, _NS_UTC = pa.timestamp("ns"), pa.timestamp("ns", "UTC")
_PARQUET = {
    "date64": pa.date32(),
    "list_date64": pa.list_(pa.date32()),
    "time32_s": pa.time32("ms"),
    "timestamp_s": pa.timestamp("ms"),
    "timestamp_s_utc": pa.timestamp("ms", "UTC"),
    "struct_wide_types": pa.struct(
        [("u", pa.uint64()), ("t", pa.time32("ms")), ("b", pa.binary(2)), ("d", pa.decimal32(4, 1))]
    ),
}
_ORC = {
    "date64": _NS,
    "list_date64": pa.list_(_NS),
    **{f"timestamp_{unit}": _NS for unit in ("s", "ms", "us")},
    **{f"timestamp_{unit}_utc": _NS_UTC for unit in ("s", "ms", "us")},
    "timestamp_us_zone": _NS_UTC,
    "timestamp_us_offset": _NS_UTC,
    "list_timestamp": pa.list_(_NS_UTC),
    "large_string": pa.string(),
    "large_binary": pa.binary(),
    "fixed_size_binary": pa.binary(),
    "large_list": pa.list_(pa.int64()),
    "fixed_size_list": pa.list_(pa.int64()),
    "large_list_view": pa.list_(pa.string()),
}
_NOT_IN_ORC = frozenset(
    name
    for name in TYPES
    if name.startswith(("uint", "time32", "time64", "duration"))
    or any(word in name for word in ("null", "float16", "decimal32", "decimal64", "decimal256", "interval", "uuid"))
    or name in EXTENSIONS | {"list_time64", "list_duration", "struct_wide_types"}
)
_NOT_IN_PARQUET = UNIONS | INTERVAL | {"struct_empty"}
#: bytes of which not all are text
_BYTES = frozenset({"binary", "large_binary", "binary_view", "fixed_size_binary", "list_binary"})
_NO_TEXT = UNORDERED | UNIONS
_WITH_TEXT = frozenset({"extension_json", "extension_bool8", "extension_opaque"})

REFUSED = {
    "from_rows": UNIONS,
    "write_parquet": _NOT_IN_PARQUET,
    "read_parquet": _NOT_IN_PARQUET,
    "records": _NOT_IN_PARQUET,
    "write_orc": _NOT_IN_ORC | UNIONS,
    "read_orc": _NOT_IN_ORC | UNIONS,
    "write_csv": _NO_TEXT,
    "read_csv": _NO_TEXT,
    "write_json": INTERVAL | UNIONS | EXTENSIONS | {"map_int"},
    "read_json": INTERVAL | UNIONS | EXTENSIONS | {"map_int", "list_uuid", "struct_uuid"},
    **dict.fromkeys(("when_then", "coalesce", "array", "collected", "fill_null", "failed_rows"), UNIONS),
    **dict.fromkeys(("cast", "constant", "lead_with_default"), UNIONS),
    **dict.fromkeys(("map_", "flat_map", "map_batches", "map_batches_of_pandas", "map_batches_of_numpy"), UNIONS),
    **dict.fromkeys(("map_partition", "reduce", "co_group", "udf", "udf_of_arrow"), UNIONS),
    **dict.fromkeys(("cache", "exchange", "broadcast_join", "hash_join", "sort_merge_join", "cross_join"), UNIONS),
    **dict.fromkeys(("asof_join", "sort", "limit", "union", "first_of_groups", "lag", "first_value"), UNIONS),
    **dict.fromkeys(("min_by", "sql", "sql_union", "sql_case", "sql_lag"), UNIONS),
}
KEPT = {
    "write_parquet": _PARQUET | {"list_date64": pa.list_(pa.field("element", pa.date32()))},
    "read_parquet": _PARQUET,
    "write_orc": _ORC,
    "read_orc": _ORC,
    "min_by": {"null": pa.int64()},
}
ENDED = {
    "write_json": _BYTES | {"list_uuid", "struct_uuid"},
}
#: decimals of more digits than 38
WIDE = frozenset({"decimal256", "list_decimal256"})
NOT_ON_SPARK = UNIONS | INTERVAL | EXTENSIONS | {"struct_empty", "list_uuid", "struct_uuid"}
NOT_IN_POLARS = UNIONS | INTERVAL | WIDE
#: numpy has no nulls among floats: they are NaN there
NAN = frozenset({"float16", "float32", "float64", "dictionary_float16", "runs_float16", "list_float16"})
#: where an error is about a type that a program names, and not about a column
OF_NAMED_TYPES = frozenset({"cast", "constant", "lead_with_default", "fill_null", "udf", "udf_of_arrow"})
