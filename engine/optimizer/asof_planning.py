"""An as-of join: its candidates. Where both sides arrive, they are parted by their ``by`` columns, or sorted.

    local strategy               how
    PARTITIONED                  parted by hash of ``by`` and joined partition by partition; what is in order stays so
    MERGE                        both sides sorted by (by, time) and merged

    pair (left, right)           when
    HASH       HASH              rows of equal ``by`` columns meet; null ones match nothing and are spread
    FORWARD    BROADCAST         every subtask has all of the right; it is a left join, so each left row comes out once
    FORWARD    FORWARD           one subtask: all that there are, or without ``by`` unless the user asks for more

The rows of a merge come out in the order of (by, time), nulls first, so that a window by them needs no sort. Without
``by`` there is nothing to part rows by.

Held by: tests/optimizer/test_asof_planning.py
"""

from __future__ import annotations

from engine.graph.plan import AsofJoin, PlanNode
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import Candidate, CandidateInput
from engine.optimizer.join_alternatives import FB, FF, HH, ShipPair
from engine.optimizer.join_planning import ship_side
from engine.optimizer.properties import RANDOM
from engine.optimizer.replication import arriving
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.window_planning import sorted_columns
from engine.statistics.costs import partitioned_asof_cost, sort_merge_join_cost, total_costs
from engine.statistics.estimates import Estimates, scaled

PARTITIONED, MERGE = "ASOF_PARTITIONED", "ASOF_MERGE"

_NAMES = {HH: "REPARTITION_ASOF", FB: "BROADCAST_ASOF", FF: "FORWARD_ASOF"}


def asof_candidates(
    node: PlanNode,
    join: AsofJoin,
    estimates: Estimates,
    lefts: list[Candidate],
    rights: list[Candidate],
    settings: OptimizerSettings,
) -> list[Candidate]:
    """Return every way to run an as-of join."""
    pairs: tuple[ShipPair, ...] = (FF,)
    if (node.parallelism or settings.parallelism) > 1:
        others = (HH,) if join.left_by else (FF,) if node.parallelism is None else ()
        pairs = (*others, FB)
    return [
        _candidate(node, join, estimates, left, right, pair, local, settings)
        for left in lefts
        for right in rights
        for pair in pairs
        for local in ((PARTITIONED, MERGE) if join.left_by else (MERGE,))
    ]


def _candidate(
    node: PlanNode,
    join: AsofJoin,
    estimates: Estimates,
    left: Candidate,
    right: Candidate,
    pair: ShipPair,
    local: str,
    settings: OptimizerSettings,
) -> Candidate:
    parallelism = node.parallelism or settings.parallelism
    if pair == FB and node.parallelism is None and left.parallelism > 1:
        parallelism = left.parallelism
    elif pair == FF:
        parallelism = 1
    right = arriving(pair.right, right, parallelism)
    shippings = (
        ship_side(pair.left, left, join.left_by, parallelism),
        ship_side(pair.right, right, join.right_by, parallelism),
    )
    sorted_right = right.estimates
    if pair == FB and sorted_right.is_size_known:
        sorted_right = scaled(sorted_right, parallelism, "in every subtask")
    local_costs = partitioned_asof_cost if local == PARTITIONED else sort_merge_join_cost
    costs = local_costs(left.estimates, sorted_right, parallelism, settings.page_budget.operator_bytes)
    if pair == FF:
        # no other subtask works meanwhile
        costs = total_costs([costs] * (node.parallelism or settings.parallelism))
    order = tuple(SortKey(name) for name in join.left_keys)
    return Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(left, shippings[0]), CandidateInput(right, shippings[1])),
        local,
        _NAMES[pair],
        costs,
        left.properties.kept(node.schema.names) if pair == FB and left.parallelism == parallelism else RANDOM,
        sorted_by=sorted_columns(order, {name: name for name in node.schema.names}) if local == MERGE else (),
    )
