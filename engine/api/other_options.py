"""Options that have another name in pandas, Polars, DuckDB and Spark: the error tells which to use.

    env.read_csv("a.csv", sep=";")        TypeError: read_csv() has no option sep=: write delimiter=
    data.sort("k", descendign=True)       TypeError: sort() has no option descendign=: did you mean descending=?

    @with_other_options
    class SourceCalls: ...                each public call of the class looks at the names of its options

It stays a TypeError, as Python's own. Type checkers see the calls as they are written.

Held by: tests/api/test_other_options.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from inspect import CO_VARKEYWORDS
from types import FunctionType, MappingProxyType
from typing import Any, Final, TypeVar

from engine.near_names import near_names

_C = TypeVar("_C", bound=type)


def _by_name(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: advice for names, advice in rows for name in names.split()}


_NO_ENCODING: Final = "nothing for UTF-8 and marked UTF-16; iconv -f ENCODING -t UTF-8 FILE > NEW converts others"
_LATER: Final = "behind it: only what a job needs is read"
_OF_FILES: Final = _by_name(
    ("names column_names new_columns", "schema= with names and types, or .rename({'old': 'new'}) behind it"),
    ("dtype dtypes schema_overrides types column_types", "schema= with all columns, or .cast(type) of some behind it"),
    ("columns usecols with_columns include_columns", f".select(names) {_LATER}"),
    ("nrows n_rows limit num_rows", f".limit(n) {_LATER}"),
    ("filters filter predicate where", f".filter(condition) {_LATER}"),
    ("hive_partitioning hive_schema hive_types", "partitioning='hive', or a pyarrow.Schema with the types of the keys"),
    ("include_file_paths filename file_column path_column", "file_name_column='file'"),
    ("union_by_name mergeSchema how missing_columns", "schema_mode='union', of Parquet, IPC, ORC and Avro"),
    ("recursive recursiveFileLookup", "a path with **: 'folder/**'"),
    (
        "infer_schema_length sample_size samplingRatio inferSchema infer_schema",
        "schema=; a sample decides",
    ),
    ("credential_provider", "storage_options=, or variables such as AWS_REGION and the roles of machines"),
    ("codec", "compression="),
    (
        "chunksize chunk_size batch_size low_memory engine use_pyarrow memory_map n_threads parallel",
        "nothing instead: blocks and subtasks follow from memory and processors",
    ),
)
_OF_LINES: Final = _by_name(
    ("ignore_errors on_bad_lines error_bad_lines", "on_bad_row='skip'"),
    ("rejects_table store_rejects badRecordsPath columnNameOfCorruptRecord", "bad_rows_path='folder/'"),
)
_OF_CSV: Final = (
    _OF_FILES
    | _OF_LINES
    | _by_name(
        ("sep separator delim field_delimiter fieldDelimiter", "delimiter="),
        ("quotechar quote_char", "quote="),
        ("escape escapechar escape_char doublequote", "nothing: a quote within quotes is written twice"),
        ("has_header include_header", "header=True"),
        ("na_values nullstr null_value nullValue missing_values", "null_values="),
        ("skip skiprows skip_lines skipRows skip_rows_after_header", "skip_rows="),
        ("comment_char comment_prefix", "comment="),
        ("infer_schema_length sample_size", "infer_rows="),
        ("truncate_ragged_lines null_padding missing_columns", "ragged_rows='fill', 'cut' or 'fit'"),
        ("dateformat date_formats dateFormat timestampformat timestampFormat timestamp_format", "date_format="),
        ("parse_dates try_parse_dates", "nothing for ISO 8601, which is found, and date_format= for others"),
        ("charset encoding_errors", "encoding="),
        ("decimal_separator decimal_comma", "decimal=','"),
        ("thousands_separator", "thousands="),
        ("mode", "on_bad_row='fail' or 'skip'"),
        ("schema_mode", "nothing: headers say which column is which, and a schema which of them are read"),
        ("index_col", "nothing: a column of an index is a column, called column_0 where it has no name"),
    )
)
_OF_JSON: Final = (
    _OF_FILES
    | _OF_LINES
    | _by_name(
        ("lines orient format", "nothing: files are JSON lines, one object a line"),
        ("multiline multiLine multi_line", "nothing: jq -c . FILE > NEW makes lines of such a file"),
        (
            "bad_rows_path",
            "on_bad_row='skip', which counts malformed lines; read_csv alone keeps them, and read_text finds them",
        ),
        (
            "encoding charset",
            _NO_ENCODING,
        ),
        ("schema_mode", "nothing: a member that a line has not is null"),
    )
)
_OF_OUTPUTS: Final = _by_name(
    ("partition_cols partitionBy partitions partitioning", "partition_by="),
    ("sortBy order_by", "sort_by="),
    ("row_group_size max_rows_per_file file_size_bytes maxRecordsPerFile", "target_file_size='128mb'"),
    ("codec", "compression="),
    ("credential_provider", "storage_options=, or variables such as AWS_REGION and the roles of machines"),
    ("index", "nothing: there is no index"),
    ("if_exists existing_data_behavior overwrite_or_ignore", "mode='error', 'overwrite', 'append' or such"),
    ("sep separator delim field_delimiter", "delimiter=, of write_csv"),
    ("include_header has_header", "header=True, of write_csv"),
    ("columns", "select(names) before it"),
    ("coalesce repartition one_file", "single_file=True, whose path is that of the file"),
    ("orient lines", "nothing: files are JSON lines, one object a row"),
)
_OF_CSV_OUTPUTS: Final = _OF_OUTPUTS | _by_name(
    ("na_rep null_value nullValue null_values nullstr", "null_text="),
    ("quote_style quoteAll force_quote quotechar quote_char", "quoting='minimal', 'all', 'non_numeric' or 'none'"),
    ("decimal_comma decimal_separator", "decimal=','"),
    ("dateformat dateFormat", "date_format="),
    ("datetime_format timestampformat timestampFormat", "timestamp_format="),
    ("charset", "encoding="),
    ("include_bom", "encoding='utf-8-sig'"),
)
#: names of options by call
OTHER_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "read_csv": _OF_CSV,
    "read_json": _OF_JSON,
    "read_text": _OF_FILES | _by_name(("charset", "encoding=")),
    **{f"read_{kind}": _OF_FILES for kind in ("parquet", "ipc", "orc", "avro", "records")},
    **{f"write_{kind}": _OF_OUTPUTS for kind in ("json", "text", "parquet", "ipc", "orc", "excel")},
    "read_fwf": _OF_FILES
    | _by_name(
        ("skiprows header", "skip_rows="),
        ("na_values", "null_values="),
        ("infer_nrows infer_schema_length", "infer_rows="),
        ("charset", "encoding="),
    ),
    "read_excel": _OF_FILES
    | _by_name(
        ("sheet_name sheet_id sheet_index", "sheet=, a name, or a number from 1 on"),
        ("has_header", "header="),
        ("header_row skiprows skip", "skip_rows="),
    ),
    "write_csv": _OF_CSV_OUTPUTS,
    "write_records": _by_name(("partition_by sort_by", "sort(by), or write_parquet")),
    "sort": _by_name(
        ("ascending", "descending=, the other way round"), ("reverse", "descending="), ("na_position", "nulls_last=")
    ),
    "join": _by_name(
        ("suffixes lsuffix rsuffix", "suffix="),
        ("type kind", "how="),
        ("nulls_equal join_nulls", "null_safe="),
        ("predicate", "condition="),
    ),
    "sample": _by_name(("frac", "fraction="), ("random_state", "seed="), ("n", "fraction=, or head(n)")),
    "drop_duplicates": _by_name(("columns cols on", "subset=")),
    "distinct": _by_name(("columns cols on", "subset=")),
}


def with_other_options(calls: _C) -> _C:
    """Make the public calls of a class raise advice for options of other libraries."""
    for name, function in list(vars(calls).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            setattr(calls, name, _told(function))
    return calls


def _told(function: FunctionType) -> Callable[..., Any]:
    code = function.__code__
    is_open = bool(code.co_flags & CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = function.__name__
    group = "write_" if name.startswith("write_") and name not in _MORE else name
    more = _MORE.get(group) if is_open else None
    if is_open and more is None:
        return function  # names of columns, or options of any format

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        for option in options:
            if option not in names:
                check_option(function.__name__, option, [*names[1:], *(more() if more else ())])
        return function(*args, **options)

    # Python's own error of arguments that are missing names the call as users write it.
    function.__qualname__ = name
    return call


def _sink_options() -> Iterable[str]:
    from engine.outputs.sink_options import SinkOptions

    return SinkOptions.__annotations__


def _csv_sink_options() -> Iterable[str]:
    from engine.outputs.sink_options import CsvSinkOptions

    return CsvSinkOptions.__annotations__


def _csv_options() -> Iterable[str]:
    from engine.csv.options import CsvReadOptions

    return CsvReadOptions.__annotations__


def _fwf_options() -> Iterable[str]:
    from engine.connectors.fixed_widths import FwfOptions

    return FwfOptions.__annotations__


def _iceberg_options() -> Iterable[str]:
    from engine.outputs.sink_options import IcebergOptions

    return IcebergOptions.__annotations__


_NO_HELP: Final[Mapping[str, str]] = MappingProxyType({})
#: options of calls that take them as ``**options``, by the call's name; "write_": of others that begin so
_MORE: Final = {
    "read_csv": _csv_options,
    "read_fwf": _fwf_options,
    "write_csv": _csv_sink_options,
    "write_iceberg": _iceberg_options,
    "write_": _sink_options,
}


def check_option(call: str, option: str, known: Iterable[str], helps: Mapping[str, str] = _NO_HELP) -> None:
    """Raise TypeError for an option that a call has not; ``helps``: the meaning of those that it has."""
    names = list(known)
    if option in names:
        return
    advice = OTHER_OPTIONS.get(call, {}).get(option, "")
    if not advice:
        close = near_names(option, names)
        advice = f"did you mean {close[0]}=?" if close else f"it has {', '.join(names) or 'none'}"
    else:
        advice = f"write {advice}"
    meanings = "".join(f"\n  {name}=: {meaning}" for name, meaning in helps.items())
    raise TypeError(f"{call}() has no option {option}=: {advice}{meanings}")
