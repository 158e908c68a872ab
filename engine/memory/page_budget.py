"""PageBudget: the pages of a process, what a slot has of them, and what each operator in the slot.

    process size ─► ProcessMemory ─► PageBudget ─┬─ slot_pages ─► operator_pages(weight, SlotWeights, slot_pages)
                                                 │                ├─► explain
                                                 │                └─► deployment ─► the task's pools ─► accounts, REST
                                                 └─ operator_bytes, weight(bytes, least)      while plans are compared

The operators that run in a slot at the same time divide its pages: each that keeps rows has OPERATOR_PAGES_MIN, and a
part of the rest by its weight. A weight is the part of a slot that the operator would fill alone, 0 of one that keeps
no rows.

    a slot of 64 pages     join, weight 0.75   6 + 45 = 51
                           sort, weight 0.125  6 +  7 = 13 (7.4 rounded down)      52 pages are divided by weight

A planner compares plans before it knows which operators run beside each other. It takes OPERATORS_PER_SLOT for each
slot, so ``operator_bytes`` is half of one.

Invariant: the pages of all operators of a slot are at most the slot's, those of all slots at most the process's. Pure.

Source: the memory fractions of operators in Flink's slot sharing groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from engine.errors import MemoryBudgetError
from engine.memory.page_size import PAGE_SIZE_DEFAULT_BYTES

#: number of pages with which every operator that keeps rows runs correctly
OPERATOR_PAGES_MIN: Final = 6
#: number of operators that keep rows, for each slot, in the optimizer's costs
OPERATORS_PER_SLOT: Final = 2
#: part of the pages that is left to a job, whatever its libraries take
SHARE_MIN: Final = 0.125
#: floating-point error that must not cost a page
_ROUNDING: Final = 1e-6


def pages_needed(weights: Iterable[float]) -> int:
    """Return the pages without which operators of these weights do not run in one slot."""
    return OPERATOR_PAGES_MIN * len([weight for weight in weights if weight > 0])


class SlotWeights(msgspec.Struct, frozen=True):
    """The weights of all operators in a slot, added up once for all of them."""

    total: float
    #: pages without which they do not run
    least: int

    @classmethod
    def of(cls, weights: Sequence[float]) -> SlotWeights:
        """Add up weights."""
        return cls(sum(weights), pages_needed(weights))


def operator_pages(weight: float, weights: SlotWeights, slot_pages: int) -> int:
    """Return the pages of one operator in a slot; 0 of one that keeps no rows.

    Args: weight: of the operator; weights: of all operators in the slot, this one among them.
    Raises: MemoryBudgetError: the slot has fewer pages than its operators need.
    """
    if weights.least > slot_pages:
        raise MemoryBudgetError(
            f"a slot has {slot_pages} pages of managed memory, its operators need {weights.least}: "
            "set taskmanager.memory.managed.size higher, or the parallelism lower"
        )
    if weight == 0:
        return 0
    return OPERATOR_PAGES_MIN + int((slot_pages - weights.least) * weight / weights.total + _ROUNDING)


class PageBudget(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The pages that the slots of one process divide."""

    #: bytes of all slots together
    size_bytes: int
    page_bytes: int = PAGE_SIZE_DEFAULT_BYTES
    slot_count: int = 1
    #: part of the pages that libraries leave which the job needs; where they would leave less, the process is too small
    share: float = 1.0

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot."""
        return self.size_bytes // self.slot_count

    @property
    def slot_pages(self) -> int:
        """Pages of one slot."""
        return self.slot_bytes // self.page_bytes

    @property
    def operator_bytes(self) -> int:
        """Bytes that a planner takes for one subtask of an operator that keeps rows."""
        return self.slot_bytes // OPERATORS_PER_SLOT

    def weight(self, size_bytes: float, least: float) -> float:
        """Return the weight of an operator that keeps so many bytes in one subtask: from ``least`` to 1."""
        return min(1.0, max(least, size_bytes / self.slot_bytes))

    def beside(self, library_bytes: int) -> PageBudget:
        """Return the pages that are left beside libraries, SHARE_MIN of them at least."""
        share = max(SHARE_MIN, 1 - library_bytes / self.size_bytes) if self.size_bytes else 1.0
        return msgspec.structs.replace(self, size_bytes=int(self.size_bytes * share), share=share)

    def with_slots(self, count: int) -> PageBudget:
        """Return these pages divided among so many slots."""
        return msgspec.structs.replace(self, slot_count=count)
