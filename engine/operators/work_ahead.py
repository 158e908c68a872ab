"""WorkAhead: what a thread that reads makes of a batch for the operator behind the source, before the task is there.

    reading thread   batch ─► ahead(batch) ─► kept by batch ───┐
    task             batch ─► operator.process(batch) ─► taken ┴─► the next operator

The batch itself goes through the chain as any: it is counted, and what was made of it is what its operator gives out,
which would else make it now. An operator without state whose results do not depend on what came before has work that
may be done ahead (``Output.ahead``); an error is left to ``process``, which meets it again when the batch has its turn.

Invariant: what is kept holds its batch, so that no other one is taken for it. Thread: any.
Held by: tests/operators/test_work_ahead.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.errors import DataError
from engine.records.arrow_batch import batch_bytes
from engine.records.bounded_batches import BYTES_MIN, ROWS_MIN

if TYPE_CHECKING:
    import pyarrow as pa

#: function that makes what an operator will give out of a batch
Ahead = Callable[["pa.RecordBatch"], None]


Made = TypeVar("Made")


class WorkAhead(Generic[Made]):
    """Results of batches of one operator."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[pa.RecordBatch, Made]] = {}

    def make(
        self: WorkAhead[pa.RecordBatch],
        batch: pa.RecordBatch,
        make: Callable[[pa.RecordBatch], pa.RecordBatch],
        behind: Ahead | None,
    ) -> None:
        """Make a batch of another one, and what the next operator makes of it."""
        try:
            made = make(batch)
        except DataError:
            return
        if behind is not None and made.num_rows:
            behind(made)
        self.keep(batch, made)

    def keep(self, batch: pa.RecordBatch, made: Made) -> None:
        """Hold the result for a batch until it is taken."""
        self._made[id(batch)] = batch, made

    def take(self, batch: pa.RecordBatch) -> Made | None:
        """Return the result for a batch, once; None: there is none."""
        found = self._made.pop(id(batch), None)
        return None if found is None else found[1]


def is_large(batch: pa.RecordBatch) -> bool:
    """Whether a batch is passed on as it is, and not put together with others."""
    return batch.num_rows >= ROWS_MIN or batch_bytes(batch) >= BYTES_MIN
