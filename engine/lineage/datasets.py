"""Datasets: the names that data has in OpenLineage, by which events of other tools and of other runs find it.

    /data/orders/2026.parquet           file            /data/orders/2026.parquet
    several files, or parts of ours     file            the folder that they are in, without year=2026/
    s3://bucket/orders/                 s3://bucket     orders
    a table of Delta or Iceberg         by its location, as a folder
    a query of a database               its address     the query or table

Rows that a program has in its memory have no name.

Source: OpenLineage, spec/Naming.md
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from engine.formats.registry import format_of
from engine.formats.source_format import Origin
from engine.graph.plan import Source
from engine.graph.source_spec import FormatSource, SinkSpec

#: formats that are results of a program, and no data for others
_OF_PROGRAM: Final = frozenset({"arrow", "handed", "stream", "discard"})
#: names of files that subtasks write: sink, subtask, attempt, number
_PART: Final = re.compile(r"\d+-\d+-[0-9a-f]{8,}-\d+\.|part-\d+")
_PLACE: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)/*(.*)", re.DOTALL)


class Dataset(NamedTuple):
    """A name in OpenLineage."""

    namespace: str
    name: str


def dataset_of(source: Source) -> Dataset | None:
    """Return the name of what a source reads, None for rows of a program."""
    spec = source.spec
    if format_of(spec).origin(spec) is Origin.PLAN:
        return None
    paths = spec.paths
    if isinstance(spec, FormatSource) and spec.format == "iceberg":
        metadata = str(spec.options.get("plan", "")).rpartition(" ")[2]
        location, found, _ = metadata.rpartition("/metadata/")
        paths = (location,) if found else paths
    return named(_common(paths)) if paths else None


def output_of(spec: SinkSpec) -> Dataset | None:
    """Return the name of what a sink writes, None for the result of a program."""
    return None if spec.format in _OF_PROGRAM else named(spec.path)


def named(path: str) -> Dataset:
    """Return the name of a path, or of an address."""
    place = _PLACE.fullmatch(path)
    if place is None or place[1] == "file":
        return Dataset("file", os.path.normpath("/" + place[3] if place else path))
    scheme, host, rest = place.groups()
    return Dataset(f"{scheme}://{host.rpartition('@')[2]}", rest.strip("/") or "/")


def _common(paths: tuple[str, ...]) -> str:
    """Return the one path, or the folder that all of them are in."""
    first = paths[0]
    if len(paths) == 1 and not _PART.match(first.rpartition("/")[2]):
        return first
    parts = [path.split("/")[:-1] for path in paths]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1 or "=" in names[0]:
            break
        shared.append(names[0])
    return "/".join(shared) or first
