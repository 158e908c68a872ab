"""Join order: the cheapest order of inner joins, by a search over relations, equal keys and conditions.

    JoinProblem(relations, keys, conditions) ─► best_order ─► a tree of relations, and what it costs

A tree is the index of a relation, or (probe side, build side). What a join costs is bytes: both sides are touched, the
build side is stored too, and the result is made. Rows are estimated much as those of one join (``join_estimates``),
for all keys that are equal at once, so that a key which is equal to another through a third counts like one that was
written. Only relations that some key connects are joined.

Up to EXHAUSTIVE_MAX relations every tree is looked at, smaller sets first, and the best one of each set is kept; beyond
it the two whose join has fewest rows are joined, again and again.

Source: Selinger et al. 1979 for the search over sets, with trees that are not chains; Fegaras 1998 for the greedy one.
Held by: tests/optimizer/test_join_order.py
"""

from __future__ import annotations

from itertools import combinations
from math import prod

import msgspec

Tree = int | tuple["Tree", "Tree"]

EXHAUSTIVE_MAX = 10
#: bytes of a row beside its columns: hash, place in the table, reads for each row
ROW_BYTES = 16.0
#: cost of a byte of the build side, relative to one of the probe side
BUILD_WEIGHT = 3.0
#: bytes that a join processes in the time in which the search examines one pair of sets
PAIR_BYTES = 500.0


class Relation(msgspec.Struct, frozen=True):
    """An input: expected rows, and bytes of those columns of a row that are needed."""

    rows: float
    width: float


class EqualKeys(msgspec.Struct, frozen=True):
    """Columns that are equal in all rows of the result: relation -> different values, None where they are unknown.

    Values are those before filters: one order of ten joins one item of ten, however many orders the items name.
    """

    distinct: dict[int, float | None]
    relations: int


class Condition(msgspec.Struct, frozen=True):
    """A condition that applies once all these relations (bits) are joined, and the share of rows that meet it."""

    relations: int
    share: float


class JoinProblem(msgspec.Struct, frozen=True):
    """The relations to join, with keys and conditions."""

    relations: list[Relation]
    keys: list[EqualKeys]
    conditions: list[Condition]


class Joined(msgspec.Struct, frozen=True):
    """A set of relations (bits), joined by a tree."""

    relations: int
    rows: float
    width: float
    cost: float
    tree: Tree

    @property
    def size_bytes(self) -> float:
        """Bytes of all rows."""
        return self.rows * (self.width + ROW_BYTES)


def best_order(problem: JoinProblem) -> Joined | None:
    """Return the best tree that was found; None when keys do not connect all relations."""
    singles = [_single(problem, index) for index in range(len(problem.relations))]
    return _exhaustive(problem, singles) if len(singles) <= EXHAUSTIVE_MAX else _greedy(problem, singles)


def search_cost(problem: JoinProblem) -> float:
    """Return the upper bound of the search's own cost: cheaper joins are not worth a search."""
    count = len(problem.relations)
    return PAIR_BYTES * (3**count / 2 if count <= EXHAUSTIVE_MAX else count**3)


def cost_of(problem: JoinProblem, tree: Tree) -> Joined:
    """Return the cost of a given tree; relations without a key are joined in all pairs."""
    if isinstance(tree, int):
        return _single(problem, tree)
    one, other = (cost_of(problem, side) for side in tree)
    return _join(problem, one, other, _domain_of(problem, one, other) or 1.0)


def _single(problem: JoinProblem, index: int) -> Joined:
    relation = problem.relations[index]
    return Joined(1 << index, max(1.0, relation.rows), relation.width, 0.0, index)


def _exhaustive(problem: JoinProblem, singles: list[Joined]) -> Joined | None:
    best = {single.relations: single for single in singles}
    by_size: list[list[int]] = [[], [single.relations for single in singles]]
    for size in range(2, len(singles) + 1):
        found: set[int] = set()
        for smaller in range(1, size // 2 + 1):
            for first in by_size[smaller]:
                one = best[first]
                for second in by_size[size - smaller]:
                    # Two sets of one size meet once.
                    if first & second or (2 * smaller == size and second < first):
                        continue
                    other = best[second]
                    known = best.get(first | second)
                    # Where all relations have the same key nearly every pair ends here, before rows are estimated.
                    if known is not None and one.cost + other.cost >= known.cost:
                        continue
                    domain = _domain_of(problem, one, other)
                    if domain is None:
                        continue
                    joined = _join(problem, one, other, domain)
                    if known is None or joined.cost < known.cost:
                        best[joined.relations] = joined
                    found.add(joined.relations)
        by_size.append(sorted(found))
    return best.get((1 << len(singles)) - 1)


def _greedy(problem: JoinProblem, singles: list[Joined]) -> Joined | None:
    parts = list(singles)
    while len(parts) > 1:
        pairs = [(_domain_of(problem, one, other), one, other) for one, other in combinations(parts, 2)]
        joined = [_join(problem, one, other, domain) for domain, one, other in pairs if domain is not None]
        if not joined:
            return None
        fewest = min(joined, key=lambda pair: pair.rows)
        parts = [part for part in parts if not part.relations & fewest.relations] + [fewest]
    return parts[0]


def _domain_of(problem: JoinProblem, one: Joined, other: Joined) -> float | None:
    """Return the number of different values the keys between two sets have together; None when there are none."""
    domains = [
        _domain(keys, one, other)
        for keys in problem.keys
        if keys.relations & one.relations and keys.relations & other.relations
    ]
    if len(domains) < 2:
        return domains[0] if domains else None
    # values of several columns are not independent: there are no more combinations than rows
    return min(prod(domains), max(one.rows, other.rows))


def _join(problem: JoinProblem, one: Joined, other: Joined, domain: float) -> Joined:
    rows = one.rows * other.rows / domain
    both = one.relations | other.relations
    for condition in problem.conditions:
        relations = condition.relations
        # met here: all its relations are in the result, and not in one side
        if relations & both == relations and relations & one.relations and relations & other.relations:
            rows *= condition.share
    rows = max(1.0, rows)
    probe, build = (one, other) if one.size_bytes >= other.size_bytes else (other, one)
    made = rows * (one.width + other.width + ROW_BYTES)
    cost = one.cost + other.cost + probe.size_bytes + BUILD_WEIGHT * build.size_bytes + made
    return Joined(both, rows, one.width + other.width, cost, (probe.tree, build.tree))


def _domain(keys: EqualKeys, one: Joined, other: Joined) -> float:
    """Return the number of different values of the side with more of them, as if the smaller side's were unique."""
    counts = [(_distinct(keys, side), side.rows) for side in (one, other)]
    fewest = min(one.rows, other.rows)
    return max(
        1.0, *(fewest if count is None else count for count, rows in counts if count is not None or rows == fewest)
    )


def _distinct(keys: EqualKeys, side: Joined) -> float | None:
    counts = [count for index, count in keys.distinct.items() if side.relations >> index & 1 and count is not None]
    return min(counts, default=None)
