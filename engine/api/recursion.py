"""Rows that are made of themselves, in rounds: what WITH RECURSIVE is.

    first ──job──► round-1 ─┐ working rows, read by the step
                            ├─► step ──job──► round-2 ──► step ──job──► round-3 ... until a round has no rows
    all rounds so far ──────┘ which UNION takes away from each new one

The client runs a job for each round. Rows of a round are Arrow files in the Environment's temporary folder, which the
next round reads: memory holds what one job needs. The rows of all rounds are one source of those files, as cached rows
are; the first job that needs them has them made.

``Source:`` Bancilhon and Ramakrishnan, "An Amateur's Introduction to Recursive Query Processing Strategies" (semi-naive
evaluation).

Held by: tests/sql/test_recursive_queries.py
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec.structs import replace

from engine.api.data_set import DataSet
from engine.api.results import check_visible
from engine.config.sql_options import RECURSION_ROUNDS_MAX
from engine.connectors.arrow_files import arrow_files_source
from engine.errors import PlanError
from engine.graph.plan import Source
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ArrowSource, SinkSpec, SourceSplit, SourceStatistics
from engine.lowering.aggregate_nodes import aggregate_node
from engine.lowering.join_keys import keys_on
from engine.lowering.joins import join_node, union_node
from engine.lowering.logical_node import CachedRows, LogicalNode, reachable

_ORIGIN: Final = "rows of a round"
_WORKING: Final = "working rows"


def working_rows(beside: DataSet, schema: pa.Schema) -> DataSet:
    """Return the rows of the last round, for the step that makes the next one; of an environment's data set."""
    return beside._with(_placeholder(schema))


def _placeholder(schema: pa.Schema) -> LogicalNode:
    """Return a node whose source is exchanged from round to round."""
    nothing = _nothing(schema)
    node = LogicalNode(Source(*nothing), (), schema, _WORKING, cached=CachedRows())
    _exchange(node, *nothing)
    return node


def _nothing(schema: pa.Schema) -> tuple[ArrowSource, SourceStatistics]:
    return ArrowSource((), (), tuple(schema.names)), SourceStatistics(None, None, _ORIGIN)


def repeated(first: DataSet, working: DataSet, step: DataSet, name: str, *, is_distinct: bool) -> DataSet:
    """Return the rows of ``first`` and of all rounds of a step over working rows, of the same schema.

    is_distinct: a row that is there already is none of a round.
    """
    rounds = _Rounds(first._environment, working._node, name)
    nodes = first._node, step._node
    if is_distinct:
        names = tuple(first.columns)
        different = [aggregate_node(node, names, ()) for node in nodes]
        new = join_node(different[1], rounds.all_rows, JoinType.ANTI, keys_on(names, null_safe=True))
        nodes = different[0], new
    rounds.cached.compute = lambda folder: rounds.rows(*nodes, folder)
    # what explain shows: its rounds are planned one by one, of rows that are there
    later = ArrowSource((), (SourceSplit("", 0, 0, 1, 0),), tuple(working.columns))
    shown = LogicalNode(Source(later, SourceStatistics(None, None, _ORIGIN)), (), working.schema, f"rounds of {name}")
    union = union_node([nodes[0], shown])
    return first._with(replace(union, schema=working.schema, name=f"recursion {name}", cached=rounds.cached))


class _Rounds:
    """The rounds of one recursion, and what they have stored."""

    def __init__(self, environment: Any, working: LogicalNode, name: str) -> None:
        self._environment = environment
        self._working = working
        self._name = name
        #: the rows of all rounds so far
        self.all_rows = _placeholder(working.schema)
        #: rows of all rounds, once they are there
        self.cached = CachedRows()
        #: lock of the rounds: jobs of several threads may need their rows
        self._lock = threading.Lock()

    def rows(self, first: LogicalNode, step: LogicalNode, folder: Path) -> LogicalNode:
        """Return the source of the rows of all rounds, which are made once. Raises: PlanError where they do not end."""
        with self._lock:
            if self.cached.source is None:
                self._run(first, step, folder)
                assert self.all_rows.cached is not None, "its source is exchanged"
                self.cached.source = self.all_rows.cached.source
            assert self.cached.source is not None, "it has a source from the beginning"
            return self.cached.source

    def _run(self, first: LogicalNode, step: LogicalNode, folder: Path) -> None:
        environment, most = self._environment, self._environment.configuration.get(RECURSION_ROUNDS_MAX)
        inner = _recomputed(step, (self._working, self.all_rows))
        spec: ArrowSource | None = None
        for node in (self._working, self.all_rows):
            _exchange(node, *_nothing(node.schema))
        for number in range(1, most + 2):
            part = folder / f"round-{number}"
            environment.run_to_sink(
                first if number == 1 else step,
                SinkSpec("arrow", os.fspath(part)),
                f"{self._name}, round {number}",
            )
            check_visible(part, "a round of WITH RECURSIVE")
            last, statistics = self._read(part)
            if not statistics.row_count:
                break
            if number > most:
                raise PlanError(_endless(self._name, most, statistics.row_count))
            _exchange(self._working, last, statistics)
            spec, total = self._read(part, spec)
            _exchange(self.all_rows, spec, total)
            for cached in inner:
                cached.source = None

    def _read(self, part: Path, before: ArrowSource | None = None) -> tuple[ArrowSource, SourceStatistics]:
        return arrow_files_source(part, self._working.schema, _ORIGIN, before)


def _endless(name: str, most: int, rows: float) -> str:
    return (
        f"WITH RECURSIVE {name}: round {most + 1} still makes rows ({rows:,.0f}); UNION in place of UNION ALL leaves "
        "out rows that are there already, a condition in the second part ends it, and more rounds are allowed by "
        f"{RECURSION_ROUNDS_MAX.key}"
    )


def _exchange(node: LogicalNode, spec: ArrowSource, statistics: SourceStatistics) -> None:
    assert node.cached is not None, "its source is exchanged"
    node.cached.source = LogicalNode(Source(spec, statistics), (), node.schema, _WORKING)


def _recomputed(step: LogicalNode, exchanged: Sequence[LogicalNode]) -> list[CachedRows]:
    """Return the caches within a step of rows that are others in each round: recursions of its own."""
    dependent = {id(node) for node in exchanged}
    found = []
    for node in reachable([step]):
        if any(id(source) in dependent for source in node.inputs):
            dependent.add(id(node))
            if node.cached is not None:
                found.append(node.cached)
    return found
