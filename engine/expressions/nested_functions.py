"""Lists, maps and structs: what makes them, ``.list``, ``.map`` and ``field``.

Functions of elements pass nulls over, as in DuckDB and Polars; of no element at all the sum is null, as of groups.
NaN is the greatest number and equals itself, in ``min``, ``max``, ``sort``, ``distinct`` and ``contains`` as well.
A position is counted from 0, negative from the end; where there is no element it is null.

    lists ──► all elements, with the list of each (list_parts.py) ──► Arrow over elements ──► lists, or a value of each

Held by: tests/expressions/test_nested_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.expressions.argument_kinds import common, is_list, is_text, type_of_kind
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array
from engine.expressions.common_type import common_type, is_number
from engine.expressions.comparison import comparison_of
from engine.expressions.list_parts import FlatLists, element_at, flat_lists, lists_of, positions, running_total
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()
#: sum of floats beyond which overflow is checked exactly
_NEAR_OVERFLOW: Final = 9.0e18

Binder = Callable[[Sequence[Operand], Options], Binding]


def over_rows(function: Callable[..., pa.Array]) -> Callable[..., Datum]:
    """Return a function of arrays of one length as one of constants too."""

    def of_data(*data: Datum) -> Datum:
        arrays = [each for each in data if not isinstance(each, pa.Scalar)]
        count = len(arrays[0]) if arrays else 1
        found = function(*(as_array(each, count) for each in data))
        return found if arrays else found[0]

    return of_data


def list_type(operand: Operand) -> pa.DataType:
    """Return the type of list that an operand is worked on as; NoMatchError where it is none."""
    return type_of_kind("list", operand.type) or operand.type


def bind_array(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the list of some values of each row."""
    data_type = common(operands)
    width = len(operands)

    def listed(*columns: pa.Array) -> pa.Array:
        count = len(columns[0])
        place = positions(count * width)
        row = pc.divide(place, width)
        order = pc.add(pc.multiply(pc.subtract(place, pc.multiply(row, width)), count), row)
        values = pc.take(pa.concat_arrays(columns), order)
        offsets = pc.multiply(positions(count + 1), width)
        return lists_of(values, offsets, pa.repeat(scalar_of(True), count), pa.list_(data_type))

    return Binding(over_rows(listed), (data_type,) * width)


