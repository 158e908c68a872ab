"""Connected components of things that are numbered from 0. Pure.

    component_of(5, [(0, 1), (2, 3)]) ─► [0, 0, 2, 2, 4]

Held by: tests/graph/test_pipelined_regions.py
"""

from __future__ import annotations

from collections.abc import Iterable


def component_of(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the smallest number of each one's component, of ``count`` that pairs of them connect."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for one, other in pairs:
        beside[one].append(other)
        beside[other].append(one)
    component = [-1] * count
    for first in range(count):
        if component[first] >= 0:
            continue
        component[first], reached = first, [first]
        while reached:
            for each in beside[reached.pop()]:
                if component[each] < 0:
                    component[each] = first
                    reached.append(each)
    return component
