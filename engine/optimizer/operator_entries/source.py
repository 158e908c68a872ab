"""A source: rows from outside, in as many subtasks as it has splits at most.

Its rows and bytes are those of its statistics, the one from the other by the width of a row where one is missing.
Columns whose width is a guess share what is left of the measured bytes of a row.

Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from engine.formats.registry import format_of
from engine.formats.source_format import Layout, Origin
from engine.graph.operator_descriptor import PhysicalOperator, SourceOperator
from engine.graph.plan import PlanNode, Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.runtime_filter import RuntimeFilter
from engine.graph.source_spec import ColumnStatistics, SourceSplit, SourceStatistics, joined_split
from engine.optimizer.candidates import Candidate
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import grouped_in_files
from engine.optimizer.replication import is_replicated
from engine.optimizer.short_text import short
from engine.statistics.costs import Costs
from engine.statistics.estimates import Estimates, row_width, sized

_WHOLE_FILES: Final = "WHOLE_FILES"
_WHOLE_RUNS: Final = "WHOLE_RUNS"
#: runs per subtask from which no subtask reads much more than its share; fewer may differ much in size
_RUNS_PER_SUBTASK: Final = 4
#: rows of a source of which nothing at all is known
DEFAULT_SOURCE_ROWS = 1_000_000.0


class SourceEntry(OperatorEntry[Source]):
    """The entry of sources."""

    operator = Source

    def name(self, operator: Source) -> str:
        """Return the kind of a source and the last part of its path: the folder's, where it has many files."""
        spec = operator.spec
        kind = format_of(spec).kind(spec)
        if not spec.paths:
            return f"{kind} source"
        first = PurePath(spec.paths[0])
        is_part = len(spec.paths) > 1 or first.name.startswith("part-")
        place = (first.parent.name or first.name) if is_part else first.name
        return short(f"{kind} source {place}")

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the lines of the format, and the filters that come from other operators."""
        if not isinstance(operator, SourceOperator):
            return ()
        joins = [_filter_line(each) for each in operator.filters]
        top = operator.top
        tops = [] if top is None else [f"top-n threshold on {top.key.column} from top [{top.top}]"]
        spec = operator.spec
        runs = [f"groups are complete with each of {len(spec.splits)} runs of row groups"] if operator.in_runs else []
        threads = [f"read by {operator.threads} threads"] if operator.threads > 1 else []
        return [*runs, *threads, *format_of(spec).details(spec), *joins, *tops]

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Source, input_index: int, used: set[str]
    ) -> set[str]:
        """Return nothing: a source has no input."""
        return set()

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Source, used: set[str]) -> None:
        """Read only the used columns from a source."""
        kept = node.schema.select(name for name in node.schema.names if name in used)
        if kept != node.schema:
            plan.replace(node, operator=_with_columns(operator, node.schema, kept), schema=kept)

    def estimate(self, node: PlanNode, operator: Source, inputs: Sequence[Estimates]) -> Estimates:
        """Return the statistics of a source, completed."""
        statistics = operator.statistics
        rows, size, origin = statistics.row_count, statistics.size_bytes, statistics.origin
        if size is None:
            from_splits = sum(max(0, split.size_bytes) for split in operator.spec.splits)
            size = float(from_splits) if from_splits else None
        if rows is None:
            width = row_width(node.schema, statistics.columns)
            rows = DEFAULT_SOURCE_ROWS if size is None else size / width
            origin += ", rows by default" if size is None else f", rows of {width:.0f} bytes"
        columns = {
            name: msgspec.structs.replace(_in_range(known), relation=node.id, relation_rows=rows)
            for name, known in _calibrated(node.schema, rows, size, statistics.columns).items()
        }
        if size is None:
            return msgspec.structs.replace(sized(node.schema, rows, columns, origin), computed=statistics.computed)
        return Estimates(max(1.0, rows), max(1.0, size), origin, columns, statistics.computed)

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Source, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return the one way to read a source; others by whole files or runs, which keep equal values together."""
        # Rows of the plan are read by one subtask, whichever it is.
        is_in_plan = format_of(operator.spec).origin(operator.spec) is Origin.PLAN
        split_count = 1 if is_in_plan else max(1, len(operator.spec.splits))
        default = min(planning.settings.parallelism, split_count)
        parallelism = node.parallelism if node.parallelism is not None else default
        disk = estimates.size_bytes
        costs = Costs(disk=disk, cpu=disk)
        order, groups = Layout() if operator.is_replicated else format_of(operator.spec).layout(operator.spec)
        plain = Candidate(node, estimates, parallelism, costs=costs, sorted_by=order)
        files = len({split.path for split in operator.spec.splits})
        kept = [plain]
        if groups and 1 < parallelism <= files:
            properties = grouped_in_files(groups)
            kept.append(msgspec.structs.replace(plain, strategy=_WHOLE_FILES, properties=properties))
        in_runs = [
            msgspec.structs.replace(plain, strategy=_WHOLE_RUNS, properties=grouped_in_files((column,)))
            for column in _cut_columns(operator, parallelism)
        ]
        # The first of equals is chosen: to one subtask it is the same in which pieces it reads.
        return [*in_runs, *kept] if parallelism == 1 else [*kept, *in_runs]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Source) -> int:
        """Add the source."""
        spec = operator.spec
        if candidate.strategy == _WHOLE_FILES:
            spec = msgspec.structs.replace(spec, splits=_whole_files(spec.splits))
        elif candidate.strategy == _WHOLE_RUNS:
            ((column,),) = candidate.properties.key_sets
            spec = msgspec.structs.replace(spec, splits=_whole_runs(spec.splits, operator.cuts[column]))
        physical = SourceOperator(spec, is_replicated(candidate), operator.rate_limit)
        return builder.add_plain(candidate, physical)


