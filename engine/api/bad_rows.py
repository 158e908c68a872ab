"""Bad rows: records that a job leaves out of its input, stored where a source asks for it, with a warning.

bad_row_sinks(sinks, written)     a sink for each source with ``bad_rows_path``: its malformed records as CSV
warn_of_bad_rows(result)          of collect, count and the like, whose JobResult the script does not get
warn_of_notes(result)             what readers of any job have found, such as members of JSON that were not read

Held by: tests/integration/test_bad_rows.py
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from engine.client.job_listener import is_watched
from engine.client.job_result import JobResult
from engine.formats.registry import format_of
from engine.graph.plan import Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.lowering.logical_node import LogicalNode, reachable
from engine.user_warnings import warn_user


def bad_row_sinks(sinks: Sequence[LogicalNode], written: Container[str]) -> list[LogicalNode]:
    """Return sinks of the malformed records of all sources that keep them; paths in ``written`` are replaced."""
    found: dict[str, LogicalNode] = {}
    for node in reachable(sinks):
        operator = node.operator
        if not isinstance(operator, Source):
            continue
        rejects = format_of(operator.spec).rejects(operator.spec, operator.statistics.size_bytes or 0.0)
        if rejects is not None:
            path, schema = rejects.folder, rejects.schema
            source = LogicalNode(Source(rejects.spec, rejects.statistics), (), schema, "bad rows")
            sink = Sink(SinkSpec("csv", path, overwrite=path in written, header=True))
            found[path] = LogicalNode(sink, (source,), schema)
    return list(found.values())


def warn_of_bad_rows(result: JobResult) -> None:
    """Warn the author of a program that rows were left out, unless a listener has reported it."""
    if result.bad_rows and not is_watched():
        warn_user(
            f"{result.bad_rows:,} malformed rows were left out (on_bad_row='skip'); read_csv(..., bad_rows_path=...)"
            " keeps those of CSV with file, line and reason"
        )


def warn_of_notes(result: JobResult) -> None:
    """Warn the author of a program of what readers have found."""
    for note in result.notes:
        warn_user(note)
