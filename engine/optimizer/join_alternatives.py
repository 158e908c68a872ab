"""Alternatives of a join: pairs of ship strategies that are correct, and its local variants.

Pairs (left, right), H hash partition, B broadcast, F stay:

                HH   FB   BF   FF                    why not
    inner       yes  yes  yes  one subtask only      BB emits a match once per subtask, FH HF lose matches, FF too
    left        yes  yes  -    one subtask only      BF: a left row without match would come from every subtask
    right       yes  -    yes  one subtask only      FB: likewise for the right
    full        yes  -    -    one subtask only
    semi        yes  yes  -    one subtask only      BF: a left row would come from every subtask that has a match
    anti        yes  yes  -    one subtask only
    null-aware  -    yes  -    one subtask only      HH: a null key on the right concerns every subtask
    cross       -    yes  yes  one subtask only      HH: there are no keys

Where all subtasks run in one process, they mark the same rows of a broadcast build side (``shared_builds``), so that BF
is correct for left, semi and anti joins too, and FB for right ones (``MARKING_PAIRS``): the build side is the broadcast
one then. Rows without a match come from any subtask, so their partitioning is not known.

HB and BH are correct for an inner join and always cost more than FB and BF; they are not offered. A fully replicated
input stays where it is (F in place of B); one subtask has all rows, so there FF is right. A condition beside the keys
changes nothing here: it is looked at where the pair is.

Local variants: the algorithm and whether each input is sorted by the keys. A sort-merge join wants both sorted and
sorts them itself; a hash join takes either order on both sides and keeps that of its probe side: 1 + 4 + 4 = 9 variants
for each pair. The planner offers the sort-merge and the two hash variants whose inputs need no order, because nothing
here makes order for free.

Source: Flink's SortMergeInnerJoinDescriptor, HashJoinBuildFirstProperties, HashJoinBuildSecondProperties and
AbstractJoinDescriptor (whose pairs contain some that lose rows).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from engine.graph.plan import Join
from engine.graph.said_operators import JoinHint, JoinType


class Ship(StrEnum):
    """The shipping of one side of a join, before it is known whether it is partitioned already."""

    HASH = "H"
    BROADCAST = "B"
    FORWARD = "F"


class LocalStrategy(StrEnum):
    """Algorithm of a join."""

    SORT_MERGE = "SORT_MERGE"
    HASH_BUILD_FIRST = "HASH_BUILD_FIRST"
    HASH_BUILD_SECOND = "HASH_BUILD_SECOND"
    #: range join, where the condition has a range (``range_planning``)
    RANGE_MERGE = "RANGE_MERGE"


#: strategies that sort both sides
SORTING = frozenset({LocalStrategy.SORT_MERGE, LocalStrategy.RANGE_MERGE})


class ShipPair(NamedTuple):
    """Ship strategies of left and right."""

    left: Ship
    right: Ship


class LocalVariant(NamedTuple):
    """An algorithm and whether its inputs arrive sorted by the keys."""

    strategy: LocalStrategy
    left_sorted: bool
    right_sorted: bool


class JoinAlternative(NamedTuple):
    """One way to run a join."""

    pair: ShipPair
    variant: LocalVariant

    @property
    def name(self) -> str:
        """Name of the alternative; where a hint forces it, the hint's."""
        side = "FIRST" if self.variant.strategy is LocalStrategy.HASH_BUILD_FIRST else "SECOND"
        if self.variant.strategy in SORTING:
            return f"{_PAIR_NAMES[self.pair]}_{self.variant.strategy.value}"
        return f"{_PAIR_NAMES[self.pair]}_HASH_{side}"


HH = ShipPair(Ship.HASH, Ship.HASH)
FB = ShipPair(Ship.FORWARD, Ship.BROADCAST)
BF = ShipPair(Ship.BROADCAST, Ship.FORWARD)
FF = ShipPair(Ship.FORWARD, Ship.FORWARD)

_PAIR_NAMES = {HH: "REPARTITION", FB: "BROADCAST", BF: "BROADCAST", FF: "FORWARD"}

#: correct pairs for more than one subtask, as the table in the header has them
CORRECT_PAIRS: dict[JoinType, tuple[ShipPair, ...]] = {
    JoinType.INNER: (HH, BF, FB),
    JoinType.LEFT: (HH, FB),
    JoinType.RIGHT: (HH, BF),
    JoinType.FULL: (HH,),
    JoinType.SEMI: (HH, FB),
    JoinType.ANTI: (HH, FB),
    JoinType.CROSS: (BF, FB),
}

#: further pairs that are correct where subtasks of one process mark the rows of one build side
MARKING_PAIRS: dict[JoinType, tuple[ShipPair, ...]] = {
    JoinType.LEFT: (BF,),
    JoinType.RIGHT: (FB,),
    JoinType.SEMI: (BF,),
    JoinType.ANTI: (BF,),
}

