"""Analysis: a plan beside what its operators did, for ``explain(analyze=True)``.

    analysis = analyze(optimized, counters by vertex, runtime)     pure
    analysis_text(analysis) -> str                                 for people
    msgspec.json.encode(analysis)                                  the same for programs

An operator is found by its node of the plan and its name: several may come from one node. What a run-time decision has
put in the place of another one is told below the plan. Numbers are sums over subtasks, ``time_s`` too: two of them may
take two seconds in one. Text is stable but for times.

Source: EXPLAIN ANALYZE of PostgreSQL and DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from engine.graph.deployment import OperatorCounters
from engine.optimizer.physical_plan import OptimizedPlan
from engine.shown_sizes import rows_text, size_text, store_lines
from engine.statistics.estimates import UNKNOWN

_US = 1e6


class AnalyzedOperator(msgspec.Struct, frozen=True):
    """The estimates of an operator, and its measurements."""

    id: int
    name: str
    strategy: str
    #: ids of the operators that it reads
    inputs: tuple[int, ...]
    #: estimated rows; None: unknown
    expected_rows: float | None
    expected_bytes: float | None
    #: origin of the estimate
    origin: str
    #: counters; None: it did not run as planned
    actual: OperatorCounters | None = None


class Analysis(msgspec.Struct, frozen=True):
    """A plan and its run."""

    runtime_s: float
    operators: tuple[AnalyzedOperator, ...]
    #: operators that the plan does not have
    others: tuple[OperatorCounters, ...]
    #: time of all operators, and of sending rows from task to task
    time_s: float
    output_s: float
    #: decisions made while it ran
    decisions: tuple[str, ...] = ()
    #: requests, bytes read and bytes written, by store
    stores: dict[str, tuple[int, int, int]] = {}


def analyze(
    optimized: OptimizedPlan,
    counters: Iterable[OperatorCounters],
    runtime_s: float,
    output_us: int = 0,
    decisions: Sequence[str] = (),
    stores: Mapping[str, tuple[int, int, int]] = MappingProxyType({}),
) -> Analysis:
    """Return the plan beside the counters of all of a job's operators, each summed over its subtasks."""
    listed = list(counters)
    left = {(each.node_id, each.name): each for each in listed}
    operators = []
    for node in optimized.nodes:
        actual = left.pop((node.descriptor.node_id, node.descriptor.name), None)
        rows, size_bytes = node.estimates.rows, node.estimates.size_bytes
        operators.append(
            AnalyzedOperator(
                node.id,
                node.descriptor.name,
                node.strategy,
                tuple(channel.source for channel in node.inputs),
                None if rows == UNKNOWN else float(rows),
                None if size_bytes == UNKNOWN else float(size_bytes),
                node.estimates.origin,
                actual,
            )
        )
    return Analysis(
        runtime_s,
        tuple(operators),
        tuple(left.values()),
        sum(each.time_us for each in listed) / _US,
        output_us / _US,
        tuple(decisions),
        dict(stores),
    )


def analysis_text(analysis: Analysis) -> str:
    """Return the analysis as text, each operator with its inputs below it."""
    lines = [
        f"ran for {analysis.runtime_s:.2f} s; time of all subtasks: operators {analysis.time_s:.2f} s, "
        f"handing rows on {analysis.output_s:.2f} s"
    ]
    lines.extend(store_lines(analysis.stores))
    read = {source for operator in analysis.operators for source in operator.inputs}
    written: set[int] = set()
    for operator in analysis.operators:
        if operator.id not in read:
            _write(analysis, operator, "", lines, written)
    if analysis.others:
        lines.append("in the place of others, decided at run time:")
        for other in analysis.others:
            lines.append(f"   {other.name}")
            lines.extend(f"      {line}" for line in _facts(other, analysis.time_s))
    lines.extend(f"decided: {decision}" for decision in analysis.decisions)
    return "\n".join(lines) + "\n"


def _write(analysis: Analysis, operator: AnalyzedOperator, indent: str, lines: list[str], written: set[int]) -> None:
    head = f"{indent}[{operator.id}] {operator.name}"
    if operator.id in written:
        lines.append(f"{head} (above)")
        return
    written.add(operator.id)
    lines.append(f"{head}{f', {operator.strategy}' if operator.strategy else ''}")
    details = f"{indent}   "
    lines.append(f"{details}expected {_expected(operator)} ({operator.origin})")
    if operator.actual is None:
        lines.append(f"{details}did not run as planned")
    else:
        lines.extend(f"{details}{line}" for line in _facts(operator.actual, analysis.time_s))
    by_id = {each.id: each for each in analysis.operators}
    for source in operator.inputs:
        _write(analysis, by_id[source], details, lines, written)


def _expected(operator: AnalyzedOperator) -> str:
    rows = "unknown" if operator.expected_rows is None else rows_text(operator.expected_rows)
    size = "unknown" if operator.expected_bytes is None else size_text(operator.expected_bytes)
    return f"{rows} rows, {size}"


def _facts(actual: OperatorCounters, whole_s: float) -> list[str]:
    """Return lines on what an operator did."""
    time_s = actual.time_us / _US
    share = f", {time_s / whole_s:.0%} of all operators" if whole_s else ""
    lines = [f"was      {rows_text(actual.rows_out)} rows, {size_text(actual.bytes_out)}; took {time_s:.2f} s{share}"]
    if actual.pruned_groups:
        why = "which have no such row by their statistics or by keys that were read before"
        lines.append(f"left out {actual.pruned_groups} row groups, {why}")
    if actual.filtered_rows:
        lines.append(f"left out {rows_text(actual.filtered_rows)} rows at run time, for joins or a top-n")
    if actual.managed_bytes:
        used, asked = size_text(actual.managed_bytes_peak), size_text(actual.managed_bytes)
        lines.append(f"memory   {used} used of {asked}")
    if actual.spilled_bytes:
        passes = f", {actual.spilled_bytes / actual.bytes_in:.1f} times its input" if actual.bytes_in else ""
        lines.append(f"spilled  {size_text(actual.spilled_bytes)}{passes}")
    if actual.function_us:
        function_s = actual.function_us / _US
        lines.append(f"function {function_s:.2f} s of its worker's processor{_share_of(function_s, time_s)}")
    return lines


def _share_of(function_s: float, time_s: float) -> str:
    # The worker runs beside the task: it may have taken more than the operator, which waits for it now and then.
    return f", {min(1.0, function_s / time_s):.0%} of the operator's time" if time_s else ""
