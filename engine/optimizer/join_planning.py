"""One join: its alternatives over given inputs, with costs, what a hint leaves of them, and why others lost.

    inputs' candidates x alternatives (or the hinted one) ─► candidates, each with the join's report

Parallelism of a join: what the user set; else for a repartitioned join the default, for a broadcast join that of the
side that stays (when it has more than one subtask). A side that lies hash partitioned by the keys at that parallelism
already stays where it is. A null key matches nothing, in joins of every type, so rows with one are spread over all
subtasks, whether they are returned or not. Heavy keys of a repartitioned join are split (heavy_keys.py).

Held by: tests/optimizer/test_join_alternatives.py
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.errors import PlanError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Join, PlanNode
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.optimizer.candidates import FORWARD, Candidate, CandidateInput, JoinReport, Shipping, move
from engine.optimizer.dictionary_builds import table_bytes
from engine.optimizer.heavy_keys import HEAVY_LOAD, JoinSides, split_heavy_keys
from engine.optimizer.join_alternatives import (
    FF,
    HH,
    HINTED,
    SORTING,
    JoinAlternative,
    LocalStrategy,
    Ship,
    correct_pairs,
    hinted_alternative,
    offered_alternatives,
    sorted_by_range,
    why_wrong,
)
from engine.optimizer.join_estimates import candidate_pairs
from engine.optimizer.properties import RANDOM, GlobalProperties, hashed_by
from engine.optimizer.range_planning import find_range, pair_costs, range_pairs
from engine.optimizer.replication import HINT as REPLICATED_HINT
from engine.optimizer.replication import arriving, is_replicable, is_replicated, replicated_shipping, replicating
from engine.optimizer.settings import OptimizerSettings
from engine.shown_sizes import size_text
from engine.statistics.costs import (
    NO_COST,
    Costs,
    broadcast_cost,
    forward_cost,
    hash_join_cost,
    repartition_cost,
    sort_merge_join_cost,
    total_costs,
)
from engine.statistics.estimates import Estimates, scaled

BROADCAST = PartitionerSpec("BROADCAST")
#: bytes touched for a pair that a condition is asked about: both of its rows are looked up
_PAIR_BYTES = 8


def join_candidates(
    node: PlanNode,
    join: Join,
    estimates: Estimates,
    lefts: list[Candidate],
    rights: list[Candidate],
    settings: OptimizerSettings,
) -> list[Candidate]:
    """Return the candidates of a join; PlanError for a hint that cannot be followed."""
    has_range = find_range(join, lefts[0].node.schema, rights[0].node.schema) is not None
    hinted = _hinted_alternative(join, has_range=has_range)
    report = JoinReport(hint=join.hint.value if hinted else "")
    one_subtask = (node.parallelism or settings.parallelism) == 1
    pairs = None if hinted else _range_pairs(join, lefts[0], rights[0])
    shares_marks = _shares_marks(lefts, rights, settings)
    offered = offered_alternatives(
        join, one_subtask=one_subtask, has_range=pairs is not None, shares_marks=shares_marks
    )
    alternatives = (hinted,) if hinted else offered
    if not hinted and (replicated := replicating(alternatives, lefts, rights)):
        alternatives, report.hint = replicated, REPLICATED_HINT
    found = []
    for left in lefts:
        for right in rights:
            for alternative in alternatives:
                candidate = _candidate(node, join, estimates, left, right, alternative, settings, report)
                if pairs is not None and alternative.variant.strategy is not LocalStrategy.RANGE_MERGE:
                    costs = total_costs((candidate.costs, pair_costs(pairs)))
                    candidate = msgspec.structs.replace(candidate, costs=costs)
                found.append(candidate)
                costs = candidate.cumulative_costs
                known = report.costs.get(alternative.name)
                if known is None or costs < known:
                    report.costs[alternative.name] = costs
    _explain_excluded(join, report, one_subtask=one_subtask)
    return found


def _shares_marks(lefts: list[Candidate], rights: list[Candidate], settings: OptimizerSettings) -> bool:
    """Whether all subtasks run in one process at one time, and none reads all rows of a side by itself."""
    is_together = settings.is_one_process and settings.execution_mode is ExecutionMode.PIPELINED
    return is_together and not any(is_replicated(each) or is_replicable(each) for each in (*lefts, *rights))


def _range_pairs(join: Join, left: Candidate, right: Candidate) -> float | None:
    estimates = (left.estimates, right.estimates)
    return range_pairs(join, left.node.schema, right.node.schema, estimates)


def _hinted_alternative(join: Join, *, has_range: bool) -> JoinAlternative | None:
    if join.hint is JoinHint.OPTIMIZER_CHOOSES:
        return None
    if join.hint not in HINTED:
        raise PlanError(f"Unrecognized join hint: {join.hint}; choose one of {', '.join(JoinHint)}")
    alternative = hinted_alternative(join.hint)
    if join.hint is JoinHint.REPARTITION_SORT_MERGE and has_range:
        alternative = sorted_by_range(alternative)
    if alternative.pair not in correct_pairs(join):
        raise PlanError(
            f"the hint {join.hint.value} would make {_article(join)} join wrong: {why_wrong(join, alternative.pair)}; "
            f"use {_or_list(hint for hint, (pair, _) in HINTED.items() if pair in correct_pairs(join))}"
        )
    return alternative


def _article(join: Join) -> str:
    if join.null_aware:
        return "a null-aware anti"
    return f"an {join.how.value}" if join.how.value[0] in "aeiou" else f"a {join.how.value}"


def _or_list(hints: Iterable[JoinHint]) -> str:
    *others, last = (hint.value for hint in hints)
    return f"{', '.join(others)} or {last}" if others else last


def _explain_excluded(join: Join, report: JoinReport, *, one_subtask: bool) -> None:
    for hint, (pair, _) in HINTED.items():
        if hint.value in report.costs or hint.value == report.hint:
            continue
        if report.hint:
            report.excluded[hint.value] = f"the hint {report.hint} decides"
        elif pair not in correct_pairs(join):
            report.excluded[hint.value] = f"not correct for {_article(join)} join: {why_wrong(join, pair)}"
        elif one_subtask:
            report.excluded[hint.value] = "one subtask needs no exchange between subtasks"


def _candidate(
    node: PlanNode,
    join: Join,
    estimates: Estimates,
    left: Candidate,
    right: Candidate,
    alternative: JoinAlternative,
    settings: OptimizerSettings,
    report: JoinReport,
) -> Candidate:
    pair, strategy = alternative.pair, alternative.variant.strategy
    parallelism = _parallelism(node, alternative, left, right, settings)
    left, right = arriving(pair.left, left, parallelism), arriving(pair.right, right, parallelism)
    shippings = (
        ship_side(pair.left, left, join.left_keys, parallelism),
        ship_side(pair.right, right, join.right_keys, parallelism),
    )
    table = _dictionary_table(join, strategy, left, right)
    if table is not None:
        shippings = _with_reason(shippings, strategy, join, table)
    sides = JoinSides(shippings, (left.estimates, right.estimates))
    if pair == HH and not settings.legacy_estimates:
        sides = split_heavy_keys(join, strategy, estimates.rows, sides, parallelism)
    costs = _local_costs(alternative, *sides.arriving, parallelism, settings, table)
    if not settings.legacy_estimates:
        costs += _pairs_cost(join, strategy, left.estimates, right.estimates)
    return Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(left, sides.shippings[0]), CandidateInput(right, sides.shippings[1])),
        strategy.value,
        alternative.name,
        costs,
        RANDOM if sides.is_split else _properties(node, join, alternative, (left, right), shippings, parallelism),
        report=report,
    )


def _dictionary_table(join: Join, strategy: LocalStrategy, left: Candidate, right: Candidate) -> float | None:
    """Return the expected bytes of a dictionary-encoded build side, None when it is not expected to be one."""
    if strategy in SORTING:
        return None
    builds_left = strategy is LocalStrategy.HASH_BUILD_FIRST
    return table_bytes(join, builds_left=builds_left, build=(left if builds_left else right).estimates)


def _with_reason(
    shippings: tuple[Shipping, Shipping], strategy: LocalStrategy, join: Join, table: float
) -> tuple[Shipping, Shipping]:
    """Add to the build side's reason how small its table will be."""
    left, right = shippings
    keys = join.left_keys if strategy is LocalStrategy.HASH_BUILD_FIRST else join.right_keys
    reason = f"dictionary-encoded build side: rows differ in {keys[0]} alone, a table of {size_text(table)}"
    if strategy is LocalStrategy.HASH_BUILD_FIRST:
        return left._replace(reason=left.reason or reason), right
    return left, right._replace(reason=right.reason or reason)


