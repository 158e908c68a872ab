"""ProgramBuilder: translates bound operands into a program of native steps.

    build_program(operands, lowerings) -> BatchProgram, positions    one program for all operands that have steps
    program(batch) -> [Array, ...]                                   None: ask each operand's own ``evaluate``

    operand ──form──► lowering by its function (program_numbers.py, program_logic.py) ──► steps over registers
        └─ has no lowering ─► Arrow evaluates it; its result is an input of the program, as a column is

Types are settled before: operands come with the casts that binding asked for, so that lowering only names steps. A
step is known by what it computes from what: asked for twice, it is computed once, in all expressions of a projection.

Where ``when`` must not evaluate a branch for all rows, since a value could fail in it, its steps get a guard. What
Arrow evaluates knows no guard: such a ``when`` is Arrow's as a whole.

Held by: tests/expressions/test_program_builder.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import msgspec
import pyarrow as pa

from engine.expressions.binding import UNFIT, Operand
from engine.expressions.program_run import ProgramRun
from engine.expressions.vector_program import VectorProgram
from engine.records.narrow_decimals import is_wide_decimal

#: steps that may fail for a value; they get a guard
_CHECKED_STEPS = frozenset(
    {"add", "subtract", "multiply", "floor_divide", "modulo", "year", "month", "day", "require", "fits"}
)
_SMALL_INTEGERS = frozenset({pa.uint8(), pa.uint16(), pa.uint32()})
_NO_ROWS = pa.RecordBatch.from_arrays([], names=[])
_TEXTS = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})
#: steps for which a program pays
_GAINING_STEPS = frozenset(
    {"floor_divide", "modulo", "multiply", "year", "month", "day", "contains", "like", "line_like"}
)
#: steps that Arrow's functions are as fast as: the batch need not be opened for Arrow, nor the flags be taken from it
_COMPARING_STEPS = frozenset({"equal", "not_equal", "less", "less_equal"})
#: limits of registers and of steps of one program; each has room for a block
_REGISTERS_MAX = 500


class NoStepsError(Exception):
    """No native steps exist for an operand: Arrow evaluates it."""


class Register(msgspec.Struct, frozen=True):
    """The register of a step's result."""

    index: int
    #: kind of the register: bits, integer, decimal, float, text (see ``vector_program``)
    kind: str


def kind_of(data_type: pa.DataType) -> str | None:
    """Return the kind of register that holds a type, None where none does."""
    types = pa.types
    if types.is_boolean(data_type):
        return "bits"
    if types.is_signed_integer(data_type) or data_type in _SMALL_INTEGERS:
        return "integer"
    if types.is_date(data_type) or types.is_time(data_type):
        return "integer"
    if types.is_timestamp(data_type) or types.is_duration(data_type):
        return "integer"
    if types.is_decimal(data_type):
        return "decimal"
    if data_type in _TEXTS:
        return "text"
    return "float" if data_type in (pa.float32(), pa.float64()) else None


Lowering = Callable[["ProgramBuilder", Operand, "Register | None"], Register]


class ProgramBuilder:
    """A program while it is built."""

    def __init__(self, lowerings: Mapping[str, Lowering]) -> None:
        self._lowerings = lowerings
        self.kinds: list[str] = []
        self.steps: list[tuple[str, int, int, int, int, int]] = []
        self.constants: list[tuple[int, pa.Scalar]] = []
        self.inputs: list[tuple[int, Operand]] = []
        self._known: dict[Any, Register] = {}

    def lower(self, operand: Operand, guard: Register | None) -> Register:
        """Return the register of an operand, from steps where there are some; NoStepsError: it cannot be had."""
        constant = operand.constant if operand.constant is not None else _folded(operand)
        if constant is not None:
            return self.constant(constant)
        form = operand.form
        lowering = None if form is None else self._lowerings.get(form.function)
        if lowering is not None and kind_of(operand.type) is not None and _reads_columns(operand):
            mark = len(self.steps)
            try:
                return lowering(self, operand, guard)
            except NoStepsError:
                self._forget(mark)
        return self._input(operand, kind_of(operand.type), guard)

    def validity(self, operand: Operand, guard: Register | None) -> Register:
        """Return a register that says which rows of an operand of any type are null."""
        if kind_of(operand.type) is not None:
            return self.lower(operand, guard)
        if pa.types.is_null(operand.type) or pa.types.is_union(operand.type):
            raise NoStepsError
        return self._input(operand, "validity", guard)

    def step(
        self,
        name: str,
        kind: str,
        operands: Sequence[Register],
        guard: Register | None = None,
    ) -> Register:
        """Return the register that a step computes from one, two or three others (the third: a condition)."""
        left = operands[0].index
        right = operands[1].index if len(operands) > 1 else left
        third = operands[2].index if len(operands) > 2 else -1
        key = (name, kind, left, right, third)
        asked = guard if name in _CHECKED_STEPS else None
        known = self._known.get(key) or self._known.get((*key, asked))
        if known is not None:
            return known
        target = self._register(kind)
        self.steps.append((name, target.index, left, right, third, -1 if asked is None else asked.index))
        self._known[key if asked is None else (*key, asked)] = target
        return target

    def constant(self, scalar: pa.Scalar) -> Register:
        """Return the register of a constant."""
        kind = kind_of(scalar.type)
        if kind is None or (kind == "decimal" and not _fits_register(scalar)):
            raise NoStepsError
        key = _constant_key(scalar)
        if key not in self._known:
            self._known[key] = self._register(kind)
            self.constants.append((self._known[key].index, scalar))
        return self._known[key]

    def _input(self, operand: Operand, kind: str | None, guard: Register | None) -> Register:
        if kind is None or (guard is not None and operand.can_raise):
            raise NoStepsError
        key = (kind, _key_of(operand))
        if key not in self._known:
            self._known[key] = self._register(kind)
            self.inputs.append((self._known[key].index, operand))
        return self._known[key]

    def _register(self, kind: str) -> Register:
        self.kinds.append(kind)
        return Register(len(self.kinds) - 1, kind)

    def _forget(self, mark: int) -> None:
        """Remove the steps since a mark: an unused one could fail needlessly."""
        taken = {step[1] for step in self.steps[mark:]}
        del self.steps[mark:]
        self._known = {key: register for key, register in self._known.items() if register.index not in taken}


