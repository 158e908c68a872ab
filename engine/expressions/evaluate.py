"""Evaluation over Arrow batches: compile once over a schema, then call for each batch.

    compile_expression(expression, schema) -> CompiledExpression      (batch) -> Array of exactly len(batch)
    compile_predicate(expression, schema)  -> CompiledExpression      the same, of bools
    compile_projection(named, input, output) -> Projection            (batch) -> RecordBatch
    evaluate(expression, batch), project(named, batch, schema)        compile and call at once

What has native steps is computed by one program for all expressions of a projection (``vector_program``); what has
none, and batches for which the program has no result, by Arrow's functions.

Decimals may come in 64 bits in the ``narrow_columns``, which native steps read; for Arrow's functions they are made
wide. A projection gives decimals so where it is asked to (``narrow_decimals``).

What was compiled is kept (``meaning``): a job compiles the same in each subtask, a filter for each file, and a question
that is asked again all of it. The statements of TPC-DS have a thousand of them.

A value that makes an expression fail (an overflow, a division by zero, a cast) raises DataError: it names the
expression and shows the first row that fails, found by halving the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

import pyarrow as pa

from engine.errors import DataError, SchemaError
from engine.expressions.binding import UNFIT, Operand, as_array, cast_operand
from engine.expressions.compile import compile_operand
from engine.expressions.meaning import Meaning
from engine.expressions.program_builder import BatchProgram, build_program, column_places, places_of
from engine.expressions.program_logic import LOGIC_LOWERINGS
from engine.expressions.program_numbers import NUMBER_LOWERINGS
from engine.expressions.program_run import BatchMaker, Condition
from engine.expressions.shared_parts import SharedParts
from engine.expressions.text import expression_text, quotient_of
from engine.graph.expression import Call, Case, Cast, Expression, NamedExpression, children_of, columns_of
from engine.memory.kept_results import KeptResults
from engine.records.narrow_decimals import is_narrow, is_wide_decimal, narrow_type, wide_batch
from engine.records.opened_batch import shown
from engine.records.python_values import shown_value

#: limit of the bytes of what was compiled that is kept, of each kind
_KEPT_BYTES_MAX: Final = 8 << 20
#: bytes in memory of what was compiled: at least, and for each encoded byte of its expressions; measured
_COMPILED_BYTES: Final = 2048
_BYTES_PER_ENCODED: Final = 12
_VALUE_TEXT_MAX = 80
_EXPRESSION: Final = attrgetter("expression")
_NEWLINE = "\n"
#: message of Arrow's about a text that it cannot read
_UNREAD_TEXT = "Failed to parse string"
LOWERINGS = {**NUMBER_LOWERINGS, **LOGIC_LOWERINGS}


class CompiledExpression(Condition):
    """An expression bound to a schema; immutable, usable from any thread."""

    def __init__(
        self, expression: Expression, operand: Operand, schema: pa.Schema, program: BatchProgram | None = None
    ) -> None:
        super().__init__(program)
        self.expression = expression
        self._operand = operand
        self._schema = schema
        self._program = program

    @property
    def has_given_up(self) -> bool:
        """Whether its native steps had no result for values that Arrow has one for."""
        return self._program is not None and self._program.has_given_up

    @property
    def narrow_columns(self) -> frozenset[str]:
        """Columns that may come as narrow decimals."""
        return frozenset() if self._program is None else _names(self._schema, self._program.narrow_columns)

    @property
    def type(self) -> pa.DataType:
        """Type of the result."""
        return self._operand.type

    @property
    def can_raise(self) -> bool:
        """Whether a value may make it fail."""
        return self._operand.can_raise

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values for a batch of the schema; DataError when one cannot be computed."""
        found = None if self._program is None else self._program(batch)
        return self._without_steps(batch) if found is None else found[0]

    def _without_steps(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values of Arrow's functions, where there are no native steps, or these have had no result."""
        if self._program is None:
            return self.by_arrow(batch)
        values = self.by_arrow(wide_batch(batch, self._schema))
        self._program.give_up()
        return values

    def by_arrow(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values as Arrow's functions compute them; DataError when one cannot be computed."""
        batch = shown(batch)
        try:
            return as_array(self._operand.evaluate(batch), batch.num_rows)
        except UNFIT as error:
            raise self._data_error(batch, _reason(error)) from error

    def _data_error(self, batch: pa.RecordBatch, reason: str) -> DataError:
        """Return the error with the first row that fails."""
        first, count = 0, batch.num_rows
        while count > 1:
            half = count // 2
            failure = self._failure(batch.slice(first, half))
            if failure is None:
                first, half = first + half, count - half
                failure = self._failure(batch.slice(first, half))
            if failure is None:
                break
            count, reason = half, failure
        shown = self.expression
        if count == 1:
            shown, reason = self._failing_part(self.expression, batch.slice(first, 1), reason)
        required = _required(shown, reason)
        if required is None:
            text = f"{expression_text(shown)}: {reason.partition(_NEWLINE)[0]}"
        else:
            shown, text = required, reason
        if "timestamp[ns] would result in out of bounds" in text:
            text += " (nanoseconds hold the years 1677 to 2262; cast what is timestamp[ns] to pa.timestamp('us'))"
        if "from timestamp[ns] to timestamp[us" in text and "would lose data" in text:
            text += ' (to drop digits below microseconds, write .dt.truncate("microsecond") before)'
        if count == 1:
            text += f"; in a row with {describe_values(batch.slice(first, 1), columns_of(shown))}"
        return DataError(text)

    def _failing_part(self, whole: Expression, row: pa.RecordBatch, reason: str) -> tuple[Expression, str]:
        """Return the branch of an expression that fails for a row, out of its casts, and the reason."""
        for part in _taken_parts(whole, self._schema, row):
            try:
                compile_operand(part, self._schema).evaluate(row)
            except UNFIT as error:
                return self._failing_part(part, row, _reason(error))
        return whole, reason

    def _failure(self, batch: pa.RecordBatch) -> str | None:
        try:
            self._operand.evaluate(batch)
        except UNFIT as error:
            return _reason(error)
        return None


def _taken_parts(whole: Expression, schema: pa.Schema, row: pa.RecordBatch) -> Iterator[Expression]:
    """Yield the parts of a case or a cast that are computed for a row."""
    if isinstance(whole, Cast):
        yield whole.operand
    if not isinstance(whole, Case) or quotient_of(whole) is not None:
        return
    for condition, value in whole.branches:
        yield condition
        if as_array(compile_operand(condition, schema).evaluate(row), 1)[0].as_py():
            yield value
            return
    if whole.otherwise is not None:
        yield whole.otherwise


def _required(expression: Expression, reason: str) -> Expression | None:
    """Return the part of an expression that requires something and says so in these words."""
    if (
        isinstance(expression, Call)
        and expression.function == "require"
        and expression.options.get("message") == reason
    ):
        return expression
    return next((found for part in children_of(expression) if (found := _required(part, reason)) is not None), None)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return (
            f"{error.object[:_VALUE_TEXT_MAX]!r} is not UTF-8; cast the column to binary, or replace what is not text"
        )
    text = str(error)
    if text.startswith(_UNREAD_TEXT):
        return f"{text.partition(_NEWLINE)[0]}; try_cast gives null for what does not fit"
    return text


def describe_values(row: pa.RecordBatch, names: Iterable[str]) -> str:
    """Return ``name=value`` of some columns of a batch of one row, of bounded length."""
    unique = dict.fromkeys(names)
    parts = []
    for name in unique:
        text = repr(shown_value(row.column(name)[0]))
        parts.append(f"{name}={text if len(text) <= _VALUE_TEXT_MAX else text[:_VALUE_TEXT_MAX] + '...'}")
    return ", ".join(parts) or "no columns"


_Compiled = TypeVar("_Compiled", "CompiledExpression", "_CompiledProjection")


def _compiled(
    meaning: Meaning, kept: KeptResults[Meaning, _Compiled], compile_anew: Callable[[Meaning], _Compiled]
) -> _Compiled:
    """Return the cached compilation of a meaning, or compile it."""
    if meaning.may_be_kept and not (found := kept.of(meaning, partial(compile_anew, meaning))).has_given_up:
        return found
    return compile_anew(meaning)


def compile_expression(expression: Expression, schema: pa.Schema) -> CompiledExpression:
    """Return an expression ready for batches of a schema; SchemaError when it has no meaning there."""
    return _compiled(Meaning((expression,), schema), _kept_expression, _new_expression)


def _new_expression(meaning: Meaning) -> CompiledExpression:
    (expression,) = meaning.expressions
    return _with_program(expression, compile_operand(expression, meaning.schema), meaning.schema)


def _with_program(expression: Expression, operand: Operand, schema: pa.Schema) -> CompiledExpression:
    program, _ = build_program([operand], LOWERINGS)
    return CompiledExpression(expression, operand, schema, program)


def _names(schema: pa.Schema, places: Iterable[int]) -> frozenset[str]:
    return frozenset(schema.names[place] for place in places)


def compile_predicate(expression: Expression, schema: pa.Schema) -> CompiledExpression:
    """Return a condition ready for batches of a schema; SchemaError when it is not a bool."""
    return _compiled(Meaning((expression,), schema), _kept_predicate, _new_predicate)


def _new_predicate(meaning: Meaning) -> CompiledExpression:
    (expression,) = meaning.expressions
    operand = compile_operand(expression, meaning.schema)
    if pa.types.is_null(operand.type):
        operand = cast_operand(operand, pa.bool_())
    if not pa.types.is_boolean(operand.type):
        raise SchemaError(f"{expression_text(expression)} is {operand.type}; a condition must be a bool")
    return _with_program(expression, operand, meaning.schema)


class _CompiledProjection:
    """Expressions of a projection bound to its input; immutable, usable from any thread."""

    def __init__(self, expressions: Sequence[Expression], schema: pa.Schema) -> None:
        self._shared = SharedParts(expressions)
        self._schema = schema
        self._operands = operands = [compile_operand(expression, schema, self._shared) for expression in expressions]
        self.columns = [CompiledExpression(*each, schema) for each in zip(expressions, operands, strict=True)]
        self.types = [operand.type for operand in operands]
        #: steps, and the positions of the results that they compute
        self.program, self.positions = build_program(operands, LOWERINGS)
        #: the indexes of the results, with places of what is just a column, which no step computes
        self._others = [(index, *(column_places([operand]) or (None,))) for index, operand in enumerate(operands)]
        #: indexes of those columns of a batch, None where one of them is not just a column
        self.chosen = column_places(operands)
        #: (index of a result, place) of those that no step computes
        self.passed = [
            (index, place) for index, place in self._others if index not in self.positions and place is not None
        ]
        self.is_native = (
            self.program is not None
            and (self.program.reads_columns or not self._shared.is_needed)  # steps that are the same are one
            and len(self.passed) + len(self.positions) == len(operands)
        )

    @property
    def has_given_up(self) -> bool:
        return self.program is not None and self.program.has_given_up

    def narrow_columns(self, narrow: Collection[int]) -> frozenset[str]:
        """Return the columns that may come as narrow decimals, where some of the result may be."""
        taken = set() if self.program is None else set(self.program.narrow_columns)
        needed: set[int] = set()
        for index, operand in enumerate(self._operands):
            if index in self.positions:
                continue
            places = places_of(operand)
            if places is None:
                return frozenset()
            is_passed_on = operand.form is not None and operand.form.function == "column" and index in narrow
            (taken if is_passed_on and is_wide_decimal(operand.type) else needed).update(places)
        return _names(self._schema, taken - needed)

    def computed_places(self, columns: Collection[int]) -> list[int]:
        """Return the positions of the result's columns among those that steps compute, if they are."""
        return [self.positions.index(column) for column in columns if column in self.positions]

    def result_types(
        self, source: pa.Schema, is_narrow: Sequence[bool], types: Sequence[pa.DataType]
    ) -> list[pa.DataType]:
        """Return the types of the result of native steps, given those of the schema and which outputs are narrow."""
        found = list(types)
        for index, place in self.passed:
            found[index] = source.field(place).type
        for index, narrow in zip(self.positions, is_narrow, strict=True):
            found[index] = narrow_type(found[index]) if narrow else found[index]
        return found

    def __call__(self, batch: pa.RecordBatch, narrow: Collection[int]) -> list[pa.Array]:
        """Return the columns of the result; ``narrow``: places of what steps compute that may be narrow decimals."""
        batch = shown(batch)
        if not self._shared.is_needed:
            return self._computed(batch, narrow)
        with self._shared.values_of(batch):
            return self._computed(batch, narrow)

    def _computed(self, batch: pa.RecordBatch, narrow: Collection[int]) -> list[pa.Array]:
        found = None
        if self.program is not None:
            found = self.program(batch, narrow)
            if found is None:
                batch = wide_batch(batch, self._schema)
        if found is not None and len(found) == len(self.columns):  # in order
            return found
        computed = {} if found is None else dict(zip(self.positions, found, strict=True))
        columns = [computed.get(index) for index in range(len(self.columns))]
        for index, place in self._others:
            if place is not None:
                columns[index] = batch.column(place)
            elif columns[index] is None:
                columns[index] = self.columns[index].by_arrow(batch)
        if self.program is not None and found is None:
            self.program.give_up()
        return columns


def _new_projection(meaning: Meaning) -> _CompiledProjection:
    return _CompiledProjection(meaning.expressions, meaning.schema)


def _size_of(meaning: Meaning, _: CompiledExpression | _CompiledProjection) -> int:
    """Return the size of a compilation, an estimate."""
    return _COMPILED_BYTES + _BYTES_PER_ENCODED * meaning.encoded_bytes


_kept_expression: Final = KeptResults[Meaning, CompiledExpression](_KEPT_BYTES_MAX, _size_of)
_kept_predicate: Final = KeptResults[Meaning, CompiledExpression](_KEPT_BYTES_MAX, _size_of)
_kept_projection: Final = KeptResults[Meaning, _CompiledProjection](_KEPT_BYTES_MAX, _size_of)


def compile_projection(
    named: Sequence[NamedExpression], input_schema: pa.Schema, output_schema: pa.Schema, narrow: Collection[str] = ()
) -> Projection:
    """Return a function from batches of the input schema to batches of the output schema.

    narrow: columns of the output that may be narrow decimals.
    """
    meaning = Meaning(tuple(map(_EXPRESSION, named)), input_schema)
    compiled = _compiled(meaning, _kept_projection, _new_projection)
    for one, data_type, field in zip(named, compiled.types, output_schema, strict=True):
        if data_type != field.type:
            raise SchemaError(f"column {one.name!r} is {data_type}, the output schema has {field.type}")

    return Projection(compiled, output_schema, narrow)


class Projection(BatchMaker):
    """Makes batches of a schema from those of another."""

    def __init__(self, compiled: _CompiledProjection, schema: pa.Schema, narrow: Collection[str]) -> None:
        self._compiled = compiled
        self._output = _Output(schema)
        decimals = [is_wide_decimal(data_type) for data_type in schema.types]
        self._narrow = [index for index, name in enumerate(schema.names) if decimals[index] and name in narrow]
        self._narrow_places = compiled.computed_places(self._narrow)
        run = compiled.program if compiled.is_native else None
        super().__init__(compiled.chosen, run, self._narrow_places, compiled.positions, compiled.passed)

    @property
    def narrow_columns(self) -> frozenset[str]:
        """Columns of the input that may come as narrow decimals."""
        return self._compiled.narrow_columns(self._narrow)

    def _by_arrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._output.batch_of(self._compiled(batch, self._narrow_places))

    def _of_columns(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        return self._output.batch_of(columns)

    def _new_schema(self, source: pa.Schema, is_narrow: tuple[bool, ...]) -> pa.Schema:
        types = self._compiled.result_types(source, is_narrow, self._output.schema.types)
        return self._output.with_types(types)


#: arrays that may have another type than the schema says
_COMPACT: Final = frozenset((pa.DictionaryArray, pa.Decimal64Array))


class _Output:
    """Makes columns batches of a schema; codes of a dictionary that are passed on stay so, and narrow decimals."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        #: schema of the last batch with compact columns: later ones usually have the same types
        self._compact_schema = schema

    def with_types(self, types: Sequence[pa.DataType]) -> pa.Schema:
        """Return the schema with other types, which may be compact ones; pa.ArrowInvalid: others that it has not."""
        for field, data_type in zip(self.schema, types, strict=True):
            if (
                field.type != data_type
                and not pa.types.is_dictionary(data_type)
                and not is_narrow(data_type, field.type)
            ):
                raise pa.ArrowInvalid(f"column {field.name!r} is {data_type}, not {field.type}")
        return _with_types(self.schema, types)

    def batch_of(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """Return columns as a batch."""
        schema = self.schema
        if not _COMPACT.isdisjoint(map(type, columns)):
            schema = self._compact_schema
            if not all(field.type == column.type for field, column in zip(schema, columns, strict=True)):
                schema = self._compact_schema = _with_types(self.schema, [column.type for column in columns])
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _with_types(schema: pa.Schema, types: Sequence[pa.DataType]) -> pa.Schema:
    fields = zip(schema, types, strict=True)
    return pa.schema([field.with_type(data_type) for field, data_type in fields], metadata=schema.metadata)


def evaluate(expression: Expression, batch: pa.RecordBatch) -> pa.Array:
    """Return the values of an expression over one batch."""
    meaning = Meaning((expression,), batch.schema)
    make = partial(_new_expression, meaning)
    # For one batch the program is not written again that had no result for others.
    return (_kept_expression.of(meaning, make) if meaning.may_be_kept else make())(batch)


def project(named: Sequence[NamedExpression], batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return one batch of ``schema`` from expressions over another."""
    return compile_projection(named, batch.schema, schema)(batch)