def _local_costs(
    alternative: JoinAlternative,
    left: Estimates,
    right: Estimates,
    parallelism: int,
    settings: OptimizerSettings,
    table: float | None,
) -> Costs:
    memory = settings.page_budget.operator_bytes
    strategy = alternative.variant.strategy
    copies = parallelism if Ship.BROADCAST in alternative.pair else 1
    if strategy in SORTING:
        left, right = (
            scaled(each, copies, "copies") if ship is Ship.BROADCAST and each.is_size_known else each
            for each, ship in zip((left, right), alternative.pair, strict=True)
        )
        return sort_merge_join_cost(left, right, parallelism, memory)
    build, probe = (left, right) if strategy is LocalStrategy.HASH_BUILD_FIRST else (right, left)
    return hash_join_cost(build, probe, copies, parallelism, memory, table, is_shared=settings.is_one_process)


def _pairs_cost(join: Join, strategy: LocalStrategy, left: Estimates, right: Estimates) -> Costs:
    """Return the cost of asking a condition for a match of each left row: 0 for other joins, which ask for all pairs.

    A left row that probes stops at its match. One that is built is met by each row of its key that probes, and those
    that come in one batch, as rows of one key do, are all asked about it.
    """
    if join.condition is None or join.how not in (JoinType.SEMI, JoinType.ANTI) or strategy in SORTING:
        return NO_COST
    pairs = candidate_pairs(join, left, right)
    asked = pairs if strategy is LocalStrategy.HASH_BUILD_FIRST else min(pairs, left.rows)
    return Costs(cpu=asked * _PAIR_BYTES)


