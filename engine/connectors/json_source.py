"""The client's side of JSON lines: files, schema, statistics. One object a line, whose members are the columns.

    json_source(path, schema=None, parallelism=1, compression=None) -> (JsonSource, SourceStatistics, pa.Schema)

Without a schema Arrow infers one from blocks of up to a megabyte: the begin of the first file with anything in it, and
others spread over all. Whole numbers beyond int64, which Arrow has as doubles, are uint64 or decimals. Splits are cut
by size alone; a line is read by the split in which it begins.

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from engine.connectors.json_blocks import OVER_LINES, SEVERAL, JsonParser, inferred_table, is_utf8
from engine.csv.encoding import marked_encoding
from engine.csv.options import check_on_bad_row
from engine.csv.splits import provisional_splits
from engine.errors import SchemaError
from engine.files.compression import check_named, checked_codec, codec_of, heads, stored_as, text_sizes
from engine.files.line_blocks import BYTE_ORDER_MARK
from engine.files.paths import PathLike, expand_paths
from engine.graph.source_spec import JsonSource, SourceStatistics
from engine.records.plain_types import plain_schema
from engine.statistics.column_statistics import SampledPlaces, sample_statistics
from engine.user_warnings import warn_user

_HEAD_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 64 << 10
_BLOCK_COUNT: Final = 12
#: where Arrow says that it stands, from 0 on
_ARROWS_ROW: Final = re.compile(r" in row ([0-9]+)$")
_SCHEMA_TEXT_MAX: Final = 300
#: lists and structs within each other
_DEPTH_MAX: Final = 32
_MIXED: Final = "pass schema= with string for that column, which takes numbers, objects and all else as their JSON text"
#: behind the name of a member: a fraction, and a whole number that a double does not keep
_FRACTION: Final = rb"\s*:\s*-?\d+[.eE]"
_LONG_NUMBER: Final = rb"\s*:\s*-?\d{17,}\s*[,}]"
#: of whole numbers beyond int64, in the order in which they are tried
_LARGE_TYPES: Final = (pa.uint64(), pa.decimal128(38, 0))


def json_source(
    path: PathLike | Iterable[PathLike],
    schema: pa.Schema | None = None,
    parallelism: int = 1,
    compression: str | None = None,
    on_bad_row: str = "fail",
) -> tuple[JsonSource, SourceStatistics, pa.Schema]:
    """Return a source of JSON lines, what is known of its size, and its schema.

    Raises: PlanError (no such file), SchemaError (types, or none can be inferred), ConfigurationError (codec).
    """
    codec = checked_codec(compression, "read_json")
    check_on_bad_row(on_bad_row)
    paths = expand_paths(path, "read_json")
    check_named(paths, codec, "read_json")
    codec = stored_as(codec, marked_encoding(paths, codec, "read_json"))
    head = _first_head(paths, codec)
    if head.lstrip().startswith(b"["):
        raise SchemaError(
            f"read_json({paths[0]!r}): the file is one JSON array, and JSON lines are read: one object a line; convert"
            " it: jq -c '.[]' FILE > NEW"
        )
    blocks = [head, *_spread_blocks(paths, codec)]
    note = ""
    if schema is None:
        if not head:
            raise SchemaError(_without_lines(paths, codec))
        schema = _inferred(blocks, paths[0])
        text = ", ".join(f"{field.name} {field.type}" for field in schema)
        note = f"schema inferred: {text if len(text) <= _SCHEMA_TEXT_MAX else text[:_SCHEMA_TEXT_MAX] + '...'}; "
    else:
        schema = _checked(schema)
    spec = JsonSource(
        paths,
        provisional_splits(paths, parallelism, codec),
        schema.serialize().to_pybytes(),
        tuple(schema.names),
        codec,
        on_bad_row,
    )
    return spec, _statistics(spec, blocks, schema, note), schema


def with_splits(spec: JsonSource, parallelism: int) -> JsonSource:
    """Return the source with splits for so many subtasks, of its files as they are now."""
    return msgspec.structs.replace(spec, splits=provisional_splits(spec.paths, parallelism, spec.compression))


def _whole_lines(block: bytes, is_begin: bool) -> bytes:
    """Return the lines of a block that are known to be whole; of one within a single line there are none."""
    begin = 0 if is_begin else block.find(b"\n") + 1
    if is_begin and block.startswith(BYTE_ORDER_MARK):
        begin = len(BYTE_ORDER_MARK)
    return block[begin : block.rfind(b"\n") + 1]


def _lines_of_begin(block: bytes, bytes_max: int) -> bytes:
    """Return the whole lines of a file's begin, of which so many bytes were asked for."""
    return _whole_lines(block, is_begin=True) if len(block) == bytes_max else block.removeprefix(BYTE_ORDER_MARK)


