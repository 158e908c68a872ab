"""Lists as sets, and lists in another order: union, intersection, difference, reverse, the position of a value.

    two lists of a row ──► each element as (row, code of its value) ──► those that are among the other list's

A set has each element once, where it was first; null is an element like others, and so is NaN, which equals itself.

Held by: tests/expressions/test_list_sets.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.expressions.argument_kinds import common
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.common_type import common_type
from engine.expressions.list_parts import FlatLists, flat_lists, lists_of, positions
from engine.expressions.nested_functions import Binder, list_type, over_rows, plain_floats
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64 = pa.int64()


def _pairs(flats: Sequence[FlatLists]) -> list[pa.Array]:
    """Return a number for each element of lists, equal where row and value are."""
    values = plain_floats(pa.concat_arrays([flat.values for flat in flats]))
    if pa.types.is_null(values.type):
        codes, most = pa.repeat(scalar_of(0), len(values)), 1
    else:
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        codes, most = pc.cast(encoded.indices, _INT64), len(encoded.dictionary)
    parents = pa.concat_arrays([flat.parents for flat in flats])
    pairs, found, at = pc.add(pc.multiply(parents, most), codes), [], 0
    for flat in flats:
        found.append(pairs.slice(at, len(flat.values)))
        at += len(flat.values)
    return found


def _is_first(pairs: pa.Array) -> pa.Array:
    """Return whether each number is there for the first time."""
    if not len(pairs):
        return pa.nulls(0, pa.bool_())
    return pc.equal(pc.cast(pc.index_in(pairs, value_set=pairs), _INT64), positions(len(pairs)))


def _element(operands: Sequence[Operand], what: str) -> pa.DataType:
    """Return the common type of elements; NoMatchError where it is nested."""
    element = common([Operand(list_type(operand).value_type, operand.evaluate) for operand in operands])
    if pa.types.is_nested(element):
        raise NoMatchError(f"{what} is of lists of plain values; these are lists of {element}")
    return element


def set_of(name: str) -> Binder:
    """Return the binder of union, intersection, difference or symmetric_difference of two lists."""

    def bind(operands: Sequence[Operand], _options: Options) -> Binding:
        data_type = pa.list_(_element(operands, name))

        def found(left: pa.Array, right: pa.Array) -> pa.Array:
            both = flat_lists(left), flat_lists(right)
            ours, theirs = _pairs(both)
            if name in ("intersection", "difference"):
                kept = pc.is_in(ours, value_set=theirs)
                made = both[0].kept(_and_first(ours, kept if name == "intersection" else pc.invert(kept)), data_type)
            else:
                made = _joined(both, (ours, theirs), data_type, is_symmetric=name == "symmetric_difference")
            is_valid = pc.and_(both[0].is_valid, both[1].is_valid)
            return pc.if_else(is_valid, made, scalar_of(None, data_type))

        return Binding(over_rows(found), (data_type, data_type))

    return bind


def _and_first(pairs: pa.Array, mask: pa.Array) -> pa.Array:
    return pc.and_(mask, _is_first(pairs))


def _joined(
    both: Sequence[FlatLists], pairs: Sequence[pa.Array], data_type: pa.DataType, *, is_symmetric: bool
) -> pa.Array:
    """Return the elements of both lists once, the left ones first; symmetric: those that one of them has alone."""
    parents = pa.concat_arrays([flat.parents for flat in both])
    order = pc.sort_indices(parents)
    numbers = pc.take(pa.concat_arrays(pairs), order)
    kept = _is_first(numbers)
    if is_symmetric:
        ours, theirs = pairs
        is_alone = [pc.invert(pc.is_in(ours, value_set=theirs)), pc.invert(pc.is_in(theirs, value_set=ours))]
        kept = pc.and_(kept, pc.take(pa.concat_arrays(is_alone), order))
    values = pc.take(pa.concat_arrays([flat.values for flat in both]), order)
    offsets = pc.add(both[0].offsets, both[1].offsets)
    all_valid = pa.repeat(scalar_of(True), len(both[0].is_valid))
    return FlatLists(values, offsets, pc.take(parents, order), all_valid).kept(kept, data_type)


def bind_reverse(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the elements from the last to the first."""
    data_type = list_type(operands[0])

    def turned(lists: pa.Array) -> pa.Array:
        flat = flat_lists(lists)
        begins, ends = (pc.take(flat.offsets.slice(at), flat.parents) for at in (0, 1))
        mirrored = pc.subtract(pc.add(begins, pc.subtract(ends, 1)), positions(len(flat.values)))
        return lists_of(pc.take(flat.values, mirrored), flat.offsets, flat.is_valid, data_type)

    return Binding(of_array(turned), (data_type,))


def bind_position(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the place, from 0, of the first element that equals a value; null where there is none, nulls are equal."""
    own = list_type(operands[0])
    data_type = common_type(own.value_type, operands[1].type)
    if data_type is None:
        raise NoMatchError("the elements and the value have no common type: cast one")
    if pa.types.is_nested(data_type):
        raise NoMatchError(f"position is of plain values; these are lists of {data_type}")

    def places(lists: pa.Array, values: pa.Array) -> pa.Array:
        flat, count = flat_lists(lists), len(lists)
        elements = flat.values if own.value_type == data_type else pc.cast(flat.values, data_type, safe=False)
        rows = positions(count)
        one_each = FlatLists(values, positions(count + 1), rows, flat.is_valid)
        pairs, wanted = _pairs([FlatLists(elements, flat.offsets, flat.parents, flat.is_valid), one_each])
        at = pc.cast(pc.index_in(wanted, value_set=pairs), _INT64)
        found = pc.subtract(at, pc.take(flat.offsets, rows))
        return pc.if_else(flat.is_valid, found, scalar_of(None, _INT64))

    return Binding(over_rows(places), (own, data_type))