def _parallelism(
    node: PlanNode, alternative: JoinAlternative, left: Candidate, right: Candidate, settings: OptimizerSettings
) -> int:
    if node.parallelism is not None:
        return node.parallelism
    if alternative.pair in (HH, FF):
        return settings.parallelism
    staying = left if alternative.pair.left is Ship.FORWARD else right
    return staying.parallelism if staying.parallelism > 1 else settings.parallelism


def ship_side(ship: Ship, source: Candidate, keys: tuple[str, ...], parallelism: int) -> Shipping:
    """Return the shipping of one side of a join to so many subtasks."""
    if ship is Ship.FORWARD:
        return move(source, parallelism)
    if ship is Ship.BROADCAST and is_replicated(source):
        return replicated_shipping()
    if ship is Ship.BROADCAST:
        return Shipping(ShipStrategy.BROADCAST, BROADCAST, broadcast_cost(source.estimates, parallelism))
    if source.parallelism == parallelism and source.properties.is_hashed_by(keys):
        return Shipping(ShipStrategy.FORWARD, FORWARD, forward_cost(), f"lies hashed by {', '.join(keys)} already")
    heaviest = source.estimates.heaviest_share(keys)
    costs = repartition_cost(source.estimates, parallelism, heaviest)
    reason = ""
    if heaviest * parallelism > 1:
        reason = (
            f"one key has {heaviest:.0%} of the rows, so its subtask would have {heaviest * parallelism:.1f} shares"
        )
    partitioner = PartitionerSpec("HASH", keys, spread_nulls=_may_have_many_nulls(source.estimates, keys, parallelism))
    return Shipping(ShipStrategy.PARTITION_HASH, partitioner, costs, reason)


def _may_have_many_nulls(source: Estimates, keys: tuple[str, ...], parallelism: int) -> bool:
    """Whether rows with a null key, which have no match, may be too many for the subtask that they are hashed to."""
    known = [source.columns.get(key) for key in keys]
    shares = [None if each is None else each.null_fraction for each in known]
    return any(share is None for share in shares) or sum(filter(None, shares)) * parallelism > HEAVY_LOAD


def _properties(
    node: PlanNode,
    join: Join,
    alternative: JoinAlternative,
    sides: tuple[Candidate, Candidate],
    shippings: tuple[Shipping, Shipping],
    parallelism: int,
) -> GlobalProperties:
    """Return the partitioning of the rows: that of the side that stays, if it has the same number of subtasks."""
    names = node.schema.names
    left, right = sides
    if alternative.pair not in (FF, *correct_pairs(join)):
        return RANDOM  # rows without a match come from any subtask
    if alternative.pair == HH:
        return _hashed(join, shippings).kept(names)
    left_stays = alternative.pair.left is Ship.FORWARD
    if alternative.pair == FF or (left if left_stays else right).parallelism != parallelism:
        return RANDOM
    if left_stays:
        return left.properties.kept(names)
    return right.properties.kept(names) if not join.coalesce_keys else _renamed(join, right).kept(names)


def _hashed(join: Join, shippings: tuple[Shipping, Shipping]) -> GlobalProperties:
    """Return the partitioning of a join's rows when both sides are hashed.

    Rows with null keys, which outer and anti joins return, are together unless they were spread.
    """
    right_keys = () if join.coalesce_keys else (join.right_keys,)
    is_together = [not shipping.partitioner.spread_nulls for shipping in shippings]
    match join.how:
        case JoinType.INNER:
            return hashed_by(join.left_keys, *right_keys)
        case JoinType.SEMI:
            return hashed_by(join.left_keys)
        case JoinType.LEFT | JoinType.ANTI if is_together[0]:
            return hashed_by(join.left_keys)
        case JoinType.RIGHT if is_together[1]:
            return hashed_by(*(right_keys or (join.left_keys,)))
        case _:
            return RANDOM


def _renamed(join: Join, right: Candidate) -> GlobalProperties:
    """Properties of the right side with its key names replaced by those of the output."""
    left_names = dict(zip(join.right_keys, join.left_keys, strict=True))
    names = {key: left_names.get(key, key) for key_set in right.properties.key_sets for key in key_set}
    return right.properties.renamed(names)
