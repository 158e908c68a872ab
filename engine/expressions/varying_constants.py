"""Functions whose constants are columns: a pattern, a number of characters, a separator for each row.

    by_value(s, p, function="str_like", varying="1")          str_like(s, pattern) for each pattern that there is
    by_value(s, n, function="str_slice", varying="stop")      the same of an option

    s, p    ab 'a%'    b 'b'    ac 'a%' ──► 'a%': ab, ac ──► true, true ─┐
                                            'b':  b      ──► true       ─┴► true, true, true, in the order of the rows

The function works on the rows of each value as it does where that is a constant, so both mean the same; what it costs
goes by how many values a batch has: LIKE of 8,192 rows takes 0.2 ms with a constant, 0.8 with ten patterns, 17 with a
thousand, which are kept for later batches, and 70 us for each new one. ``varying`` has for each of the last arguments
the position of the function's argument, or the name of its option. Null gives null.

Held by: tests/expressions/test_varying_constants.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.compile import compile_operand
from engine.expressions.literals import make_literal
from engine.graph.expression import Call, ColumnRef, Expression
from engine.records.arrow_functions import pc

#: size of the cache of functions bound to values
_KEPT: Final = 1024
#: values with which a function is bound to learn its type: positions in a text count from 1, groups from 0
_SAMPLE_NUMBERS: Final = (1, 0)

Values = tuple[Any, ...]


def bind_by_value(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the function of the option ``function`` to whatever values its constants have."""
    function = _Function(operands, options)
    result = function.type_for([_is_text(operand.type) for operand in operands[function.fixed_count :]])

    def by_value(*data: Datum) -> Datum:
        length = next((len(one) for one in data if not isinstance(one, pa.Scalar)), None)
        columns = [_plain(as_array(one, 1 if length is None else length)) for one in data]
        found = function.of_columns(columns, result)
        return found[0] if length is None else found

    return Binding(by_value, tuple(None for _ in operands), can_raise=True)


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return True
    if not (pa.types.is_integer(data_type) or pa.types.is_null(data_type)):
        raise NoMatchError("a column in the place of a constant is one of texts or of integers; cast it first")
    return False


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


class _Function:
    """A function over columns, of which some are its constants."""

    def __init__(self, operands: Sequence[Operand], options: Options) -> None:
        self._names = str(options["varying"]).split(",")
        self.fixed_count = len(operands) - len(self._names)
        self._function = str(options["function"])
        self._options = {name: value for name, value in options.items() if name not in ("function", "varying")}
        fixed = operands[: self.fixed_count]
        self._schema = pa.schema([(str(place), operand.type) for place, operand in enumerate(fixed)])
        self._fixed: list[Expression] = [
            ColumnRef(str(place)) if operand.constant is None else make_literal(operand.constant)
            for place, operand in enumerate(fixed)
        ]
        self._bound: Callable[[Values], Operand] = lru_cache(_KEPT)(self._bind)

    def _bind(self, values: Values) -> Operand:
        """Return the function with these values as its constants, over the columns that are none."""
        given = dict(zip(self._names, values, strict=True))
        options = {**self._options, **{name: value for name, value in given.items() if not name.isdigit()}}
        arguments = list(self._fixed)
        for name in sorted((name for name in given if name.isdigit()), key=int):
            arguments.insert(int(name), make_literal(pa.scalar(given[name])))
        return compile_operand(Call(self._function, tuple(arguments), options), self._schema)

    def type_for(self, are_texts: Sequence[bool]) -> pa.DataType:
        """Return the type of the values; NoMatchError where the function has none for columns like these."""
        reason = ""
        for number in _SAMPLE_NUMBERS:
            try:
                return self._bound(tuple("a" if is_text else number for is_text in are_texts)).type
            except SchemaError as error:
                reason = reason or _reason(error)
        raise NoMatchError(f"no column can be a constant of it ({reason})")

    def of_columns(self, columns: Sequence[pa.Array], result: pa.DataType) -> pa.Array:
        """Return the value for each row."""
        length = len(columns[0])
        if not length:
            return pa.nulls(0, result)
        fixed = columns[: self.fixed_count]
        values, numbers = _distinct(columns[self.fixed_count :])
        if len(values) == 1:
            return self._of_value(values[0], fixed, result)
        order = pc.array_sort_indices(numbers)
        runs = pc.run_end_encode(numbers.take(order))
        parts, begin = [], 0
        for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            rows = order.slice(begin, end - begin)
            parts.append(self._of_value(values[value], [column.take(rows) for column in fixed], result))
            begin = end
        # where each row went is the order of the order
        return pa.concat_arrays(parts).take(pc.array_sort_indices(order))

    def _of_value(self, value: Values, fixed: Sequence[pa.Array], result: pa.DataType) -> pa.Array:
        """Return the values of rows that have the same constants."""
        length = len(fixed[0])
        if None in value:
            return pa.nulls(length, result)
        try:
            operand = self._bound(value)
        except SchemaError as error:
            raise pa.ArrowInvalid(_reason(error)) from None
        found = as_array(operand.evaluate(pa.RecordBatch.from_arrays(fixed, schema=self._schema)), length)
        return found if found.type == result else pc.cast(found, result)


def _reason(error: SchemaError) -> str:
    """Return the reason for which a function is not bound, without its operands, whose names are of this module."""
    cause = error.__context__
    return str(cause if isinstance(cause, NoMatchError | pa.ArrowException) else error)


def _distinct(columns: Sequence[pa.Array]) -> tuple[list[Values], pa.Array]:
    """Return the different values of the rows of some columns, and for each row the number of its own."""
    codes, dictionaries = None, []
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        dictionaries.append(encoded.dictionary.to_pylist())
        indices = pc.cast(encoded.indices, pa.int64())
        codes = indices if codes is None else pc.add(pc.multiply(codes, len(dictionaries[-1])), indices)
    distinct = pc.dictionary_encode(codes)
    values = []
    for code in distinct.dictionary.to_pylist():
        value: list[Any] = []
        rest = code
        for dictionary in reversed(dictionaries):
            rest, place = divmod(rest, len(dictionary))
            value.append(dictionary[place])
        values.append(tuple(reversed(value)))
    return values, distinct.indices
