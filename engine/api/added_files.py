"""Files that are added to a folder: whoever reads it has them beside those that are there.

    check_added(spec, schema, writer)       where a sink is declared with mode="append" or "overwrite_partitions"

One file of those that are there is looked at, the first that is found.

    Parquet     columns of other names, or of types that have none in common with theirs, are a warning and no error:
                ``schema_mode="union"`` reads files whose columns differ, and somebody may be about to write the others
                anew
    CSV         a header on one side only is an error: no way of reading such a folder leaves each header out and
                takes each row

Other folders are an error of the job (``engine.commit``).

Held by: tests/integration/test_partitioned_outputs.py
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.errors import ConfigurationError, EngineError
from engine.expressions.common_type import common_type
from engine.files.compression import heads
from engine.files.paths import is_hidden
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    from engine.graph.source_spec import SinkSpec

#: a header is looked for in so much of a file
_HEADER_BYTES: Final = 64 << 10
_SHOWN_MAX: Final = 100


def check_added(spec: SinkSpec, schema: pa.Schema, writer: str) -> None:
    """Look whether files that a sink adds are read together with those that are there.

    Raises: ConfigurationError: CSV, of which one has a header and the other has none.
    """
    if spec.format == "parquet":
        _warn_of_others(spec, schema, writer)
    elif spec.format == "csv":
        _check_headers(spec, schema, writer)


def _check_headers(spec: SinkSpec, schema: pa.Schema, writer: str) -> None:
    file = next((file for file in _files_below(Path(spec.path)) if ".csv" in file.suffixes), None)
    if file is None:
        return
    try:
        head = heads([str(file)], spec.compression, _HEADER_BYTES, 1)[0].decode("utf-8-sig", errors="replace")
    except (OSError, EngineError):
        return  # what it is, whoever reads it is told
    first_line = head.partition("\n")[0].strip("\r")
    if not first_line:
        return
    there = next(csv.reader([first_line], delimiter=spec.delimiter))
    names = [name for name in schema.names if name not in spec.partition_by]
    if (there == names) == spec.header:
        return
    what = f"{writer}({spec.path!r}): header={spec.header}, mode={spec.mode!r}: what is there ({file}) begins with"
    if spec.header:
        shown = spec.delimiter.join(there)
        shown = shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "..."
        raise ConfigurationError(f"{what} {shown}, not with the header; leave header=True out, or take a new folder")
    raise ConfigurationError(f"{what} a header; pass header=True, or take a new folder")


def _warn_of_others(spec: SinkSpec, schema: pa.Schema, writer: str) -> None:
    """Tell the program's author where rows have other columns than the files that are there."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - start-up time

    file = next(_files_below(Path(spec.path)), None)
    if file is None:
        return
    try:
        there = pq.read_schema(file)
    except (OSError, pa.ArrowException):
        return  # what it is, whoever reads it is told
    what = f"{writer}({spec.path!r}): mode={spec.mode!r}: what is there ({file})"
    differing = sorted(set(there.names) ^ (set(schema.names) - set(spec.partition_by)))
    if differing:
        warn_user(
            f"{what} has other columns: {', '.join(differing)}; select those that are there, or who reads passes"
            " schema_mode='union'"
        )
        return
    for field in there:
        own = schema.field(field.name).type
        if own != field.type and common_type(field.type, own) is None:
            warn_user(f"{what} has {field.name!r} as {field.type}, these rows as {own}: cast it")


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield files that readers see, in no order; nothing where there is no folder."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (Path(place, name) for name in names if not is_hidden(name))
