"""Compilation of an expression for a schema: names become column positions, functions bind to types.

All that can be known without rows is found here: unknown columns, types that do not fit, malformed patterns. The
type of a call is that of its result over empty arrays. Errors are SchemaErrors that show the expression, the types it
met, and what to do.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.argument_kinds import is_text
from engine.expressions.binding import Binding, Form, NoMatchError, Operand, cast_operand
from engine.expressions.casting import cast_kernel, check_castable
from engine.expressions.common_type import result_type_of
from engine.expressions.conditional import OPEN_ROWS, bind_case, bind_open_rows
from engine.expressions.function_registry import find_function
from engine.expressions.literals import literal_scalar
from engine.expressions.random_numbers import random_numbers, row_places, uuids
from engine.expressions.schema_bridge import type_from_ipc
from engine.expressions.shared_parts import SharedParts
from engine.expressions.text import expression_text
from engine.expressions.text_moments import moments_for_texts
from engine.expressions.time_zones import UnknownZoneError
from engine.graph.expression import (
    Aggregated,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    FromDataSet,
    Literal,
    Over,
    PythonCall,
    columns_of,
)
from engine.graph.function_table import FUNCTION_TABLE
from engine.near_names import near_names
from engine.records.key_types import is_key_type, key_remedy
from engine.records.plain_scalars import no_values
from engine.records.plain_types import is_foreign
from engine.records.stored_types import stored_type

_BOOL: Final = pa.bool_()
#: pairs (function, types of its operands) of conditions that Arrow has evaluated over no rows: filters have thousands
_CONDITIONS: Final[set[tuple[str, tuple[pa.DataType, ...]]]] = set()
_CONDITIONS_MAX: Final = 4096
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError, OverflowError)


def unknown_column(name: str, names: Iterable[str]) -> SchemaError:
    """Return the error for a column that is not there, with the nearest name and all there are."""
    from engine.expressions.lambda_bodies import ELEMENT_ITSELF

    if name == ELEMENT_ITSELF:
        return SchemaError("element() stands in functions of lists, such as col('l').list.transform(element() * 2)")
    known = list(names)
    outer, _, inner = name.partition(".")
    if inner and outer in known:
        field = f"col({outer!r}).field({inner!r})"
        return SchemaError(f"no column {name!r}; a field of {outer!r}, if it is a struct, is {field}")
    same = next((one for one in known if unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", name)), None)
    if same is not None:
        return SchemaError(f"no column {name!a}; {same!a} has the same letters in another form of Unicode")
    near = near_names(name, known)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return SchemaError(f"no column {name!r}{hint} There are: {', '.join(known) or 'none'}")


def compile_operand(expression: Expression, schema: pa.Schema, shared: SharedParts | None = None) -> Operand:
    """Return an expression bound to a schema, or raise SchemaError; ``shared``: with those of its projection."""
    # An expression may be nested deep, and each call here counts.
    key = None if shared is None else shared.key_of(expression)
    if shared is None or key is None:
        return _compile(expression, schema, shared)
    known = shared.known(key)
    return shared.kept(key, _compile(expression, schema, shared)) if known is None else known


def moment_of_no_job(_batch: pa.RecordBatch) -> pa.Scalar:
    """Raise the error of a moment that no plan has put in its place."""
    raise SchemaError("now() is the moment at which a job is submitted; outside of a job it has no value")


def _compile(expression: Expression, schema: pa.Schema, shared: SharedParts | None) -> Operand:
    match expression:
        case ColumnRef(name=name):
            return _compile_column(name, schema)
        case Literal():
            scalar = literal_scalar(expression)
            return Operand(scalar.type, lambda _batch: scalar, constant=scalar)
        case Call(function="rand", options=options):
            return Operand(pa.float64(), random_numbers(int(options.get("seed") or 0)))
        case Call(function="row_place"):
            return Operand(pa.int64(), row_places())
        case Call(function="uuid", options=options):
            return Operand(pa.string(), uuids(int(options.get("seed") or 0)))
        case Call(function="now"):
            return Operand(pa.timestamp("us", "UTC"), moment_of_no_job)
        case Call():
            return _compile_call(expression, schema, shared)
        case Cast():
            return _compile_cast(expression, schema, shared)
        case Case():
            return _compile_case(expression, schema, shared)
        case Over():
            raise SchemaError(
                f"{expression_text(expression)}: a window function stands in select, with_columns and filter only, and "
                "not within another one; make it a column by with_columns(name=...) first"
            )
        case Aggregated():
            raise SchemaError(
                f"{expression_text(expression)} is an aggregate: it stands in group_by(...).agg(name=...), or over a "
                "window: .over(...)"
            )
        case PythonCall():
            raise SchemaError(
                f"{expression_text(expression)}: a Python function stands in select, with_columns and filter only; "
                "make it a column by with_columns(name=...) first"
            )
        case FromDataSet():
            raise SchemaError(
                f"{expression_text(expression)}: a value of a data set stands in select, with_columns and filter only; "
                "make it a column by with_columns(name=...) first"
            )


def column_index(name: str, schema: pa.Schema) -> int:
    """Return the place of a column; SchemaError for one that is not there, or is there twice."""
    try:
        index: int = schema.get_field_index(name)
    except UnicodeEncodeError:  # half of a surrogate pair, which no column's name has (``column_names``)
        index = -1
    if index < 0:
        raise unknown_column(name, schema.names)
    return index


def _compile_column(name: str, schema: pa.Schema) -> Operand:
    index = column_index(name, schema)
    return Operand(
        schema.field(index).type, lambda batch: batch.column(index), form=Form("column", (), {"index": index})
    )


def _described(expressions: Sequence[Expression], operands: Sequence[Operand]) -> str:
    pairs = zip(expressions[:4], operands, strict=False)
    return ", ".join(f"{expression_text(part)} is {operand.type}" for part, operand in pairs)


def _remedies_of_days(call: Call, operands: Sequence[Operand]) -> list[str]:
    """Return the advice about a number that is added to a date or a timestamp."""
    kinds = [one.type for one in operands]
    is_sum = call.function in ("add", "subtract")
    has_moment = any(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in kinds)
    is_of_days = is_sum and has_moment and any(map(pa.types.is_integer, kinds))
    return ["a number of days is datetime.timedelta(days=1), or .dt.add(days=1)"] if is_of_days else []


def _compile_call(call: Call, schema: pa.Schema, shared: SharedParts | None) -> Operand:
    operands = [compile_operand(argument, schema, shared) for argument in call.arguments]
    entry = find_function(call.function, len(operands))
    if call.function not in ("is_null", "is_not_null"):
        _refuse_foreign(call, operands)
    try:
        operands = moments_for_texts(FUNCTION_TABLE[call.function], operands)
        binding = entry.bind(operands, call.options)
        taken = len(binding.argument_types)
        bound = [cast_operand(one, wanted) for one, wanted in zip(operands, binding.argument_types, strict=False)]
        result_type = _result_type(call.function, binding, bound)
    except NoMatchError as error:
        raise SchemaError(f"{expression_text(call)}: {_described(call.arguments, operands)}; {error}") from None
    except _ARROW_ERRORS as error:
        name = call.function.replace("_", " ")
        remedies = [key_remedy(each.type) for each in operands if not is_key_type(each.type)]
        remedies = remedies or _remedies_of_days(call, operands)
        remedy = f": {remedies[0]}" if remedies else f" ({_first_line(error)})"
        raise SchemaError(
            f"{expression_text(call)}: cannot {name}: {_described(call.arguments, operands)}{remedy}"
        ) from None
    kernel, evaluators = binding.kernel, [operand.evaluate for operand in bound]
    can_raise = binding.can_raise or any(operand.can_raise for operand in bound)
    form = Form(call.function, (*bound, *operands[taken:]), call.options)
    if call.function in OPEN_ROWS and any(operand.can_raise for operand in bound[1:]):
        return Operand(result_type, bind_open_rows(call.function, kernel, evaluators), can_raise, form=form)
    return Operand(result_type, lambda batch: kernel(*[part(batch) for part in evaluators]), can_raise, form=form)


def _result_type(function: str, binding: Binding, operands: Sequence[Operand]) -> pa.DataType:
    types = tuple([operand.type for operand in operands])
    if (function, types) in _CONDITIONS:
        return _BOOL
    found = binding.kernel(*[no_values(each) for each in types]).type
    if found == _BOOL and FUNCTION_TABLE[function].result == "bool" and len(_CONDITIONS) < _CONDITIONS_MAX:
        _CONDITIONS.add((function, types))
    return found


def _refuse_foreign(expression: Expression, operands: Sequence[Operand]) -> None:
    """Raise SchemaError for a union: Arrow's kernels end the process where they find one within a struct."""
    for operand in operands:
        if is_foreign(operand.type):
            raise SchemaError(
                f"{expression_text(expression)}: of {operand.type} no values are made; leave it out, or make it of one "
                "type where it comes from"
            )


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _compile_cast(expression: Cast, schema: pa.Schema, shared: SharedParts | None) -> Operand:
    operand = compile_operand(expression.operand, schema, shared)
    target = type_from_ipc(expression.type_ipc)
    if operand.type == target:
        return operand
    try:
        if isinstance(operand.type, pa.UuidType) and is_text(target):
            raise pa.ArrowInvalid("bytes that are no text")
        check_castable(stored_type(operand.type), stored_type(target))
    except _ARROW_ERRORS:
        source = expression_text(expression.operand)
        remedy = f": {key_remedy(operand.type)}" if not is_key_type(operand.type) else ""
        raise SchemaError(f"{source} is {operand.type}, which cannot be cast to {target}{remedy}") from None
    if expression.widens and pa.types.is_integer(operand.type) and pa.types.is_floating(target):
        return cast_operand(operand, target)
    try:
        kernel = cast_kernel(operand.type, target)
    except UnknownZoneError as error:
        raise SchemaError(f"{expression_text(expression)}: {error}") from None
    evaluate = operand.evaluate
    form = Form("cast", (operand,))
    return Operand(target, lambda batch: kernel(evaluate(batch)), can_raise=True, form=form)


