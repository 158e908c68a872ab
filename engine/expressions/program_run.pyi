from collections.abc import Callable, Collection

import pyarrow as pa

from engine.expressions.binding import Operand
from engine.expressions.vector_program import VectorProgram
from engine.records.row_mask import Mask

class ProgramRun:
    """A program, and the functions that make its inputs from a batch."""

    inputs: list[Operand]
    has_given_up: bool
    def __init__(self, program: VectorProgram, inputs: list[Operand], places: list[int] | None) -> None: ...
    @property
    def reads_columns(self) -> bool: ...
    def give_up(self) -> None: ...
    def __call__(self, batch: pa.RecordBatch, narrow: Collection[int] = ()) -> list[pa.Array] | None: ...
    def project(
        self,
        batch: pa.RecordBatch,
        narrow: Collection[int],
        targets: list[int],
        passed: list[tuple[int, int]],
        schema_for: Callable[[tuple[bool, ...]], pa.Schema],
    ) -> pa.RecordBatch | None: ...
    def mask(self, batch: pa.RecordBatch, places: list[int] | None = None) -> Mask | None: ...

class Condition:
    """Base of a compiled condition, or any other expression."""

    def __init__(self, program: ProgramRun | None) -> None: ...
    def mask(self, batch: pa.RecordBatch, places: list[int] | None = None) -> Mask: ...

class BatchMaker:
    """Base of a projection."""

    def __init__(
        self,
        chosen: list[int] | None,
        run: ProgramRun | None,
        narrow: Collection[int],
        targets: list[int],
        passed: list[tuple[int, int]],
    ) -> None: ...
    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch: ...
    def schema_for(self, batch: pa.RecordBatch, is_narrow: tuple[bool, ...]) -> pa.Schema: ...
