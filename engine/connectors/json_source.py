"""The client's side of JSON lines: files, schema, statistics. One object a line, whose members are the columns.

    json_source(path, schema=None, parallelism=1, compression=None) -> (JsonSource, SourceStatistics, pa.Schema)

Without a schema it is inferred (``json_inference``) from blocks of up to a megabyte: the begin of the first file with
anything in it, the begin of others, and blocks spread over all. Splits are cut by size alone; a line is read by the
split in which it begins.

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.connectors.json_blocks import JsonParser
from engine.connectors.json_inference import Block, inferred_schema
from engine.csv.encoding import marked_encoding
from engine.csv.options import check_on_bad_row
from engine.csv.splits import provisional_splits
from engine.errors import SchemaError
from engine.files.compression import (
    begins_of,
    check_named,
    checked_codec,
    codec_of,
    heads,
    stored_as,
    text_sizes,
)
from engine.files.line_blocks import BYTE_ORDER_MARK
from engine.files.paths import PathLike, expand_paths
from engine.graph.source_spec import JsonSource, SourceStatistics
from engine.records.plain_types import is_foreign, plain_schema
from engine.statistics.column_statistics import SampledPlaces, sample_statistics
from engine.storage.file_systems import file_system_of, size_of

_HEAD_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 64 << 10
_BLOCK_COUNT: Final = 12
_SCHEMA_TEXT_MAX: Final = 300


def json_source(
    path: PathLike | Iterable[PathLike],
    schema: pa.Schema | None = None,
    parallelism: int = 1,
    compression: str | None = None,
    on_bad_row: str = "fail",
    *,
    keeps_nulls: bool = False,
) -> tuple[JsonSource, SourceStatistics, pa.Schema]:
    """Return a source of JSON lines, what is known of its size, and its schema.

    keeps_nulls: columns without any value have the type null, where the schema is inferred.

    Raises: PlanError (no such file), SchemaError (types, or none can be inferred), ConfigurationError (codec).
    """
    codec = checked_codec(compression, "read_json")
    check_on_bad_row(on_bad_row)
    paths = expand_paths(path, "read_json")
    check_named(paths, codec, "read_json")
    codec = stored_as(codec, marked_encoding(paths, codec, "read_json"))
    blocks = _blocks(paths, codec)
    head = blocks[0].data
    if head.lstrip().startswith(b"["):
        raise SchemaError(
            f"read_json({paths[0]!r}): the file is one JSON array, and JSON lines are read: one object a line; convert"
            " it: jq -c '.[]' FILE > NEW"
        )
    note, is_inferred = "", schema is None
    if schema is None:
        if not head:
            raise SchemaError(_without_lines(paths, codec))
        schema = inferred_schema(blocks, skips=on_bad_row == "skip", keeps_nulls=keeps_nulls)
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
        is_inferred,
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


def _blocks(paths: Sequence[str], codec: str) -> list[Block]:
    """Return lines of files: how the first one that holds anything begins, and blocks from all over the others."""
    first = next((path for path in paths if heads([path], codec, _HEAD_BYTES, 1)[0].strip()), paths[0])
    head = _lines_of_begin(heads([first], codec, _HEAD_BYTES, 1)[0], _HEAD_BYTES)
    others, size = begins_of([path for path in paths if path != first], _BLOCK_BYTES)
    begins = [
        Block(path, _lines_of_begin(data, size), is_begin=True)
        for path, data in zip(others, heads(others, codec, size, len(others)), strict=True)
    ]
    spread = [] if any(codec_of(path, codec) for path in paths) else _spread_blocks(paths)
    return [Block(first, head, is_begin=True), *begins, *spread]


def _without_lines(paths: Sequence[str], codec: str) -> str:
    """Return the message about files without a whole line in their first bytes."""
    path = next((path for path in paths if heads([path], codec, _HEAD_BYTES, 1)[0].strip()), None)
    if path is None:
        return f"read_json({paths[0]!r}): the file is empty and there is no schema; pass schema="
    return (
        f"read_json({path!r}): the first line is longer than the {_HEAD_BYTES >> 20} MB by which a schema is inferred;"
        " pass schema="
    )


def _spread_blocks(paths: Sequence[str]) -> list[Block]:
    """Return lines from all over the files, beyond the head of all."""
    sizes = list(map(size_of, paths))
    total, base = sum(sizes), 0
    blocks: list[Block] = []
    for path, size in zip(paths, sizes, strict=True):
        for index in range(1, _BLOCK_COUNT):
            position = total * index // _BLOCK_COUNT - base
            if 0 < position < size and base + position >= _HEAD_BYTES:
                with file_system_of(path).open_stream(path, is_buffered=True) as file:
                    file.seek(position)
                    blocks.append(Block(path, _whole_lines(file.read(_BLOCK_BYTES), is_begin=False), is_begin=False))
        base += size
    return blocks


def _checked(schema: pa.Schema) -> pa.Schema:
    """Return a schema that was given, nullable and plain; SchemaError for types that JSON text has no form of."""
    if not isinstance(schema, pa.Schema):
        raise SchemaError(f"read_json: schema= must be a pyarrow.Schema, not {type(schema).__name__}")
    if not schema.names or len(set(schema.names)) < len(schema.names):
        raise SchemaError(f"read_json: schema= has no columns or one twice: {', '.join(schema.names)}")
    plain = plain_schema(pa.schema([pa.field(field.name, field.type) for field in schema]))
    for field in plain:
        try:
            if is_foreign(field.type):
                raise pa.ArrowInvalid("no columns are made of it")
            JsonParser(pa.schema([field])).parse(b"{}\n")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise SchemaError(
                f"read_json: column {field.name!r} cannot be read as {field.type}; read it as string, which has its"
                " JSON text, and go on with cast or .str.json_get"
                + (" (the keys of a map are strings)" if "map<" in str(field.type) else "")
            ) from None
    return plain


def _statistics(spec: JsonSource, blocks: Sequence[Block], schema: pa.Schema, note: str) -> SourceStatistics:
    sizes = text_sizes(spec.paths, spec.compression)
    parser = JsonParser(schema)
    tables, sampled_bytes = [], 0
    # Begins of files say what is in them, and not of how much: of sorted files they are all alike.
    is_spread = any(not block.is_begin for block in blocks)
    for block in [blocks[0], *(each for each in blocks[1:] if not is_spread or not each.is_begin)]:
        try:
            tables.append(parser.parse(block.data))
            sampled_bytes += len(block.data)
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
