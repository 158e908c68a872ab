"""KeptStatements: queries that were bound, for the next time that they are asked.

    statements.find(key)    statements.keep(key, node, generation)    clear(): names mean something else now

A query of SQL that is asked again gives the node that it gave before, whose job may be kept, too (``kept_jobs``).
A bound query of TPC-DS takes 50 KB; the latest COUNT_MAX are kept.

Held by: tests/sql/test_kept_statements.py
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from engine.lowering.logical_node import LogicalNode

COUNT_MAX: Final = 128


@dataclass
class Repeats:
    """Whether a statement would be bound alike if it were asked again: it takes no part in chance or in time."""

    is_sure: bool = True

    def end(self) -> None:
        """Say that it would not."""
        self.is_sure = False


class KeptStatements:
    """Bound queries of an environment by what was asked. Thread: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: number of times that names have changed
        self.generation = 0
        self._nodes: OrderedDict[Hashable, LogicalNode] = OrderedDict()  # guarded by: self._lock

    def find(self, key: Hashable) -> LogicalNode | None:
        """Return the node of a query, None for one that is not kept."""
        with self._lock:
            node = self._nodes.get(key)
            if node is not None:
                self._nodes.move_to_end(key)
            return node

    def keep(self, key: Hashable, node: LogicalNode, generation: int) -> None:
        """Keep the node of a query, if names mean what they meant when its binding began."""
        with self._lock:
            if generation == self.generation:
                self._nodes[key] = node
            while len(self._nodes) > COUNT_MAX:
                self._nodes.popitem(last=False)

    def clear(self) -> None:
        """Forget all queries."""
        with self._lock:
            self.generation += 1
            self._nodes.clear()
