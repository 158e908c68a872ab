"""Columns that a function can see of its row: those it names, if it does nothing else with the row.

    used_columns(lambda row: (row.x, row["y"].upper()), names) -> {"x", "y"}
    used_columns(lambda row: helper(row), names)               -> None: it may use all of them

Only these columns are turned into Python objects, which for a wide row is most of the cost of calling the function.

Read from the function's bytecode, and only where it leaves no doubt: each time the row is loaded, its next instruction
takes an attribute or an item that is a column. Where the row is passed on, unpacked, captured by an inner function,
bound anew, or where the code can look at its own variables (``locals``), nothing is known and None returned. So a new
kind of instruction in a later Python makes functions slower, never wrong.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Collection
from types import CodeType, FunctionType, MethodType
from typing import Any

from engine.functions.row import is_attribute

#: names by which code reads its own variables
_LOOKING_AROUND = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "stack", "breakpoint", "set_trace"}
)
_LOADS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ITEM = frozenset({"BINARY_SUBSCR", "BINARY_OP"})
_NOTHING = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL"})


def used_columns(function: Callable[..., Any], names: Collection[str]) -> frozenset[str] | None:
    """Return the columns that a function of one row uses, or None when it may use all of ``names``."""
    position = 0
    if isinstance(function, MethodType):
        function, position = function.__func__, 1
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    if code.co_argcount <= position or _LOOKING_AROUND & set(code.co_names):
        return None
    return _columns_of(code, code.co_varnames[position], frozenset(names))


def _columns_of(code: CodeType, row: str, names: frozenset[str]) -> frozenset[str] | None:
    used: set[str] = set()
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _NOTHING]
    for index, instruction in enumerate(instructions):
        if not _concerns(instruction.argval, row):
            continue
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST", "KW_NAMES", "LOAD_NAME"):
            continue  # something else of that name
        if instruction.opname not in _LOADS:
            return None
        column = _column_taken(instructions[index + 1 : index + 3])
        if column not in names:
            return None
        used.add(column)
    return frozenset(used)


def _concerns(argument: object, row: str) -> bool:
    return argument == row or (isinstance(argument, tuple) and row in argument)


def _column_taken(following: list[dis.Instruction]) -> str:
    """Return the column that the next instructions take of what was just loaded, or ""."""
    if len(following) == 2:
        first, second = following
        if first.opname in _ATTRIBUTE and is_attribute(first.argval):
            return str(first.argval)
        is_item = second.opname in _ITEM and (second.opname == "BINARY_SUBSCR" or second.argrepr == "[]")
        if first.opname == "LOAD_CONST" and isinstance(first.argval, str) and is_item:
            return first.argval
    return ""
