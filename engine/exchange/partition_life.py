"""PartitionLife: the states of a result partition, and the error of a producer that writes too late.

    PRODUCING ──finish──► FINISHED ──┐
        │ └─────fail────► FAILED ────┼──release──► RELEASED ──┐
        └────────────────────────────┘                        │
    any but CANCELLED ──────────cancel──────────► CANCELLED ◄─┘

A cancelled partition is released as well; the two differ in what its producer hears. Consumers that have read a
PIPELINED partition to its end release it under its producer, which may be cancelled for that: the later reason counts.

    with life:                what is below has been closed under the producer? Then the error says how it ended here:
        queue.add(buffer)     TaskCancelledError, PartitionReleasedError or IllegalTransitionError with its state

Thread: any.

Source: Flink's ResultPartition (``isReleased``, ``isFinished``, ``cause``), as one state.
"""

from __future__ import annotations

import threading
from enum import Enum, auto
from types import TracebackType
from typing import TYPE_CHECKING, Final

from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError, TaskCancelledError

if TYPE_CHECKING:
    from engine.ids import ResultPartitionId

#: errors of closed queues, files and pools
_ENDED: Final = (IllegalTransitionError, PartitionReleasedError, ProducerFailedError, TaskCancelledError)


class PartitionState(Enum):
    """States of a result partition."""

    __hash__ = object.__hash__  # Enum's is a function of Python's, called at each look into the table

    PRODUCING = auto()
    FINISHED = auto()
    FAILED = auto()
    RELEASED = auto()
    CANCELLED = auto()


TRANSITIONS: Final[dict[PartitionState, frozenset[PartitionState]]] = {
    PartitionState.PRODUCING: frozenset(PartitionState) - {PartitionState.PRODUCING},
    PartitionState.FINISHED: frozenset({PartitionState.RELEASED, PartitionState.CANCELLED}),
    PartitionState.FAILED: frozenset({PartitionState.RELEASED, PartitionState.CANCELLED}),
    PartitionState.RELEASED: frozenset({PartitionState.CANCELLED}),
    PartitionState.CANCELLED: frozenset(),
}
_GONE: Final = (PartitionState.RELEASED, PartitionState.CANCELLED)


class PartitionLife:
    """The life of a result partition; as a block, one that writes."""

    def __init__(self, identity: ResultPartitionId) -> None:
        self.id = identity
        #: state of the partition, read by any thread; changed by ``move``
        self.state = PartitionState.PRODUCING
        #: True if its rows are whole groups (``Output.say_whole_groups``); set by the producer before the first one
        self.has_whole_groups = False
        self._lock = threading.Lock()

    @property
    def is_gone(self) -> bool:
        """Whether nothing can be read any more: released or cancelled."""
        return self.state in _GONE

    def move(self, state: PartitionState) -> bool:
        """Go to another state; False where the table does not allow it, and nothing has changed."""
        with self._lock:
            can_be = state in TRANSITIONS[self.state]
            if can_be:
                self.state = state
            return can_be

    def finish(self) -> None:
        """End production, or raise why that cannot be."""
        if not self.move(PartitionState.FINISHED):
            self.check_producing()

    def check_producing(self) -> None:
        """Raise what keeps the producer from writing: cancelled, released, failed or finished."""
        if self.state is PartitionState.PRODUCING:
            return
        if self.state is PartitionState.CANCELLED:
            raise TaskCancelledError(f"partition {self.id} was cancelled")
        if self.state is PartitionState.RELEASED:
            raise PartitionReleasedError(f"partition {self.id} was released and cannot be written")
        raise IllegalTransitionError(f"partition {self.id} is {self.state.name} and cannot be written")

    def check_readable(self) -> None:
        """Raise PartitionReleasedError when nothing can be read any more."""
        if self.is_gone:
            error = PartitionReleasedError(f"partition {self.id} was released and cannot be read")
            error.partition = self.id
            raise error

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        # An error from below says how the partition ended, if that is the reason. If a consumer of a finished partition
        # has gone before it heard of the end, that is the reason.
        has_ended = kind is not None and issubclass(kind, _ENDED)
        if has_ended and not (kind is PartitionReleasedError and self.state is PartitionState.FINISHED):
            self.check_producing()
