"""AggregateState: where a hash aggregate is between its first batch and its end.

GROUPING ──── table full, groups repeat ────► EVICTING
 │    │                                        │    │
 │    └─ table full, groups are new ──┐   same ┘    │
 │ partial: rows do not               ▼   ▼         │
 ▼ become fewer                    PARTITIONED      │
PASSING_THROUGH                       │             │
 └────────────────┬───────────────────┴─────────────┘  the input has ended: from all of these, GROUPING too
                  ▼
               EMITTING ──── a partition that waits is grouped, one level deeper ────► GROUPING

every state ──── close() ────► CLOSED

GROUPING          rows find their groups in the table
EVICTING          the same, and groups of some partitions are in files: hybrid hashing
PARTITIONED       rows go to the partitions of their keys without a look at the table: early partitioning
PASSING_THROUGH   a partial aggregate that did not make rows fewer: each is given out as a group of its own
EMITTING          results are given out
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class AggregateState(Enum):
    """See above."""

    __hash__ = object.__hash__  # Enum's is a function of Python's, called at each look into the table

    GROUPING = "grouping"
    EVICTING = "evicting"
    PARTITIONED = "partitioned"
    PASSING_THROUGH = "passing through"
    EMITTING = "emitting"
    CLOSED = "closed"


_S = AggregateState
#: possible successors of each state
TRANSITIONS: Final[dict[AggregateState, frozenset[AggregateState]]] = {
    _S.GROUPING: frozenset({_S.EVICTING, _S.PARTITIONED, _S.PASSING_THROUGH, _S.EMITTING, _S.CLOSED}),
    _S.EVICTING: frozenset({_S.PARTITIONED, _S.EMITTING, _S.CLOSED}),
    _S.PARTITIONED: frozenset({_S.EMITTING, _S.CLOSED}),
    _S.PASSING_THROUGH: frozenset({_S.EMITTING, _S.CLOSED}),
    _S.EMITTING: frozenset({_S.GROUPING, _S.CLOSED}),
    _S.CLOSED: frozenset(),
}


class AggregateProgress:
    """The state of one aggregate. Thread: its task's."""

    def __init__(self) -> None:
        self.state = AggregateState.GROUPING

    def enter(self, state: AggregateState) -> None:
        """Move on; nothing happens where the state is entered already. Raises: RuntimeError: the table forbids it."""
        if state is self.state:
            return
        if state not in TRANSITIONS[self.state]:
            raise RuntimeError(f"an aggregate that is {self.state.value} cannot become {state.value}")
        self.state = state