def _first_head(paths: Sequence[str], codec: str) -> bytes:
    """Return the lines that the first file which holds anything begins with."""
    for path in paths:
        head = heads([path], codec, _HEAD_BYTES, 1)[0]
        if head.strip():
            return _lines_of_begin(head, _HEAD_BYTES)
    return b""


def _without_lines(paths: Sequence[str], codec: str) -> str:
    """Return what is said of files in whose first bytes there is no whole line."""
    path = next((path for path in paths if heads([path], codec, _HEAD_BYTES, 1)[0].strip()), None)
    if path is None:
        return f"read_json({paths[0]!r}): the file is empty and there is no schema; pass schema="
    return (
        f"read_json({path!r}): the first line is longer than the {_HEAD_BYTES >> 20} MB by which a schema is inferred;"
        " pass schema="
    )


def _spread_blocks(paths: Sequence[str], codec: str) -> list[bytes]:
    """Return lines from all over the files beyond the first head; of compressed ones, from their begin."""
    if any(codec_of(path, codec) for path in paths):
        begins = heads(paths[1:], codec, _BLOCK_BYTES, _BLOCK_COUNT) if len(paths) > 1 else []
        return [_lines_of_begin(block, _BLOCK_BYTES) for block in begins]
    sizes = [Path(path).stat().st_size for path in paths]
    total, base = sum(sizes), 0
    blocks: list[bytes] = []
    for path, size in zip(paths, sizes, strict=True):
        for index in range(1, _BLOCK_COUNT):
            position = total * index // _BLOCK_COUNT - base
            if 0 <= position < size and base + position >= _HEAD_BYTES:
                with Path(path).open("rb") as file:
                    file.seek(position)
                    block = file.read(_BLOCK_BYTES)
                    blocks.append(
                        _whole_lines(block, is_begin=False) if position else _lines_of_begin(block, _BLOCK_BYTES)
                    )
        base += size
    return blocks


