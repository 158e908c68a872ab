"""The words that parameters of the API take, as types: an editor completes them, and a misspelt one is a type error.

At run time the calls check words themselves, join types in more spellings than these.

Held by: tests/api/test_choices.py
"""

from typing import Literal, TypeAlias

JoinHow: TypeAlias = Literal[
    "inner",
    "left",
    "right",
    "full",
    "outer",
    "semi",
    "anti",
    "cross",
    "left_outer",
    "right_outer",
    "full_outer",
    "left_semi",
    "left_anti",
    "leftouter",
    "rightouter",
    "fullouter",
    "leftsemi",
    "leftanti",
]
AsofDirection: TypeAlias = Literal["backward", "forward", "nearest"]
KeepRow: TypeAlias = Literal["first", "last", "any"]
OnError: TypeAlias = Literal["fail", "null", "skip", "collect"]
OnBadRow: TypeAlias = Literal["fail", "skip"]
SchemaMode: TypeAlias = Literal["strict", "union"]
WriteMode: TypeAlias = Literal["error", "overwrite", "append", "overwrite_partitions"]
DatabaseMode: TypeAlias = Literal["error", "append", "overwrite", "upsert"]
BatchFormat: TypeAlias = Literal["arrow", "pandas", "numpy", "polars"]
ExplainFormat: TypeAlias = Literal["text", "json", "html"]
IpcFormat: TypeAlias = Literal["file", "stream"]
Target: TypeAlias = Literal["local", "cluster", "spark"]
SqlDialect: TypeAlias = Literal["drey", "duckdb", "postgres", "spark", "snowflake", "bigquery", "trino"]
JoinHintName: TypeAlias = Literal[
    "OPTIMIZER_CHOOSES",
    "BROADCAST_HASH_FIRST",
    "BROADCAST_HASH_SECOND",
    "REPARTITION_HASH_FIRST",
    "REPARTITION_HASH_SECOND",
    "REPARTITION_SORT_MERGE",
]
JoinValidate: TypeAlias = Literal[
    "1:1", "1:m", "m:1", "m:m", "one_to_one", "one_to_many", "many_to_one", "many_to_many"
]
WindowEnds: TypeAlias = Literal["left", "right", "both", "none"]
WindowLabel: TypeAlias = Literal["left", "right"]
SequenceEnds: TypeAlias = Literal["both", "left"]
RankMethod: TypeAlias = Literal["min", "max", "average", "dense", "ordinal"]
FrameExclude: TypeAlias = Literal["current row", "group", "ties"]
PivotAggregate: TypeAlias = Literal[
    "sum",
    "count",
    "min",
    "max",
    "avg",
    "first",
    "last",
    "median",
    "mode",
    "count_distinct",
    "count_if",
    "approx_count_distinct",
    "any",
    "all",
    "product",
    "stddev",
    "stddev_pop",
    "variance",
    "variance_pop",
    "skewness",
    "kurtosis",
    "bit_and",
    "bit_or",
    "bit_xor",
    "string_agg",
]
UdfKind: TypeAlias = Literal["scalar", "arrow", "pandas", "numpy", "polars"]
GroupFormat: TypeAlias = Literal["rows", "arrow", "pandas", "numpy", "polars"]
TextCompression: TypeAlias = Literal["gzip", "zstd", "bz2", "xz", "lz4", "none"]
ParquetCompression: TypeAlias = Literal["snappy", "zstd", "gzip", "brotli", "lz4", "none"]
OrcCompression: TypeAlias = Literal["none", "snappy", "zlib", "zstd", "lz4"]
IpcCompression: TypeAlias = Literal["lz4", "zstd", "none"]
RaggedRows: TypeAlias = Literal["fail", "fill", "cut", "fit"]
CsvQuoting: TypeAlias = Literal["minimal", "all", "non_numeric", "none"]
DecimalMark: TypeAlias = Literal[".", ","]
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
DiffUnit: TypeAlias = Literal[
    "years",
    "quarters",
    "months",
    "weeks",
    "days",
    "hours",
    "minutes",
    "seconds",
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
]
BusinessDayRoll: TypeAlias = Literal["raise", "forward", "backward"]
NormalForm: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
TextEncoding: TypeAlias = Literal["hex", "base64", "utf-8"]
