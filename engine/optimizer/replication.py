"""Replicated sources: the small side of a join that every subtask reads by itself, without an exchange.

    source.replicated() ─► select, filter ─► join      FORWARD into the join where it would have been BROADCAST

``replicated()`` is leave, not an order: it holds where a join may have that side broadcast (``join_alternatives``), and
there it decides, as a hint does; rows are read once for everything else that reads them. So a result never has rows
twice. The chain from the source to the join is planned anew for each such join, at the join's parallelism.

Source: Flink's ReplicatingInputFormat and the fully replicated inputs of its optimizer.
Held by: tests/optimizer/test_partitionings.py
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.graph.plan import Filter, Project, Source
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.candidates import FORWARD, Candidate, CandidateInput, Shipping
from engine.optimizer.join_alternatives import JoinAlternative, Ship
from engine.optimizer.properties import GlobalProperties, Partitioning
from engine.statistics.costs import Costs, forward_cost, local_cost

REPLICATED: Final = GlobalProperties(Partitioning.FULL_REPLICATION)
#: name of the hint in plans
HINT: Final = "replicated()"
_SHIPPING: Final = Shipping(ShipStrategy.FORWARD, FORWARD, forward_cost(), "every subtask reads all of it")


def is_replicated(candidate: Candidate) -> bool:
    """Whether every subtask has all rows of a candidate."""
    return candidate.properties.partitioning is Partitioning.FULL_REPLICATION


def is_replicable(candidate: Candidate) -> bool:
    """Whether a candidate is a source that may be replicated, or makes of each of its rows at most one."""
    match candidate.node.operator:
        case Source(is_replicated=is_allowed):
            return is_allowed
        case Project() | Filter():
            return is_replicable(candidate.inputs[0].candidate)
        case _:
            return False


def replicating(
    alternatives: tuple[JoinAlternative, ...], lefts: list[Candidate], rights: list[Candidate]
) -> tuple[JoinAlternative, ...]:
    """Return the alternatives of a join in which a replicable side is had by every subtask; () when there are none."""
    sides = [any(map(is_replicable, candidates)) for candidates in (lefts, rights)]
    return tuple(
        alternative
        for alternative in alternatives
        if any(ship is Ship.BROADCAST and allowed for ship, allowed in zip(alternative.pair, sides, strict=True))
    )


def arriving(ship: Ship, candidate: Candidate, parallelism: int) -> Candidate:
    """Return a join's input as it is read: replicated where it is to be in every subtask and may be."""
    if ship is not Ship.BROADCAST or not is_replicable(candidate):
        return candidate
    return _replicated_at(candidate, parallelism)


def _replicated_at(candidate: Candidate, parallelism: int) -> Candidate:
    if isinstance(candidate.node.operator, Source):
        size = candidate.estimates.size_bytes
        costs = Costs(disk=size * parallelism, cpu=size * parallelism) if size > 0 else candidate.costs
        return msgspec.structs.replace(
            candidate, parallelism=parallelism, strategy="REPLICATED", costs=costs, properties=REPLICATED
        )
    source = _replicated_at(candidate.inputs[0].candidate, parallelism)
    return Candidate(
        candidate.node,
        candidate.estimates,
        parallelism,
        (CandidateInput(source, _SHIPPING._replace(reason="")),),
        costs=local_cost(source.estimates, 0, parallelism),
        properties=REPLICATED,
    )


def replicated_shipping() -> Shipping:
    """Return the shipping of replicated rows, which every subtask has."""
    return _SHIPPING
