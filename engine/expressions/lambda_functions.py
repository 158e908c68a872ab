"""Functions of lists whose argument is an expression of an element: transform, filter, reduce; and lists side by side.

    lists ──► all elements, their places, captured values at their lists ──► body ──► lists of results, or those kept

The body (``lambda_bodies``) is evaluated once for all elements of a batch; reduce evaluates it once for each place,
over the lists that have one.

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import type_of_kind
from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options, as_array, cast_operand
from engine.expressions.common_type import common_type
from engine.expressions.compile import compile_operand
from engine.expressions.lambda_bodies import ELEMENT, PLACE, TOTAL, body_of, captured
from engine.expressions.list_parts import bounds_of, flat_lists, lists_of, positions, running_total
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_INT64: Final = pa.int64()
#: times that the result of reduce may change the type of its total
_MOST_TYPES: Final = 3


def _list_type(operand: Operand) -> pa.DataType:
    return type_of_kind("list", operand.type) or operand.type


class _Body:
    """A body, compiled over the types of its columns."""

    def __init__(self, options: Options, own: Sequence[tuple[str, pa.DataType]], others: Sequence[Operand]) -> None:
        self._schema = pa.schema([*own, *((captured(number), one.type) for number, one in enumerate(others))])
        self.operand = compile_operand(body_of(str(options["body"])), self._schema)

    def cast(self, data_type: pa.DataType) -> None:
        """Have the results in another type."""
        self.operand = cast_operand(self.operand, data_type)

    def __call__(self, columns: Sequence[pa.Array]) -> pa.Array:
        batch = pa.RecordBatch.from_arrays(list(columns), schema=self._schema)
        return as_array(self.operand.evaluate(batch), batch.num_rows)


def _arrays(data: Sequence[Datum]) -> list[pa.Array]:
    arrays = [each for each in data if not isinstance(each, pa.Scalar)]
    count = len(arrays[0]) if arrays else 1
    return [as_array(each, count) for each in data]


def _rows(data: Sequence[Datum], found: pa.Array) -> Datum:
    return found[0] if all(isinstance(each, pa.Scalar) for each in data) else found


def bind_transform(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the list of what an expression of each element gives."""
    data_type = _list_type(operands[0])
    body = _Body(options, [(ELEMENT, data_type.value_type), (PLACE, _INT64)], operands[1:])
    large = pa.types.is_large_list(data_type)
    made = pa.large_list(body.operand.type) if large else pa.list_(body.operand.type)

    def transformed(*data: Datum) -> Datum:
        lists, *others = _arrays(data)
        flat = flat_lists(lists)
        places = pc.add(flat.places, 1)
        values = body([flat.values, places, *(pc.take(one, flat.parents) for one in others)])
        return _rows(data, lists_of(values, flat.offsets, flat.is_valid, made))

    return Binding(transformed, (data_type, *[None] * (len(operands) - 1)), can_raise=True)


def bind_filter(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind the list of the elements for which a condition is true."""
    data_type = _list_type(operands[0])
    body = _Body(options, [(ELEMENT, data_type.value_type), (PLACE, _INT64)], operands[1:])
    if not pa.types.is_boolean(body.operand.type):
        raise NoMatchError(f"the condition is {body.operand.type}, no bool")

    def filtered(*data: Datum) -> Datum:
        lists, *others = _arrays(data)
        flat = flat_lists(lists)
        places = pc.add(flat.places, 1)
        kept = body([flat.values, places, *(pc.take(one, flat.parents) for one in others)])
        return _rows(data, flat.kept(pc.fill_null(kept, False), data_type))

    return Binding(filtered, (data_type, *[None] * (len(operands) - 1)), can_raise=True)


def bind_reduce(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind what an expression of the total and an element makes of all elements, one after the other.

    The option ``has_initial``: the second operand is the first total; else it is the first element, and null of none.
    """
    data_type = _list_type(operands[0])
    element, has_initial = data_type.value_type, bool(options.get("has_initial"))
    total_type = operands[1].type if has_initial else element
    others = operands[2:] if has_initial else operands[1:]
    for _ in range(_MOST_TYPES):
        body = _Body(options, [(TOTAL, total_type), (ELEMENT, element), (PLACE, _INT64)], others)
        shared = common_type(total_type, body.operand.type)
        if shared is None or shared == total_type:
            break
        total_type = shared
    if shared != total_type:
        raise NoMatchError(f"the total is {total_type}, and becomes {body.operand.type}; cast one of them")
    body.cast(total_type)
    kinds = (data_type, total_type) if has_initial else (data_type,)

    def reduced(*data: Datum) -> Datum:
        lists, *rest = _arrays(data)
        begins, ends = bounds_of(lists)
        lengths = pc.fill_null(pc.if_else(pc.is_valid(lists), pc.subtract(ends, begins), 0), 0)
        values, count = lists.values, len(lists)
        rows = positions(count)
        if has_initial:
            totals, rest, place = pc.if_else(pc.is_valid(lists), rest[0], scalar_of(None, total_type)), rest[1:], 0
        else:
            first = pc.if_else(pc.greater(lengths, 0), begins, scalar_of(None, _INT64))
            totals, place = pc.cast(pc.take(values, first), total_type), 1
        done: list[tuple[pa.Array, pa.Array]] = []
        while len(rows):
            is_open = pc.greater(pc.take(lengths, rows), place)
            done.append((pc.filter(rows, pc.invert(is_open)), pc.filter(totals, pc.invert(is_open))))
            rows, totals = pc.filter(rows, is_open), pc.filter(totals, is_open)
            if len(rows):
                elements = pc.take(values, pc.add(pc.take(begins, rows), place))
                place += 1
                numbers = pa.repeat(scalar_of(place, _INT64), len(rows))
                totals = body([totals, elements, numbers, *(pc.take(one, rows) for one in rest)])
        if not done:
            return pa.nulls(0, total_type)
        order = pc.sort_indices(pa.concat_arrays([one for one, _ in done]))
        return _rows(data, pc.take(pa.concat_arrays([one for _, one in done]), order))

    return Binding(reduced, (*kinds, *[None] * len(others)), can_raise=True)


def bind_zip(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the list of structs of what several lists have at each place, as long as the longest; null is no element."""
    types = tuple(_list_type(operand) for operand in operands)
    names = [f"part{number}" for number in range(len(types))]
    made = pa.list_(pa.struct([pa.field(name, one.value_type) for name, one in zip(names, types, strict=True)]))

    def zipped(*data: Datum) -> Datum:
        columns = _arrays(data)
        bounds = [bounds_of(one) for one in columns]
        lengths = [
            pc.fill_null(pc.if_else(pc.is_valid(one), pc.subtract(ends, begins), 0), 0)
            for one, (begins, ends) in zip(columns, bounds, strict=True)
        ]
        longest = pc.max_element_wise(*lengths) if len(lengths) > 1 else lengths[0]
        offsets = running_total(longest)
        count = offsets[-1].as_py()
        parents = pc.list_parent_indices(pa.LargeListArray.from_arrays(offsets, pa.nulls(count)))
        places = pc.subtract(positions(count), pc.take(offsets, parents))
        parts = []
        for one, (begins, _), own in zip(columns, bounds, lengths, strict=True):
            is_there = pc.less(places, pc.take(own, parents))
            at = pc.if_else(is_there, pc.add(pc.take(begins, parents), places), scalar_of(None, _INT64))
            parts.append(pc.take(one.values, at))
        structs = pa.StructArray.from_arrays(parts, names=names)
        return _rows(data, lists_of(structs, offsets, pa.repeat(scalar_of(True), len(longest)), made))

    return Binding(zipped, types)
