from collections.abc import Callable
from typing import Any

import pyarrow as pa

from engine.graph.operator_descriptor import OperatorDescriptor
from engine.operators.work_ahead import WorkAhead

class Cancellable:
    """An attempt that may be told to end."""

    is_cancelled: bool
    def check_cancelled(self) -> None: ...

class ChainLink:
    """An operator."""

    descriptor: OperatorDescriptor
    context: Any
    output: Any
    @property
    def is_satisfied(self) -> bool: ...

class ChainEnd:
    """The end of a chain."""

    writers: list[Any]
    def process(self, batch: pa.RecordBatch) -> None: ...

class RowMapper(ChainLink):
    """One that makes a batch of each batch."""

    make: Callable[[pa.RecordBatch], pa.RecordBatch]
    made_ahead: WorkAhead[pa.RecordBatch] | None
    may_widen: bool
    def process(self, batch: pa.RecordBatch) -> None: ...
    def is_narrow(self, batch: pa.RecordBatch) -> bool: ...
