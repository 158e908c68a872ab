"""Alternatives of the whole plan, bottom up: every node's candidates from its inputs' candidates.

    operator               parallelism                          strategies
    source                 set, else default (<= its splits)    -
    project filter python  set, else that of the input          -
    sink                   set, else that of the input          -
    union                  set, else the largest of the inputs  -
    join                   see join_planning.py                 pairs of ship strategies x build side
    aggregate with keys    set, else default                    SINGLE where the input lies grouped, PARTIAL_FINAL
    aggregate without      1                                    SINGLE, PARTIAL_FINAL
    sort, limit            see sort_planning.py                 in one subtask, or in order over several
    partition              see partition_planning.py            -
    reduce co_group        see function_planning.py             -

The default is 1 in small parts of the plan (``small_parts``), and where a limit wants first rows (``first_rows``). Each
operator's entry (``operators``) makes its own. Whatever follows a sort without destroying its order stays in the sort's
subtasks. At the end the cheapest candidate of each sink is taken; a node with several consumers keeps one candidate,
chosen before they are planned.

Source: Flink's OptimizerNode.getAlternativePlans.
Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

import msgspec

from engine.graph.plan import Plan
from engine.optimizer.candidates import Candidate, cheapest, prune
from engine.optimizer.first_rows import first_rows
from engine.optimizer.operator_entries.entry import Planning
from engine.optimizer.operator_entries.registry import entry_of
from engine.optimizer.operator_names import operator_name
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.small_parts import (
    OPERATOR_FACTOR,
    SENT_SHARE,
    SHUFFLED_FACTOR,
    SHUFFLED_SHARE,
    THREADED_FACTOR,
    bytes_read,
    is_read_by_threads,
    small_parts,
)
from engine.statistics.costs import total_costs
from engine.statistics.estimates import Estimates


def enumerate_plan(plan: Plan, estimates: tuple[Estimates, ...], settings: OptimizerSettings) -> list[Candidate]:
    """Return the chosen candidate of every sink, in the order of ``plan.sinks``."""
    chosen = _enumerated(plan, estimates, settings)
    if not (settings.has_small_parts and settings.is_one_process):
        return chosen
    network, read = _network(chosen), bytes_read(plan, estimates)
    if network >= SHUFFLED_SHARE * read:
        factors = (SHUFFLED_FACTOR, SHUFFLED_FACTOR)
    elif network >= SENT_SHARE * read and is_read_by_threads(plan):
        factors = (THREADED_FACTOR, OPERATOR_FACTOR)
    else:
        return chosen
    larger = _enumerated(plan, estimates, settings, factors)
    return larger if 0 <= _network(larger) <= network / 2 else chosen


def _network(roots: list[Candidate]) -> float:
    """Return the bytes that travel between subtasks; below 0 where they are not known."""
    return total_costs(candidate.cumulative_costs for candidate in roots).network


def _enumerated(
    plan: Plan,
    estimates: tuple[Estimates, ...],
    settings: OptimizerSettings,
    factors: tuple[float, float] = (1, 1),
) -> list[Candidate]:
    """Return the candidates of the sinks where small parts of the plan, larger by factors, have one subtask."""
    slot = settings.with_slots(1)
    parts = small_parts(plan, estimates, slot, *factors, is_alone=settings.is_one_process)
    if settings.is_one_process and not all(parts):
        slot = settings
        parts = small_parts(plan, estimates, settings, *factors)
    planning = Planning(plan, settings, operator_name)
    in_one = planning._replace(settings=msgspec.structs.replace(slot, parallelism=1))
    first = first_rows(plan, estimates)
    is_small = [small or number in first for number, small in enumerate(parts)]
    consumer_count = [0] * len(plan.nodes)
    for node in plan.nodes:
        for source in node.inputs:
            consumer_count[source] += 1
    found: list[list[Candidate]] = []
    for node in plan.nodes:
        inputs = [found[source] for source in node.inputs]
        entry = entry_of(node.operator)
        planned_for = in_one if is_small[node.id] else planning
        candidates = entry.candidates(planned_for, node, node.operator, estimates[node.id], inputs)
        found.append(prune(candidates, to_one=consumer_count[node.id] != 1))
    return [cheapest(found[sink]) for sink in plan.sinks]