def _reads_columns(operand: Operand) -> bool:
    if operand.constant is not None:
        return False
    form = operand.form
    return form is None or form.function == "column" or any(map(_reads_columns, form.operands))


def column_places(operands: Sequence[Operand]) -> list[int] | None:
    """Return the indexes of the columns that operands are, None where one of them is not just a column."""
    forms = [operand.form for operand in operands]
    if not all(form is not None and form.function == "column" for form in forms):
        return None
    return [cast("int", form.options["index"]) for form in forms if form is not None]


def places_of(operand: Operand) -> set[int] | None:
    """Return the indexes of the columns that an operand reads; None: unknown."""
    if operand.constant is not None:
        return set()
    if operand.form is None:
        return None
    if operand.form.function == "column":
        return {cast("int", operand.form.options["index"])}
    places: set[int] = set()
    for part in operand.form.operands:
        found = places_of(part)
        if found is None:
            return None
        places |= found
    return places


def _folded(operand: Operand) -> pa.Scalar | None:
    """Return the value of an operand of constants only; None where it is none, or fails: that is said with the rows."""
    if _reads_columns(operand):
        return None
    try:
        value = operand.evaluate(_NO_ROWS)
    except UNFIT:
        return None
    return value if isinstance(value, pa.Scalar) else None


def _fits_register(scalar: pa.Scalar) -> bool:
    """Whether a decimal fits into the 128 bits that steps reckon with."""
    if not scalar.is_valid or pa.types.is_decimal128(scalar.type):
        return True
    unscaled = pa.repeat(scalar, 1).buffers()[1].to_pybytes()[: scalar.type.byte_width]
    return int.from_bytes(unscaled, "little", signed=True).bit_length() < 128


def _constant_key(scalar: pa.Scalar) -> tuple[Any, ...]:
    """Return a key that equal constants share: -0.0 is not 0.0 here."""
    buffers = pa.repeat(scalar, 1).buffers() if scalar.is_valid else []
    contents = (None if buffer is None else buffer.to_pybytes() for buffer in buffers)
    return ("constant", str(scalar.type), scalar.is_valid, *contents)


def _key_of(operand: Operand) -> tuple[Any, ...]:
    """Return a key that equal operands share."""
    if operand.constant is not None:
        return _constant_key(operand.constant)
    form = operand.form
    if form is None:
        return ("operand", id(operand))
    options = tuple(sorted(form.options.items()))
    return (form.function, str(operand.type), options, *map(_key_of, form.operands))


class BatchProgram(ProgramRun):
    """A program, and the functions that make its inputs from a batch. Thread: any."""

    def __init__(self, builder: ProgramBuilder, outputs: Sequence[tuple[Register, Operand]]) -> None:
        used = {register for step in builder.steps for register in step[2:]}
        inputs = [(register, operand) for register, operand in builder.inputs if register in used]
        self.step_count = len(builder.steps)
        program = VectorProgram(
            builder.kinds,
            [register for register, _ in inputs],
            builder.constants,
            builder.steps,
            [(register.index, operand.type) for register, operand in outputs],
        )
        operands = [operand for _, operand in inputs]
        super().__init__(program, operands, column_places(operands))

    @cached_property
    def narrow_columns(self) -> frozenset[int]:
        """Indexes of columns that may be narrow decimals: steps read them, and no function of Arrow's does."""
        read, by_arrow = set(), set()
        for operand in self.inputs:
            places = places_of(operand)
            if places is None:
                return frozenset()
            is_column = operand.form is not None and operand.form.function == "column"
            if is_column and is_wide_decimal(operand.type):
                read |= places
            elif not is_column:
                by_arrow |= places
        return frozenset(read - by_arrow)


def _gains(builder: ProgramBuilder) -> bool:
    """Whether a program is as fast as Arrow's functions or faster: a single step is not always so."""
    if len(builder.steps) > 1:
        return True
    ((name, target, left, right, *_),) = builder.steps
    kind = builder.kinds[left]
    if name in _GAINING_STEPS or "decimal" in (builder.kinds[target], kind):
        return True
    if name not in _COMPARING_STEPS or kind == "bits":
        return False
    constants = {index for index, _ in builder.constants}
    return kind != "text" or (name in ("equal", "not_equal") and not constants.isdisjoint((left, right)))


def build_program(
    operands: Sequence[Operand], lowerings: Mapping[str, Lowering]
) -> tuple[BatchProgram | None, list[int]]:
    """Return one program for several operands, and the positions of those that it computes."""
    builder = ProgramBuilder(lowerings)
    outputs: dict[int, tuple[Register, Operand]] = {}
    for position, operand in enumerate(operands):
        try:
            register = builder.lower(operand, None)
        except NoStepsError:
            continue
        if any(step[1] == register.index for step in builder.steps):
            outputs[position] = (register, operand)
    if not builder.inputs or not outputs or len(builder.kinds) > _REGISTERS_MAX or not _gains(builder):
        return None, []
    return BatchProgram(builder, list(outputs.values())), list(outputs)
