"""Reasons why the alternatives of a join lost, as text: ``REPARTITION_HASH_FIRST: network 1.4 GB against 38 KB``.

The difference that is named is the largest one, weighted as the comparison weighs it. Costs are cumulative, so what
an alternative saves elsewhere (a partitioning that is used again) counts.

Held by: tests/optimizer/test_explain.py
"""

from __future__ import annotations

from engine.optimizer.candidates import JoinReport, RejectedAlternative
from engine.shown_sizes import size_text
from engine.statistics.costs import CPU_WEIGHT, Costs


def rejected_alternatives(chosen: str, report: JoinReport) -> tuple[RejectedAlternative, ...]:
    """Return the alternatives that were not taken, in order of their names."""
    best = report.costs[chosen]
    lost = {name: reason_against(costs, best) for name, costs in report.costs.items() if name != chosen}
    lost |= {name: reason for name, reason in report.excluded.items() if name != chosen}
    return tuple(RejectedAlternative(name, reason) for name, reason in sorted(lost.items()))


def reason_against(costs: Costs, chosen: Costs) -> str:
    """Return the reason why one cost lost against another."""
    if not (costs.is_known and chosen.is_known):
        for what in ("network", "disk", "cpu"):
            own, other = getattr(costs, f"heuristic_{what}"), getattr(chosen, f"heuristic_{what}")
            if own != other:
                return f"sizes are unknown, heuristic {what} {size_text(own)} against {size_text(other)}"
        return "sizes are unknown, heuristic costs are equal, named later"
    differences = {
        "network": costs.network - chosen.network,
        "disk": costs.disk - chosen.disk,
        "cpu": (costs.cpu - chosen.cpu) * CPU_WEIGHT,
    }
    name = max(differences, key=lambda key: differences[key])
    if differences[name] > 0:
        return f"{name} {size_text(getattr(costs, name))} against {size_text(getattr(chosen, name))}"
    if costs < chosen:
        return "cheaper up to here, dearer with what follows"
    return "equal costs, named later"
