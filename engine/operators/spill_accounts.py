"""SpillAccounts: what each operator of a chain took and what it spilled.

    account = accounts.of(descriptor)       the operator adds to account.bytes_in what it takes
    account.add(space) ... account.hand_over(space)
    accounts.counters(head, bytes)          of all that have a spill space, in order of the chain; from any thread

A vertex is several operators in one task, and what they spilled together says little beside the vertex's input: a sort
behind a join spills what the join made. The bound (twice the operator's own input) can be checked for each of them.

The head of a chain takes all that comes over the task's edge, some of it before it becomes a batch: its input is the
driver's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.graph.deployment import OperatorCounters

if TYPE_CHECKING:
    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.iomanager.spill_space import SpillSpace
    from engine.iomanager.value_store import CountedValues


class SpillAccount:
    """One operator's."""

    def __init__(self) -> None:
        #: bytes of batches and pages taken
        self.bytes_in = 0
        self._spaces: tuple[SpillSpace | CountedValues, ...] = ()
        self._handed_over_bytes = 0

    def add(self, space: SpillSpace | CountedValues) -> None:
        """Count what goes to one more space, or what the operator has in one of many."""
        self._spaces = (*self._spaces, space)

    def hand_over(self, space: SpillSpace) -> None:
        """Count no further what goes to a space that outlives the attempt."""
        if space in self._spaces:
            self._handed_over_bytes += space.spilled_bytes
            self._spaces = tuple(each for each in self._spaces if each is not space)

    @property
    def spilled_bytes(self) -> int:
        """Bytes on disk so far."""
        return self._handed_over_bytes + sum(space.spilled_bytes for space in self._spaces)


class SpillAccounts:
    """Those of a chain."""

    def __init__(self) -> None:
        self._accounts: list[tuple[OperatorDescriptor, SpillAccount]] = []

    def of(self, operator: OperatorDescriptor) -> SpillAccount:
        """Return an operator's account."""
        for known, account in self._accounts:
            if known is operator:
                return account
        account = SpillAccount()
        self._accounts.append((operator, account))
        return account

    def hand_over(self, space: SpillSpace) -> None:
        """Count no further what goes to a space that outlives the attempt."""
        for _, account in self._accounts:
            account.hand_over(space)

    def counters(self, chain: tuple[OperatorDescriptor, ...], head_bytes: int) -> tuple[OperatorCounters, ...]:
        """Return what the operators of the chain took and spilled; head_bytes: the input of the first one."""
        found = []
        for step in chain:
            for operator, account in tuple(self._accounts):
                if operator is step:
                    taken = head_bytes if step is chain[0] else account.bytes_in
                    found.append(OperatorCounters(step.name, taken, account.spilled_bytes))
        return tuple(found)