def _cut_columns(source: Source, parallelism: int) -> list[str]:
    """Return the columns by which a source is cut into runs, so many and so small that subtasks have equal shares."""
    spec = source.spec
    if source.is_replicated:
        return []
    most = sum(split.size_bytes for split in spec.splits) / (_RUNS_PER_SUBTASK * parallelism)
    return [
        column
        for column, cuts in source.cuts.items()
        if column in spec.columns and max(run.size_bytes for run in _whole_runs(spec.splits, cuts)) <= most
    ]


def _whole_files(splits: Sequence[SourceSplit]) -> tuple[SourceSplit, ...]:
    """Return a split for each file, of all of its row groups that are to be read."""
    return tuple(joined_split(list(group)) for _, group in itertools.groupby(splits, key=lambda split: split.path))


def _whole_runs(splits: Sequence[SourceSplit], cuts: Sequence[int]) -> tuple[SourceSplit, ...]:
    """Return a split for each run of splits between two cuts, which is in one file."""
    return tuple(joined_split(splits[begin:end]) for begin, end in itertools.pairwise((0, *cuts, len(splits))))


def _filter_line(wanted: RuntimeFilter) -> str:
    if wanted.is_stored:
        line, has = f"run-time filter on {wanted.column}, stored by [{wanted.join}] for {wanted.join_name}", "has"
    else:
        line, has = f"run-time filter on {wanted.column} from join [{wanted.join}]", "builds"
    if wanted.rows_max is None:
        return line
    return f"{line}, if none of its subtasks {has} more than {wanted.rows_max} rows"


def _calibrated(
    schema: PlanSchema, rows: float, size: float | None, known: dict[str, ColumnStatistics]
) -> dict[str, ColumnStatistics]:
    """Give columns of guessed width what is left of a row's measured bytes, in proportion to the guesses."""
    columns = {column.name: known.get(column.name, ColumnStatistics()) for column in schema.columns}
    guessed = [
        column
        for column in schema.columns
        if not column.width_is_exact and columns[column.name].average_width_bytes is None
    ]
    if size is None or rows < 1 or not guessed:
        return columns
    guess = sum(column.width_bytes for column in guessed)
    certain = row_width(schema, columns) - guess
    factor = min(100.0, max(0.1, (size / rows - certain) / max(1.0, guess)))
    for column in guessed:
        columns[column.name] = msgspec.structs.replace(
            columns[column.name], average_width_bytes=column.width_bytes * factor
        )
    return columns


def _in_range(known: ColumnStatistics) -> ColumnStatistics:
    """Return a column's statistics with no more values than there are whole numbers between its bounds.

    Some thousand sampled rows may all differ where each value comes once in a long while.
    """
    least, most, count = known.minimum, known.maximum, known.distinct_count
    if count is None or type(least) is not int or type(most) is not int:
        return known
    return msgspec.structs.replace(known, distinct_count=min(count, float(max(1, most - least + 1))))


def _with_columns(source: Source, schema: PlanSchema, kept: PlanSchema) -> Source:
    """Read fewer columns; the size in the statistics shrinks with the width of what is read."""
    statistics = source.statistics
    size_bytes = statistics.size_bytes
    if size_bytes is not None:
        size_bytes *= _width(kept, statistics) / max(_width(schema, statistics), 1.0)
    pruned = msgspec.structs.replace(
        statistics,
        size_bytes=size_bytes,
        origin=f"{statistics.origin}, {len(kept.columns)} of {len(schema.columns)} columns",
        columns={name: known for name, known in statistics.columns.items() if name in kept.names},
    )
    spec = msgspec.structs.replace(source.spec, columns=kept.names)
    return msgspec.structs.replace(source, spec=spec, statistics=pruned)


def _width(schema: PlanSchema, statistics: SourceStatistics) -> float:
    total = 0.0
    for column in schema.columns:
        known = statistics.columns.get(column.name)
        measured = known.average_width_bytes if known is not None else None
        total += column.width_bytes if measured is None else measured
    return total