def _inferred(blocks: Sequence[bytes], path: str) -> pa.Schema:
    """Return the schema that holds all blocks; columns without any value are strings."""
    found = []
    for index, block in enumerate(blocks):
        if block.strip():
            try:
                is_utf8(block)
                found.append(inferred_table(block).schema)
            except pa.ArrowInvalid as error:
                reason = _placed(str(error).partition("\n")[0], block, is_begin=index == 0)
                raise SchemaError(
                    f"read_json({path!r}): no schema can be inferred: {reason}{_advice(reason)}"
                ) from None
    try:
        schema = pa.unify_schemas(found, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        reason = str(error).partition("\n")[0]
        raise SchemaError(f"read_json({path!r}): types differ along the files: {reason}; {_MIXED}") from None
    if not schema.names:
        raise SchemaError(f"read_json({path!r}): its objects have no members; pass schema=")
    deep = [field.name for field in schema if _is_deep(field.type)]
    if deep:
        raise SchemaError(
            f"read_json({path!r}): column {deep[0]!r} is nested more than {_DEPTH_MAX} deep; pass schema= with string"
            " for it, which takes it as its JSON text"
        )
    types = {field.name: _with_texts(_large_type(field, blocks, path)) for field in schema}
    return pa.schema(list(types.items()))


def _large_type(field: pa.Field, blocks: Sequence[bytes], path: str) -> pa.DataType:
    """Return the type of a column, which Arrow has as a double where whole numbers are beyond int64."""
    name = re.escape(json.dumps(field.name, ensure_ascii=False).encode())
    if not pa.types.is_float64(field.type) or not any(re.search(name + _LONG_NUMBER, block) for block in blocks):
        return field.type
    if not any(re.search(name + _FRACTION, block) for block in blocks):
        for data_type in _LARGE_TYPES:
            with contextlib.suppress(pa.ArrowInvalid):
                parser = JsonParser(pa.schema([(field.name, data_type)]))
                for block in blocks:
                    parser.parse(block)
                return data_type
    warn_user(
        f"read_json({path!r}): whole numbers of 17 digits and more in column {field.name!r} are read as float64, which"
        " does not keep them; pass schema= with string for it, which takes them as they are written"
    )
    return field.type


def _advice(reason: str) -> str:
    """Return what to do where no schema is found; objects over lines have none that helps."""
    if OVER_LINES in reason or SEVERAL in reason:
        return ""
    if " changed from " in reason:
        return f"; {_MIXED}"
    if "JSON parse error" in reason:
        return "; mend it, or pass schema= and on_bad_row='skip', which leaves such lines out"
    return "; pass schema="


def _placed(reason: str, block: bytes, *, is_begin: bool) -> str:
    """Return what Arrow says of a row, which it counts from 0 in a block, with the line of the file."""
    found = _ARROWS_ROW.search(reason)
    if found is None:
        return reason
    filled = [line for line, text in enumerate(block.split(b"\n"), 1) if text.strip()]
    number = int(found[1])
    place = f" in line {filled[number]}" if is_begin and number < len(filled) else ""
    return reason[: found.start()].rstrip(".") + place


def _is_deep(data_type: pa.DataType) -> bool:
    """Return whether lists and structs lie within each other deeper than a plan takes."""
    level = [data_type]
    for _ in range(_DEPTH_MAX):
        level = [each.field(index).type for each in level for index in range(each.num_fields)]
        if not level:
            return False
    return True


def _with_texts(data_type: pa.DataType) -> pa.DataType:
    """Return a type in which what has no value is text."""
    if pa.types.is_null(data_type):
        return pa.string()
    if pa.types.is_list(data_type):
        return pa.list_(_with_texts(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([(each.name, _with_texts(each.type)) for each in data_type])
    return data_type


def _checked(schema: pa.Schema) -> pa.Schema:
    """Return a schema that was given, nullable and plain; SchemaError for types that JSON text has no form of."""
    if not isinstance(schema, pa.Schema):
        raise SchemaError(f"read_json: schema= must be a pyarrow.Schema, not {type(schema).__name__}")
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise SchemaError(f"read_json: schema= has no columns or one twice: {', '.join(schema.names)}")
    plain = plain_schema(pa.schema([pa.field(field.name, field.type) for field in schema]))
    for field in plain:
        try:
            JsonParser(pa.schema([field])).parse(b"{}\n")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise SchemaError(
                f"read_json: column {field.name!r} cannot be read as {field.type}; read it as string, which has its"
                " JSON text, and go on with cast or .str.json_get"
                + (" (a map is a column of its own, with keys of string)" if "map<" in str(field.type) else "")
            ) from None
    return plain


def _statistics(spec: JsonSource, blocks: Sequence[bytes], schema: pa.Schema, note: str) -> SourceStatistics:
    sizes = text_sizes(spec.paths, spec.compression)
    parser = JsonParser(schema)
    tables, sampled_bytes = [], 0
    for block in blocks:
        try:
            tables.append(parser.parse(block))
            sampled_bytes += len(block)
        except pa.ArrowInvalid:
            continue  # the reader of the line says what is wrong with it
    rows = sum(table.num_rows for table in tables)
    is_whole = sizes.is_exact and sampled_bytes >= sizes.total - len(BYTE_ORDER_MARK)
    row_count = (
        float(rows) if is_whole else sizes.total * rows / sampled_bytes if rows else 0.0 if not sizes.total else None
    )
    columns = {} if row_count is None else sample_statistics(tables, row_count, SampledPlaces(len(tables), rows))
    origin = f"{note}{'all' if is_whole else 'sample of'} {rows} rows"
    return SourceStatistics(row_count, float(sizes.total), origin, is_exact=is_whole, columns=columns)
