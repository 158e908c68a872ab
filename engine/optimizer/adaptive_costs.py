"""When a broadcast is better than a repartitioning, by the cost model that planned the join.

    prefers_broadcast(small, stay, parallelism, memory_bytes)      for given sizes
    broadcast_limit(stay, parallelism, memory_bytes)               bytes up to which it is, for ``explain``

Costs of what is to be done still: an input that is finished has to be read all the same, once or by every subtask.
Pure.
"""

from __future__ import annotations

import msgspec

from engine.optimizer.cost import Costs, broadcast_cost, hash_join_cost, repartition_cost
from engine.optimizer.estimates import Estimates

#: how wrong an expectation must have been before a plan is changed for it
SWITCH_FACTOR = 2.0

_BISECTIONS = 60


def prefers_broadcast(small: Estimates, stay: Estimates, parallelism: int, memory_bytes: int) -> bool:
    """Return whether broadcasting ``small`` costs less than repartitioning both inputs.

    memory_bytes: managed memory of one subtask of the join.
    """
    return broadcast_costs(small, stay, parallelism, memory_bytes) < repartition_costs(
        small, stay, parallelism, memory_bytes
    )


def broadcast_costs(small: Estimates, stay: Estimates, parallelism: int, memory_bytes: int) -> Costs:
    """Return the costs of a join that reads ``small`` in every subtask."""
    return broadcast_cost(small, parallelism) + hash_join_cost(small, stay, parallelism, parallelism, memory_bytes)


def repartition_costs(first: Estimates, second: Estimates, parallelism: int, memory_bytes: int) -> Costs:
    """Return the costs of a join that repartitions both inputs and builds the smaller one."""
    build, probe = sorted((first, second), key=lambda each: each.size_bytes)
    shipping = repartition_cost(first, parallelism) + repartition_cost(second, parallelism)
    return shipping + hash_join_cost(build, probe, 1, parallelism, memory_bytes)


def broadcast_limit(stay: Estimates, parallelism: int, memory_bytes: int) -> float:
    """Return the bytes of the other input up to which a broadcast is better; 0.0 when it never is."""
    low, high = 0.0, stay.size_bytes
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        small = msgspec.structs.replace(stay, size_bytes=middle)
        if prefers_broadcast(small, stay, parallelism, memory_bytes):
            low = middle
        else:
            high = middle
    return low