#: alternative that each hint forces
HINTED: dict[JoinHint, tuple[ShipPair, LocalStrategy]] = {
    JoinHint.BROADCAST_HASH_FIRST: (BF, LocalStrategy.HASH_BUILD_FIRST),
    JoinHint.BROADCAST_HASH_SECOND: (FB, LocalStrategy.HASH_BUILD_SECOND),
    JoinHint.REPARTITION_HASH_FIRST: (HH, LocalStrategy.HASH_BUILD_FIRST),
    JoinHint.REPARTITION_HASH_SECOND: (HH, LocalStrategy.HASH_BUILD_SECOND),
    JoinHint.REPARTITION_SORT_MERGE: (HH, LocalStrategy.SORT_MERGE),
}


def correct_pairs(join: Join, *, shares_marks: bool = False) -> tuple[ShipPair, ...]:
    """Return the pairs that are right for a join on more than one subtask.

    shares_marks: whether all subtasks know together which rows of a broadcast build side were matched.
    """
    if join.null_aware:
        return (FB,)
    return CORRECT_PAIRS[join.how] + (MARKING_PAIRS.get(join.how, ()) if shares_marks else ())


def why_wrong(join: Join, pair: ShipPair) -> str:
    """Return the error that a pair outside the correct ones would cause."""
    if join.how is JoinType.CROSS:
        return "there are no keys to partition or to sort by"
    if pair == HH:
        return "every subtask must know of the null keys on the right"
    side = "left" if pair == BF else "right"
    which = "with a match" if join.how is JoinType.SEMI else "without match"
    return f"every subtask would return the {side} rows {which}"


def local_variants() -> tuple[LocalVariant, ...]:
    """Return the nine local variants of a join."""
    hashed = (
        LocalVariant(strategy, left_sorted, right_sorted)
        for strategy in (LocalStrategy.HASH_BUILD_FIRST, LocalStrategy.HASH_BUILD_SECOND)
        for left_sorted, right_sorted in product((False, True), repeat=2)
    )
    return (*hashed, LocalVariant(LocalStrategy.SORT_MERGE, left_sorted=True, right_sorted=True))


def enumerate_alternatives(pairs: Iterable[ShipPair]) -> tuple[JoinAlternative, ...]:
    """Return every pair with every local variant, each once."""
    return tuple(JoinAlternative(pair, variant) for pair in pairs for variant in local_variants())


def offered_alternatives(
    join: Join, *, one_subtask: bool, has_range: bool = False, shares_marks: bool = False
) -> tuple[JoinAlternative, ...]:
    """Return the alternatives that the planner compares: of all, those that ask for no order and that run.

    has_range: by a range in the condition, too. shares_marks: as in correct_pairs.
    """
    pairs = (FF,) if one_subtask else correct_pairs(join, shares_marks=shares_marks)
    by_range = _variant(LocalStrategy.RANGE_MERGE)
    ranged = (FF,) if one_subtask else correct_pairs(join)
    return tuple(JoinAlternative(pair, by_range) for pair in ranged if has_range) + tuple(
        alternative
        for alternative in enumerate_alternatives(pairs)
        if alternative.variant == _variant(alternative.variant.strategy)
        and _runs(join, alternative.pair, alternative.variant.strategy)
    )


def hinted_alternative(hint: JoinHint) -> JoinAlternative:
    """Return the alternative that a hint names."""
    pair, strategy = HINTED[hint]
    return JoinAlternative(pair, _variant(strategy))


def sorted_by_range(alternative: JoinAlternative) -> JoinAlternative:
    """Return an alternative with the algorithm that sorts by a range of the condition as well."""
    return alternative._replace(variant=_variant(LocalStrategy.RANGE_MERGE))


def _variant(strategy: LocalStrategy) -> LocalVariant:
    is_sorted = strategy in SORTING
    return LocalVariant(strategy, left_sorted=is_sorted, right_sorted=is_sorted)


def _runs(join: Join, pair: ShipPair, strategy: LocalStrategy) -> bool:
    """Whether an algorithm goes with a pair.

    The broadcast side is the one that is built: the other way round every subtask would probe with all its rows. What
    a null key on the right means must be known before the left is looked at.
    """
    if strategy is LocalStrategy.SORT_MERGE:
        return pair in (HH, FF) and join.how is not JoinType.CROSS and not join.null_aware
    builds_left = strategy is LocalStrategy.HASH_BUILD_FIRST
    if join.null_aware and builds_left:
        return False
    return pair in (HH, FF) or (pair.left if builds_left else pair.right) is Ship.BROADCAST
