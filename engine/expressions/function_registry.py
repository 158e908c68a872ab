"""The registry of functions: finds a row of the table of functions, and binds it to types.

    find_function(name, argument_count) -> FunctionEntry

The table itself is ``engine.graph.function_table``. A row names where the work is done, and the module that it names
is imported when the function is used for the first time:

    arithmetic.py                + - * / // % and negation
    comparison.py                comparisons, membership, logic with nulls
    conditional_functions.py     coalesce, nullif, least, greatest
    number_functions.py          rounding, signs, bounds
    text_functions.py            .str
    time_functions.py            .dt

Held by: tests/expressions/test_function_table.py
"""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import Any

from engine.errors import SchemaError
from engine.expressions.argument_kinds import bind_by_kinds
from engine.expressions.binding import FunctionEntry
from engine.graph.function_row import FunctionRow
from engine.graph.function_table import FUNCTION_TABLE
from engine.records.arrow_functions import pc


def _binder(row: FunctionRow) -> Any:
    module, name, *arguments = row.kernel.split(":")
    if module == "arrow":
        return partial(bind_by_kinds, row, getattr(pc, name))
    found = getattr(import_module(f"engine.expressions.{module}"), name)
    return found(*arguments) if arguments else found


@cache
def _entry(name: str) -> FunctionEntry:
    row = FUNCTION_TABLE[name]
    return FunctionEntry(name, *row.arity, _binder(row))


def find_function(name: str, argument_count: int) -> FunctionEntry:
    """Return the function of that name; an unknown one or a wrong number of arguments raises SchemaError."""
    row = FUNCTION_TABLE.get(name)
    if row is None:
        raise SchemaError(f"there is no function {name!r}")
    least, most = row.arity
    if argument_count < least or (most is not None and argument_count > most):
        wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        raise SchemaError(f"{name} takes {wanted} arguments, not {argument_count}")
    return _entry(name)
