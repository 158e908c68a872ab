"""Estimates: rows, bytes and column statistics of every operator, and the words that say where they come from.

    operator       rows                                             bytes
    source         statistics, else bytes / width of a row          statistics, else rows * width
    project        input                                            rows * width of its columns
    filter         input * selectivity (selectivity.py)             rows * width
    map            input                                            rows * width of its schema
    flat_map       input * FLAT_MAP_EXPANSION                       rows * width of its schema
    filter(fn)     input * PYTHON_FILTER_SHARE                      rows * width
    reduce         a row for each group, as for an aggregate        rows * width of its schema
    co_group       a row for each group of either side              rows * width of its schema
    join           left * right / distinct keys (join_estimates.py) rows * width
    aggregate      product of distinct keys, else rows ** 0.75      rows * width
    union, limit, sort, sink, partition                             sum, at most n, input, input, input

Nothing is ever unknown and nothing is below one row, so costs always compare. A function's output is sized by rows
and by the width of its schema, which is always declared; taking over the bytes of the input instead, as a fix for the
estimator below might, is not offered: it is wrong wherever a function drops or adds a column, and its answer is the
same where it does not. What is wrong all the same is seen when the result is stored (``engine.adaptive``).

``flink_estimate`` is the estimator of Flink 1.x, which shows what it does to plans: projection, map or flat map leaves
its size unset, and a flat map makes five rows of one. Costs are UNKNOWN then, and a join is repartitioned although one
side is tiny. ``optimize`` chooses the estimator.

Each operator's entry (``operators``) says what comes out of it; the constants are there.
Source: Flink's OptimizerNode.computeOperatorSpecificDefaultEstimates and FlatMapNode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

import msgspec

from engine.graph.plan import CoGroup, Explode, GroupReduce, Plan, PlanNode, Project, PythonFunction
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of
from engine.statistics.estimates import UNKNOWN, Estimates

#: function from a node and the estimates of its inputs to those of its result
Estimator = Callable[[PlanNode, Sequence[Estimates]], Estimates]
_FLINK_FLAT_MAP_EXPANSION = 5.0


def estimate(node: PlanNode, inputs: Sequence[Estimates]) -> Estimates:
    """Return the estimates of a node's result: those of its operator's entry."""
    return entry_of(node.operator).estimate(node, node.operator, inputs)


def flink_estimate(node: PlanNode, inputs: Sequence[Estimates]) -> Estimates:
    """Return the estimates of Flink 1.x for a node's result."""
    found = estimate(node, inputs)
    match node.operator:
        case PythonFunction(kind="flat_map"):
            rows = max(1.0, inputs[0].rows * _FLINK_FLAT_MAP_EXPANSION)
            return Estimates(rows, UNKNOWN, f"{_FLINK_FLAT_MAP_EXPANSION:g} * input: default for flat_map")
        case PythonFunction(kind=kind) if kind == "filter" or kind.startswith("column"):
            return found
        case PythonFunction() | Project() | Explode() | GroupReduce() | CoGroup():
            return msgspec.structs.replace(found, size_bytes=UNKNOWN)
    return found


def estimate_plan(plan: Plan, estimator: Estimator = estimate) -> tuple[Estimates, ...]:
    """Return the estimates of every node, by node id."""
    found: list[Estimates] = []
    for node in plan.nodes:
        found.append(estimator(node, [found[source] for source in node.inputs]))
    return tuple(found)


def estimate_below(plan: LogicalPlan, node: PlanNode, known: dict[int, Estimates]) -> Estimates:
    """Return the estimates of one node of a plan under change; ``known`` are those that were asked for already.

    Those that were made for the node as it is, of the very estimates of its inputs, are made once for all rules.
    """
    if node.id not in known:
        inputs = [estimate_below(plan, plan.node(source), known) for source in node.inputs]
        made = plan.estimated.get(node.id)
        if made is None or made[0] is not node or not all(map(is_, made[1], inputs)):
            made = plan.estimated[node.id] = node, inputs, estimate(node, inputs)
        known[node.id] = made[2]
    return known[node.id]
