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

``legacy=True`` is the estimator of the engine this one is built after, kept to show what it does to plans: a
projection, map or flat map leaves its size unset, a flat map makes five rows of one. Then sizes are UNKNOWN, costs
are, and a join is repartitioned although one side is tiny.

Each operator's entry (``operators``) says what comes out of it; the constants are there.
Source: Flink's OptimizerNode.computeOperatorSpecificDefaultEstimates and FlatMapNode.
"""

from __future__ import annotations

from operator import is_

from engine.graph.plan import Plan, PlanNode
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operators.registry import entry_of
from engine.statistics.estimates import Estimates


def estimate_plan(plan: Plan, *, legacy: bool = False) -> tuple[Estimates, ...]:
    """Return the estimates of every node, by node id."""
    found: list[Estimates] = []
    for node in plan.nodes:
        inputs = [found[source] for source in node.inputs]
        found.append(entry_of(node.operator).estimate(node, node.operator, inputs, legacy=legacy))
    return tuple(found)


def estimate_below(plan: LogicalPlan, node: PlanNode, known: dict[int, Estimates]) -> Estimates:
    """Return the estimates of one node of a plan under change; ``known`` are those that were asked for already.

    Those that were made for the node as it is, of the very estimates of its inputs, are made once for all rules.
    """
    if node.id not in known:
        inputs = [estimate_below(plan, plan.node(source), known) for source in node.inputs]
        made = plan.estimated.get(node.id)
        if made is None or made[0] is not node or not all(map(is_, made[1], inputs)):
            found = entry_of(node.operator).estimate(node, node.operator, inputs, legacy=False)
            made = plan.estimated[node.id] = node, inputs, found
        known[node.id] = made[2]
    return known[node.id]
