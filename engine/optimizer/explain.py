"""Explain: an optimized plan as text that says what will happen and why.

    explain(optimized) -> str            every operator, its inputs below it
    summary(optimized) -> list[str]      at most three lines for a report
    split_lines(optimized)               heavy keys that are split, for the result of the job

Per operator: algorithm and parallelism, expected rows and bytes with where the numbers come from, costs of the
operator with its channels and of everything below it, its pages; per channel the ship strategy, the exchange mode and
the reason for it; per join why each alternative lost. The text is stable: same plan and settings, same text. An
operator that is read twice is written once and referred to.
"""

from __future__ import annotations

from engine.config.options import SUBTASKS_PER_PROCESSOR
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.operator_descriptor import HashJoinOperator, JoinOperator, PartitionedAsofOperator
from engine.graph.ship_strategy import SORTED_RUNS, ShipStrategy
from engine.optimizer.adaptive_facts import adaptive_text
from engine.optimizer.operator_entries.registry import entry_of
from engine.optimizer.physical_plan import Channel, OptimizedPlan, PhysicalNode
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.small_parts import SHUFFLED_FACTOR, small_bytes
from engine.shown_sizes import rows_text, size_text
from engine.statistics.costs import Costs

SUMMARY_LINES_MAX = 3


def explain(optimized: OptimizedPlan) -> str:
    """Return the plan as text, one block of lines for each sink."""
    settings, budget = optimized.settings, optimized.settings.page_budget
    small = f" (1 where up to {_small_text(settings)})" if settings.has_small_parts else _input_text(settings)
    limited = "" if settings.limited_from is None else f" of {settings.limited_from} ({SUBTASKS_PER_PROCESSOR.key})"
    lines = [
        f"parallelism {settings.parallelism}{limited}{small}, "
        f"execution mode {ExecutionMode(settings.execution_mode).value}, "
        f"managed memory {size_text(budget.slot_pages * budget.page_bytes)} per slot "
        f"({budget.slot_pages} pages of {budget.page_bytes} bytes)"
    ]
    if settings.process_parts:
        parts = ", ".join(f"{name} {size_text(size)}" for name, size in settings.process_parts)
        lines.append(f"memory of the process: {parts}")
    if settings.legacy_estimates:
        lines.append("legacy estimates: sizes after projections and functions are unknown")
    written: set[int] = set()
    read = {channel.source for node in optimized.nodes for channel in node.inputs}
    for node in optimized.nodes:
        if node.id not in read:
            _write(optimized, node, "", "", lines, written)
    return "\n".join(lines) + "\n"


def _input_text(settings: OptimizerSettings) -> str:
    most = settings.small_input_bytes
    return f" (1 where up to {size_text(most)} are read for a larger part)" if most else ""


def _small_text(settings: OptimizerSettings) -> str:
    """Return the limits of what a part in one subtask reads."""
    most = size_text(small_bytes(settings, is_alone=settings.is_one_process))
    if not settings.is_one_process or settings.small_part_bytes is not None:
        return f"{most} are read"
    sent = size_text(small_bytes(settings, SHUFFLED_FACTOR, is_alone=True))
    return f"{most} are read, up to {sent} where much of it would be sent"


def summary(optimized: OptimizedPlan) -> list[str]:
    """Summarize the decisions in at most three lines, the joins first."""
    joins = [node for node in optimized.nodes if isinstance(node.descriptor.operator, JoinOperator)]
    lines = [_join_summary(optimized, node) for node in joins[: SUMMARY_LINES_MAX - 1]]
    shuffled = [channel for node in optimized.nodes for channel in node.inputs if channel.ship_strategy.is_network]
    blocking = sum(1 for channel in shuffled if not channel.is_pipelined)
    total = optimized.nodes[-1].cumulative_costs
    lines.append(
        f"{len(optimized.nodes)} operators, {len(shuffled)} exchange{'' if len(shuffled) == 1 else 's'} "
        f"({blocking} blocking), "
        f"expected network {size_text(total.network)}"
    )
    return lines


def split_lines(optimized: OptimizedPlan) -> tuple[str, ...]:
    """Return a line for each join whose heavy keys are split."""
    return tuple(
        f"{node.descriptor.name}: {channel.reason}"
        for node in optimized.nodes
        for channel in node.inputs
        if channel.partitioner.heavy is not None and channel.partitioner.heavy.spread
    )