def _compile_case(expression: Case, schema: pa.Schema, shared: SharedParts | None) -> Operand:
    conditions = [compile_operand(test, schema, shared) for test, _ in expression.branches]
    for (test, _), condition in zip(expression.branches, conditions, strict=True):
        if not (pa.types.is_boolean(condition.type) or pa.types.is_null(condition.type)):
            raise SchemaError(f"when({expression_text(test)}): a condition is a bool, this is {condition.type}")
    conditions = [cast_operand(condition, pa.bool_()) for condition in conditions]
    parts = [value for _, value in expression.branches]
    values = [compile_operand(value, schema, shared) for value in parts]
    if expression.otherwise is not None:
        parts.append(expression.otherwise)
        values.append(compile_operand(expression.otherwise, schema, shared))
    data_type = result_type_of([value.type for value in values])
    if data_type is None:
        raise SchemaError(
            f"{expression_text(expression)}: the values have no common type: {_described(parts, values)}; cast them"
        )
    _refuse_foreign(expression, values)
    values = [cast_operand(value, data_type) for value in values]
    if expression.otherwise is None:
        nothing = pa.nulls(1, data_type)[0]
        values.append(Operand(data_type, lambda _batch: nothing, constant=nothing))
    branches = list(zip(conditions, values, strict=False))
    columns = [schema.get_field_index(name) for name in columns_of(expression)]
    return bind_case(branches, values[-1], columns)