def bind_struct(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the struct of some values of each row; options are the names by position."""
    names = [str(options[str(index)]) for index in range(len(operands))]

    def composed(*columns: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays(columns, names=names)

    return Binding(over_rows(composed), tuple(None for _ in operands))


def bind_field(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a field of a struct by its name; null where the struct is."""
    data_type, name = type_of_kind("struct", operands[0].type) or operands[0].type, str(options.get("name"))
    if data_type.get_field_index(name) < 0:
        names = ", ".join(data_type.field(index).name for index in range(data_type.num_fields))
        raise NoMatchError(f"there is no field {name!r}, or several; there are: {names}")
    index = data_type.get_field_index(name)
    return Binding(lambda structs: pc.struct_field(structs, indices=[index]), (None,))


def bind_map_from(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the map of a list of keys and a list of values; a null key, one twice, and two lengths are errors."""
    key_type, value_type = (list_type(operand) for operand in operands)

    def mapped(keys: pa.Array, values: pa.Array) -> pa.Array:
        is_valid = pc.and_(pc.is_valid(keys), pc.is_valid(values))
        nothing = scalar_of(None, _INT64)
        sizes = [pc.if_else(is_valid, pc.cast(pc.list_value_length(each), _INT64), nothing) for each in (keys, values)]
        if pc.any(pc.not_equal(*sizes)).as_py():
            raise pa.ArrowInvalid("there are not as many values as keys")
        flat_keys, flat_values = (
            flat_lists(pc.if_else(is_valid, each, pa.nulls(1, each.type)[0])) for each in (keys, values)
        )
        return map_of(flat_keys, flat_values.values)

    return Binding(over_rows(mapped), (key_type, value_type), can_raise=True)


def map_of(keys: FlatLists, values: pa.Array) -> pa.Array:
    """Return maps of keys and values; ArrowInvalid for a key that is null, or that a map has twice."""
    if keys.values.null_count:
        raise pa.ArrowInvalid("a key of a map is null")
    _check_keys(keys)
    offsets = keys.offsets
    if not pc.all(keys.is_valid).as_py():
        # an offset that is null makes a null map
        marks = pa.concat_arrays([keys.is_valid, pa.repeat(scalar_of(True), 1)])
        offsets = pc.if_else(marks, offsets, scalar_of(None, _INT64))
    return pa.MapArray.from_arrays(pc.cast(offsets, pa.int32()), keys.values, values)


def _check_keys(keys: FlatLists) -> None:
    """Raise ArrowInvalid for a key that a map has twice. Nested keys are not looked at."""
    count = len(keys.values)
    if count < 2 or pa.types.is_nested(keys.values.type):
        return
    codes = pc.cast(pc.dictionary_encode(keys.values).indices, _INT64)
    pairs = pc.add(pc.multiply(keys.parents, count), codes)
    is_second = pc.not_equal(pc.cast(pc.index_in(pairs, value_set=pairs), _INT64), positions(count))
    if pc.any(is_second).as_py():
        raise pa.ArrowInvalid(f"a map has the key {keys.values[pc.index(is_second, True).as_py()].as_py()!r} twice")


def bind_length(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the number of elements, nulls among them."""
    return Binding(lambda lists: pc.cast(pc.list_value_length(lists), _INT64), (list_type(operands[0]),))


def bind_get(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the element at a position."""
    index = type_of_kind("integer", operands[1].type) or operands[1].type
    return Binding(over_rows(element_at), (list_type(operands[0]), index))


def bind_slice(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind Python's ``value[start:stop]`` of each list."""
    start, stop = options.get("start"), options.get("stop")
    data_type = list_type(operands[0])

    def sliced(lists: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        lengths = pc.subtract(flat.offsets.slice(1), flat.offsets.slice(0, len(lists)))
        bounds = [_bound(start, 0, lengths), _bound(stop, None, lengths)]
        begins, ends = (pc.take(bound, flat.parents) for bound in bounds)
        places = flat.places
        return flat.kept(pc.and_(pc.greater_equal(places, begins), pc.less(places, ends)), data_type)

    return Binding(of_array(sliced), (data_type,))


def _bound(given: Any, default: int | None, lengths: pa.Array) -> pa.Array:
    if given is None:
        return lengths if default is None else pc.multiply(lengths, 0)
    if given >= 0:
        return pa.repeat(scalar_of(int(given)), len(lengths))
    return pc.add(lengths, scalar_of(max(int(given), -(2**40))))


def bind_contains(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind whether an element equals a value; null for a null value, false where elements are null."""
    own = list_type(operands[0])
    data_type = common_type(own.value_type, operands[1].type)
    if data_type is None:
        raise NoMatchError("the elements and the value have no common type: cast one")
    equal = comparison_of("equal", data_type) if not pa.types.is_null(data_type) else pc.equal

    def contained(lists: pa.Array, values: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        elements = flat.values if own.value_type == data_type else pc.cast(flat.values, data_type, safe=False)
        found = pc.greater(flat.counts(equal(elements, pc.take(values, flat.parents))), 0)
        return pc.if_else(pc.is_valid(values), found, scalar_of(None, pa.bool_()))

    return Binding(over_rows(contained), (own, data_type))


def _per_list(flat: FlatLists, values: pa.Array, aggregate: str) -> pa.Array:
    """Return an aggregate of the elements of each list; null where there is none."""
    table = pa.table({"list": flat.parents, "value": values})
    found = pa.TableGroupBy(table, "list", use_threads=False).aggregate([("value", aggregate)]).combine_chunks()
    places = pc.index_in(positions(len(flat.is_valid)), value_set=found.column("list").combine_chunks())
    return pc.take(found.column(f"value_{aggregate}").combine_chunks(), places)


def aggregate(name: str) -> Binder:
    """Return the binder of sum, min, max or mean of the elements."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = list_type(operands[0])
        element = data_type.value_type
        if name in ("sum", "mean") and not (is_number(element) or pa.types.is_null(element)):
            raise NoMatchError(f"{name} is of numbers; these are lists of {element}")
        kernel = {"sum": _sums, "mean": _means}.get(name) or (lambda flat: _extremes(flat, name))
        return Binding(of_array(lambda lists: kernel(flat_lists(lists))), (data_type,), can_raise=name == "sum")

    return bind


def _sums(flat: FlatLists) -> pa.Array:
    values = flat.values
    if not pa.types.is_integer(values.type):
        wide = pc.cast(values, pa.float64()) if pa.types.is_floating(values.type) else values
        return _per_list(flat, wide, "sum")
    near = _per_list(flat, pc.cast(values, pa.float64(), safe=False), "sum")
    if pc.any(pc.greater(pc.abs(near), _NEAR_OVERFLOW)).as_py():
        exact = _per_list(flat, pc.cast(values, pa.decimal128(38, 0)), "sum")
        return pc.cast(exact, _INT64)
    return _per_list(flat, pc.cast(values, _INT64), "sum")


def _means(flat: FlatLists) -> pa.Array:
    return _per_list(flat, pc.cast(flat.values, pa.float64(), safe=False), "mean")


def _extremes(flat: FlatLists, name: str) -> pa.Array:
    values = flat.values
    if not pa.types.is_floating(values.type):
        return _per_list(flat, values, name)
    if pa.types.is_float16(values.type):
        values = pc.cast(values, pa.float32())
    is_nan = pc.is_nan(values)
    numbers = pc.if_else(is_nan, scalar_of(None, values.type), values)
    found, nans = _per_list(flat, numbers, name), flat.counts(is_nan)
    takes_nan = pc.greater(nans, 0) if name == "max" else pc.and_(pc.greater(nans, 0), pc.is_null(found))
    return pc.if_else(takes_nan, pa.scalar(float("nan"), values.type), found)


def bind_sort(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the elements in order; options ``descending`` and ``nulls_last``, as of ``DataSet.sort``."""
    data_type = list_type(operands[0])
    if pa.types.is_nested(data_type.value_type):
        raise NoMatchError(f"sort is of values that have an order; these are lists of {data_type.value_type}")
    direction = "descending" if options.get("descending") else "ascending"
    nulls = "ascending" if options.get("nulls_last") else "descending"

    def ordered(lists: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        columns = {"list": flat.parents, "null": pc.cast(pc.is_null(flat.values), pa.int8())}
        keys = [("list", "ascending"), ("null", nulls)]
        if pa.types.is_floating(flat.values.type):
            columns["nan"] = pc.cast(pc.is_nan(flat.values), pa.int8())
            keys.append(("nan", direction))
        columns["value"] = flat.values
        order = pc.sort_indices(pa.table(columns), sort_keys=[*keys, ("value", direction)])
        return lists_of(pc.take(flat.values, order), flat.offsets, flat.is_valid, data_type)

    return Binding(of_array(ordered), (data_type,))


def plain_floats(values: pa.Array) -> pa.Array:
    """Return values with one NaN and one zero, where they are floats."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), pc.add(values, 0.0))


def bind_distinct(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind each different element once, where it is first; null is one of them."""
    data_type = list_type(operands[0])

    def distinct(lists: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        values = plain_floats(flat.values)
        table = pa.table({"list": flat.parents, "value": values, "place": positions(len(values))})
        groups = pa.TableGroupBy(table, ["list", "value"], use_threads=False).aggregate([("place", "min")])
        first = pc.is_in(table.column("place").combine_chunks(), value_set=groups.column("place_min").combine_chunks())
        return flat.kept(first, data_type)

    return Binding(of_array(distinct), (data_type,))


def bind_join(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the texts of a list with the option ``separator`` between them; nulls are passed over."""
    data_type = list_type(operands[0])
    if not (is_text(data_type.value_type) or pa.types.is_null(data_type.value_type)):
        raise NoMatchError(f"join is of texts; these are lists of {data_type.value_type}")
    if pa.types.is_null(data_type.value_type):
        data_type = pa.list_(pa.string())
    separator = scalar_of(options.get("separator") or "", data_type.value_type)

    def joined(lists: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        return pc.binary_join(flat.kept(pc.is_valid(flat.values), data_type), separator)

    return Binding(of_array(joined), (data_type,))


def bind_concat(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the elements of one list followed by those of others; null where one is null."""
    elements = [Operand(list_type(operand).value_type, operand.evaluate) for operand in operands]
    data_type = pa.list_(common(elements))

    def joined(*columns: pa.Array) -> pa.Array:
        flats = [flat_lists(column) for column in columns]
        is_valid, lengths = flats[0].is_valid, None
        for flat in flats:
            own = pc.subtract(flat.offsets.slice(1), flat.offsets.slice(0, len(flat.is_valid)))
            lengths = own if lengths is None else pc.add(lengths, own)
            is_valid = pc.and_(is_valid, flat.is_valid)
        parents = pa.concat_arrays([flat.parents for flat in flats])
        order = pc.filter(pc.sort_indices(parents), pc.take(is_valid, pc.take(parents, pc.sort_indices(parents))))
        values = pc.take(pa.concat_arrays([flat.values for flat in flats]), order)
        return lists_of(values, running_total(pc.if_else(is_valid, lengths, 0)), is_valid, data_type)

    return Binding(over_rows(joined), tuple(data_type for _ in operands))


def bind_flatten(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the elements of the lists in a list; a list that is null has none."""
    data_type = list_type(operands[0])
    if not is_list(data_type.value_type):
        raise NoMatchError(f"flatten is of lists of lists; these are lists of {data_type.value_type}")

    def flattened(lists: pa.Array) -> pa.Array:
        outer = flat_lists(lists)
        inner = flat_lists(outer.values)
        return lists_of(inner.values, pc.take(inner.offsets, outer.offsets), outer.is_valid, found)

    found = pa.list_(data_type.value_type.value_type)
    return Binding(of_array(flattened), (data_type,))


def quantifier(name: str) -> Binder:
    """Return the binder of any or all of a list of bools; nulls are passed over."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = list_type(operands[0])
        if not (pa.types.is_boolean(data_type.value_type) or pa.types.is_null(data_type.value_type)):
            raise NoMatchError(f"{name} is of bools; these are lists of {data_type.value_type}")

        def found(lists: pa.Array) -> pa.Array:
            flat = flat_lists(lists)
            values = pc.cast(flat.values, pa.bool_())
            wanted = values if name == "any" else pc.invert(values)
            some = pc.greater(flat.counts(wanted), 0)
            return some if name == "any" else pc.invert(some)

        return Binding(of_array(found), (data_type,))

    return bind


def bind_map_get(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the value of a constant key, the first one of it; null where there is none."""
    data_type = type_of_kind("map", operands[0].type) or operands[0].type
    key = operands[1].constant
    if key is None or not key.is_valid:
        raise NoMatchError("the key of get is a constant")
    try:
        key = pc.cast(key, data_type.key_type)
    except pa.ArrowInvalid:
        raise NoMatchError(f"the keys are {data_type.key_type}") from None
    try:
        pc.map_lookup(pa.array([[(key.as_py(), None)]], data_type), query_key=key, occurrence="first")
    except pa.ArrowTypeError:
        raise NoMatchError(f"no value is found by keys of {data_type.key_type}") from None
    return Binding(lambda maps, _key: pc.map_lookup(maps, query_key=key, occurrence="first"), (None, None))


def entries_of(maps: pa.Array) -> pa.Array:
    """Return maps as lists of structs with a key and a value."""
    data_type = maps.type
    return pc.cast(maps, pa.list_(pa.struct([("key", data_type.key_type), ("value", data_type.item_type)])))


def map_part(part: str) -> Binder:
    """Return the binder of the keys or the values of a map, as a list."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = type_of_kind("map", operands[0].type) or operands[0].type
        element = data_type.key_type if part == "keys" else data_type.item_type

        def listed(maps: pa.Array) -> pa.Array:
            entries = flat_lists(entries_of(maps))
            values = pc.struct_field(entries.values, indices=[0 if part == "keys" else 1])
            return lists_of(values, entries.offsets, entries.is_valid, pa.list_(element))

        return Binding(of_array(listed), (None,))

    return bind
