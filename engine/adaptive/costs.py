"""Costs at run time: when a broadcast is cheaper than a repartitioning, by the cost model that planned the join.

    prefers_broadcast(small, stay, parallelism, memory_bytes)      for given sizes
    broadcast_limit(stay, parallelism, memory_bytes)               bytes up to which it is, for ``explain``

Costs of what is to be done still: an input that is finished has to be read all the same, once or by every subtask. The
other one is stored as well where it is repartitioned, and only there: else its rows go to the join as they are made,
and a run-time filter of the join spares its source most of them.

Which one costs less is no matter of one limit: with memory m and parallelism p a broadcast table spills from m on, the
parts of a repartitioned one from p * m on, and then quickly, so that a broadcast that has become dearer in between may
cost less again.

    small   0 ........ m ......... p * m ........ stay
    broadcast cheaper  yes    | no           | yes | no        16 subtasks of 64 MB, stay 100 GB: 0.6, 1.7, 2.5 GB

The first limit holds: a larger input is never broadcast at run time. By the same costs that is at most 1.13 times as
dear as the better one, while "up to the last limit" is up to 1.19 times (p from 2 to 16, stay up to 1 TB). Within each
of the three pieces the difference of the costs is a * size + b / size + c, which stops to be below 0 once at most.
Pure.

Held by: tests/adaptive/test_decisions.py
"""

from __future__ import annotations

import math

import msgspec

from engine.statistics.costs import Costs, broadcast_cost, hash_join_cost, repartition_cost
from engine.statistics.estimates import Estimates

#: factor by which an estimate must have been wrong before a plan is changed
SWITCH_FACTOR = 2.0

_BISECTIONS = 60


def prefers_broadcast(small: Estimates, stay: Estimates, parallelism: int, memory_bytes: int) -> bool:
    """Return whether ``small`` is to be broadcast rather than both inputs repartitioned: below ``broadcast_limit``.

    memory_bytes: of the pool of one subtask of the join.
    """
    is_below = small.size_bytes <= broadcast_limit(stay, parallelism, memory_bytes)
    return is_below and _is_cheaper(small, stay, parallelism, memory_bytes)


def _is_cheaper(small: Estimates, stay: Estimates, parallelism: int, memory_bytes: int) -> bool:
    return broadcast_costs(small, stay, parallelism, memory_bytes) < repartition_costs(
        small, stay, parallelism, memory_bytes
    )


def broadcast_costs(small: Estimates, stay: Estimates, parallelism: int, memory_bytes: int) -> Costs:
    """Return the costs of a join that reads ``small`` in every subtask."""
    return broadcast_cost(small, parallelism) + hash_join_cost(small, stay, parallelism, parallelism, memory_bytes)


def repartition_costs(first: Estimates, second: Estimates, parallelism: int, memory_bytes: int) -> Costs:
    """Return the costs of a join that repartitions both inputs, stores the second one, and builds the smaller one."""
    build, probe = sorted((first, second), key=lambda each: each.size_bytes)
    shipping = repartition_cost(first, parallelism) + repartition_cost(second, parallelism)
    return shipping + Costs(disk=second.size_bytes) + hash_join_cost(build, probe, 1, parallelism, memory_bytes)


def broadcast_limit(stay: Estimates, parallelism: int, memory_bytes: int) -> float:
    """Return the bytes of the other input up to which a broadcast is better; 0.0 when it never is."""
    low = 0.0
    # Where it costs less at the begin of a piece, it stops to do so once at most within it (see above).
    for end in sorted({min(each, stay.size_bytes) for each in (memory_bytes, parallelism * memory_bytes, math.inf)}):
        if not _is_cheaper(_sized(stay, end), stay, parallelism, memory_bytes):
            return _bisected(stay, low, end, parallelism, memory_bytes)
        low = end
    return low


def _bisected(stay: Estimates, low: float, high: float, parallelism: int, memory_bytes: int) -> float:
    """Return the size, between two others, at which a broadcast stops being cheaper."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _is_cheaper(_sized(stay, middle), stay, parallelism, memory_bytes):
            low = middle
        else:
            high = middle
    return low


def _sized(estimates: Estimates, size_bytes: float) -> Estimates:
    return msgspec.structs.replace(estimates, size_bytes=size_bytes)
