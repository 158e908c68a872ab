"""Parquet files that are added to a folder: whoever reads it has them beside those that are there.

    warn_of_others(spec, schema, writer)       where a sink is declared with mode="append" or "overwrite_partitions"

One file of those that are there is looked at, the first that is found. Columns of other names, or of types that have
none in common with theirs, are a warning and no error: ``schema_mode="union"`` reads files whose columns differ, and
somebody may be about to write the others anew. Other folders are an error of the job (``engine.commit``).

Held by: tests/integration/test_partitioned_outputs.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.expressions.common_type import common_type
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    from engine.graph.source_spec import SinkSpec


def warn_of_others(spec: SinkSpec, schema: pa.Schema, writer: str) -> None:
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
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (Path(place, name) for name in names if not name.startswith((".", "_")))
