"""cache(): rows that a job computes once and later jobs of the same Environment read.

    data.cache() ──► node with CachedRows ──first job that needs it──► a job of its own writes Arrow files,
                                                                       the node becomes a source of them
    later jobs   ──► the source; what is below the node is no part of their plans

The files are in the Environment's temporary folder, on disk and not in memory, and go with it. Rows keep their order. A
plan that is only looked at (``explain``) computes nothing.

Held by: tests/integration/test_cache.py
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from engine.lowering.logical_node import LogicalNode, Said, reachable

_CACHED: Final = attrgetter("cached")


def with_cached(roots: Sequence[LogicalNode]) -> list[LogicalNode]:
    """Return nodes that read what is cached by now in place of computing it."""
    made: dict[int, LogicalNode] = {}

    def current(node: LogicalNode) -> LogicalNode:
        if node.cached is not None and node.cached.source is not None:
            return node.cached.source
        return made.get(id(node), node)

    def said_now(said: Said | None) -> Said | None:
        return None if said is None else Said(said.operator, tuple(map(current, said.inputs)))

    for node in reachable(roots):
        inputs = tuple(map(current, node.inputs))
        is_same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        made[id(node)] = node if is_same else replace(node, inputs=inputs, said=said_now(node.said))
    return [current(root) for root in roots]


def above_cached(roots: Sequence[LogicalNode]) -> list[LogicalNode]:
    """Return nodes without what is below cached ones: what the job that computes those has seen to."""
    nodes = list(reachable(roots))
    if not any(map(_CACHED, nodes)):
        return list(roots)
    made: dict[int, LogicalNode] = {}
    for node in nodes:
        inputs = () if node.cached is not None else tuple(made[id(source)] for source in node.inputs)
        made[id(node)] = replace(node, inputs=inputs) if inputs or node.inputs else node
    return [made[id(root)] for root in roots]


def first_to_cache(roots: Sequence[LogicalNode]) -> LogicalNode | None:
    """Return a node that is to be cached and is not yet, with no other such node below it."""
    return next((node for node in reachable(roots) if node.cached is not None and node.cached.source is None), None)
