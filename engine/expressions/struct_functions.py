"""Structs with other fields, and maps as lists of entries and back.

Held by: tests/expressions/test_struct_functions.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.expressions.argument_kinds import type_of_kind
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.list_parts import FlatLists, flat_lists
from engine.expressions.nested_functions import entries_of, list_type, map_of, over_rows
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc


def _names(operand: Operand) -> list[str]:
    """Return the names of the fields of a struct; NoMatchError where one is there twice."""
    data_type = type_of_kind("struct", operand.type) or operand.type
    names = [data_type.field(index).name for index in range(data_type.num_fields)]
    if len(set(names)) < len(names):
        raise NoMatchError(f"a field is there twice: {', '.join(names)}")
    return names


def _known(names: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise NoMatchError(f"there is no field {missing[0]!r}; there are: {', '.join(names)}")


def _of(structs: pa.Array, index: int) -> pa.Array:
    return pc.struct_field(structs, indices=[index])


def _struct(structs: pa.Array, columns: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    """Return structs of columns, null where others are."""
    mask = pc.is_null(structs) if structs.null_count else None
    return pa.StructArray.from_arrays(list(columns), names=list(names), mask=mask)


def bind_with_fields(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the struct with some fields replaced or added; options are their names by position."""
    own = _names(operands[0])
    given = {str(options[str(index)]): index for index in range(len(operands) - 1)}
    names = [*own, *(name for name in given if name not in own)]

    def made(structs: pa.Array, *columns: pa.Array) -> pa.Array:
        parts = [columns[given[name]] if name in given else _of(structs, own.index(name)) for name in names]
        return _struct(structs, parts, names)

    return Binding(over_rows(made), tuple(None for _ in operands))


def bind_rename_fields(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the struct with other names of fields; options are new names by old ones."""
    own = _names(operands[0])
    _known(own, list(options))
    names = [str(options.get(name, name)) for name in own]
    if len(set(names)) < len(names):
        raise NoMatchError(f"a field would be there twice: {', '.join(names)}")
    kernel = of_array(lambda structs: _struct(structs, [_of(structs, at) for at in range(len(own))], names))
    return Binding(kernel, (None,))


def bind_drop(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the struct without some fields; options are their names by position."""
    own, gone = _names(operands[0]), [str(name) for name in options.values()]
    _known(own, gone)
    kept = [at for at, name in enumerate(own) if name not in gone]
    if not kept:
        raise NoMatchError("no field would be left")
    names = [own[at] for at in kept]
    return Binding(of_array(lambda structs: _struct(structs, [_of(structs, at) for at in kept], names)), (None,))


def bind_entries(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the entries of a map as a list of structs with a key and a value."""
    type_of_kind("map", operands[0].type)
    return Binding(of_array(entries_of), (None,))


def bind_map_from_entries(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the map of a list of structs of two fields; a null key, one twice, and a null entry are errors."""
    data_type = list_type(operands[0])
    entry = data_type.value_type
    if not pa.types.is_struct(entry) or entry.num_fields != 2:
        raise NoMatchError(f"entries are structs of a key and a value; these are {entry}")

    def mapped(lists: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        if flat.values.null_count:
            raise pa.ArrowInvalid("an entry of a map is null")
        keys, values = (_of(flat.values, at) for at in (0, 1))
        return map_of(FlatLists(keys, flat.offsets, flat.parents, flat.is_valid), values)

    return Binding(of_array(mapped), (data_type,), can_raise=True)