def _join_summary(optimized: OptimizedPlan, node: PhysicalNode) -> str:
    sides = []
    for channel in node.inputs:
        source = optimized.nodes[channel.source]
        sides.append(f"{_ship_text(channel)} {rows_text(source.estimates.rows)} rows")
    why = f"hint {node.hint}" if node.hint else "chosen by cost"
    family = node.alternative.partition("_")[0]
    rejected = next(
        (each for each in node.rejected if " against " in each.reason and not each.name.startswith(family)), None
    )
    if rejected is not None:
        why = f"{rejected.name} lost: {rejected.reason}"
    return f"{node.descriptor.name}: left {sides[0]}, right {sides[1]}, {node.strategy}; {why}"


def _write(
    optimized: OptimizedPlan, node: PhysicalNode, first: str, rest: str, lines: list[str], written: set[int]
) -> None:
    head = f"[{node.id}] {node.descriptor.name}"
    if node.id in written:
        lines.append(f"{first}{head} (above)")
        return
    written.add(node.id)
    strategy = f", {node.strategy}" if node.strategy else ""
    if node.alternative:
        strategy += f" ({node.alternative})"
    lines.append(f"{first}{head}{strategy}, parallelism {node.parallelism}")
    details = f"{rest}{'│  ' if node.inputs else '   '}"
    estimates = node.estimates
    lines.append(f"{details}{rows_text(estimates.rows)} rows, {size_text(estimates.size_bytes)} ({estimates.origin})")
    lines.append(f"{details}cost {_cost_text(node.costs)}; cumulative {_cost_text(node.cumulative_costs)}")
    if node.uses_memory:
        budget = optimized.settings.page_budget
        size, part = size_text(node.pages * budget.page_bytes), node.pages / budget.slot_pages
        lines.append(f"{details}memory {size}, {part:.0%} of a slot ({node.pages} pages)")
    entry = entry_of(optimized.plan.node(node.plan_node).operator)
    lines.extend(f"{details}{line}" for line in entry.details(node.descriptor.operator))
    if adaptive := adaptive_text(optimized, node):
        lines.append(f"{details}{adaptive}")
    if node.hint:
        hidden = [rejected.name for rejected in node.rejected if rejected.reason.startswith("the hint ")]
        lines.append(f"{details}hint {node.hint}{', not ' * bool(hidden)}{', '.join(hidden)}")
    lines.extend(
        f"{details}not {rejected.name}: {rejected.reason}"
        for rejected in node.rejected
        if not (node.hint and rejected.reason.startswith("the hint "))
    )
    for position, channel in enumerate(node.inputs):
        is_last = position == len(node.inputs) - 1
        lines.append(f"{rest}{'└─' if is_last else '├─'} {_channel_text(node, channel)}")
        indent = f"{rest}{'   ' if is_last else '│  '}"
        _write(optimized, optimized.nodes[channel.source], indent, indent, lines, written)


def _cost_text(costs: Costs) -> str:
    """Return the costs that are not zero as text; "none" without any."""
    parts = (("network", costs.network), ("disk", costs.disk), ("cpu", costs.cpu))
    return ", ".join(f"{name} {size_text(size)}" for name, size in parts if size != 0) or "none"


def _ship_text(channel: Channel) -> str:
    strategy = channel.ship_strategy.value
    kind, keys = channel.partitioner.kind, ", ".join(channel.partitioner.keys)
    if channel.ship_strategy is ShipStrategy.PARTITION_HASH:
        return f"{strategy}({keys})" if kind == "HASH" else f"{strategy}({kind} {keys})"
    if kind == SORTED_RUNS:
        return f"{strategy}({keys})"
    return strategy if kind in strategy and kind != "REBALANCE" else f"{strategy}({kind})"


def _channel_text(node: PhysicalNode, channel: Channel) -> str:
    side = ""
    operator = node.descriptor.operator
    if isinstance(operator, JoinOperator):
        role = "parted" if isinstance(operator, PartitionedAsofOperator) else "sorted"
        if isinstance(operator, HashJoinOperator):
            role = "build" if node.absorbs(channel.input_index) else "probe"
        side = f"{'right' if channel.input_index else 'left'}, {role}: "
    reason = f" ({channel.reason})" if channel.reason else ""
    because = f" ({channel.exchange_reason})" if channel.exchange_reason else ""
    return f"{side}{_ship_text(channel)}{reason}, {channel.exchange_mode.value}{because}"
