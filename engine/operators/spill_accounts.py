"""SpillAccounts: what each operator of a chain spilled, and the pages that it held.

    account = accounts.of(descriptor)
    account.add(space), account.add_pool(pool) ... accounts.hand_over(pool, space)
    accounts.find(descriptor)               what there is of an operator; from any thread

A vertex is several operators in one task, and what they spilled together says little beside the vertex's input: a sort
behind a join spills what the join made. The bound (twice the own input, which ``operator_meters`` counts) can
be checked for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.iomanager.spill_space import SpillSpace
    from engine.iomanager.value_store import CountedValues
    from engine.memory.page_pool import PagePool

_SPILLED_BYTES: Final[Callable[[Any], int]] = attrgetter("spilled_bytes")
_RAW_BYTES: Final[Callable[[Any], int]] = attrgetter("raw_bytes")


class FurtherSpill:
    """Bytes that go to a space of another task from now on."""

    def __init__(self, space: SpillSpace) -> None:
        self._space = space
        self._spilled_before, self._raw_before = space.spilled_bytes, space.raw_bytes

    @property
    def spilled_bytes(self) -> int:
        """Bytes on disk since then."""
        return self._space.spilled_bytes - self._spilled_before

    @property
    def raw_bytes(self) -> int:
        """Bytes of these before they were compressed."""
        return self._space.raw_bytes - self._raw_before

    def cancel(self) -> None:
        """End what writes to the space, or reads from it."""
        self._space.cancel()


class SpillAccount:
    """One operator's."""

    def __init__(self) -> None:
        #: processor time of the worker that ran its function
        self.function_us = 0
        #: time that opening its function took
        self.opening_us = 0
        self._pools: tuple[PagePool, ...] = ()
        self._former_bytes = self._former_bytes_peak = 0
        self._spaces: tuple[SpillSpace | CountedValues | FurtherSpill, ...] = ()
        self._handed_over_bytes = self._handed_over_raw_bytes = 0

    def add(self, space: SpillSpace | CountedValues | FurtherSpill) -> None:
        """Count what goes to one more space, or what the operator has in one of many."""
        self._spaces = (*self._spaces, space)

    def add_pool(self, pool: PagePool) -> None:
        """Count the pages of one more pool."""
        self._pools = (*self._pools, pool)

    def hand_over_pool(self, pool: PagePool) -> None:
        """Count no further the pages of a pool that outlives the attempt."""
        if pool in self._pools:
            self._former_bytes += pool.page_limit * pool.page_size
            self._former_bytes_peak += pool.pages_peak * pool.page_size
            self._pools = tuple(each for each in self._pools if each is not pool)

    @property
    def managed_bytes(self) -> int:
        """Bytes of its pools."""
        size = self._former_bytes
        for pool in self._pools:
            size += pool.page_limit * pool.page_size
        return size

    @property
    def managed_bytes_peak(self) -> int:
        """Most of it that it took, each pool for itself."""
        size = self._former_bytes_peak
        for pool in self._pools:
            size += pool.pages_peak * pool.page_size
        return size

    def hand_over(self, space: SpillSpace) -> None:
        """Count no further what goes to a space that outlives the attempt."""
        if space in self._spaces:
            self._handed_over_bytes += space.spilled_bytes
            self._handed_over_raw_bytes += space.raw_bytes
            self._spaces = tuple(each for each in self._spaces if each is not space)

    @property
    def spilled_bytes(self) -> int:
        """Bytes on disk so far."""
        return self._handed_over_bytes + sum(map(_SPILLED_BYTES, self._spaces))

    @property
    def raw_bytes(self) -> int:
        """Bytes of these before they were compressed: as large as the rows were in pages."""
        return self._handed_over_raw_bytes + sum(map(_RAW_BYTES, self._spaces))


class SpillAccounts:
    """The spill accounts of a chain."""

    def __init__(self) -> None:
        self._accounts: list[tuple[OperatorDescriptor, SpillAccount]] = []

    def of(self, operator: OperatorDescriptor) -> SpillAccount:
        """Return an operator's account."""
        account = self.find(operator)
        if account is not None:
            return account
        account = SpillAccount()
        self._accounts.append((operator, account))
        return account

    def hand_over(self, pool: PagePool, space: SpillSpace) -> None:
        """Count no further what goes to memory and files that outlive the attempt."""
        for _, account in self._accounts:
            account.hand_over(space)
            account.hand_over_pool(pool)

    def find(self, operator: OperatorDescriptor) -> SpillAccount | None:
        """Return an operator's account, None when it has none."""
        for known, account in tuple(self._accounts):
            if known is operator:
                return account
        return None
