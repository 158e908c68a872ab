"""Operators as users say them, by Spark: groups with filters, different values and sets of keys; windows; copies.

    GroupBy                           keys, arguments (null where a filter is not true) ─► groupBy or groupingSets
                                      ─► expressions of aggregates
    Project, Filter with windows      a column of Spark for each window function ─► project, filter
    SetOperation of copies            intersectAll, exceptAll

Spark makes one pass where the lowered form has several, such as a union of groups for different values and for each set
of keys. None where Spark does not compute a part as the engine does; the lowered form is translated then.

Held by: tests/dataframes/test_said_nodes.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from engine.dataframes.frame import Frame
from engine.dataframes.native_aggregates import NATIVE
from engine.dataframes.native_windows import native_window
from engine.dataframes.relations import Relations
from engine.expressions.infer import infer_schema
from engine.expressions.schema_bridge import to_arrow_schema, to_column_info
from engine.graph.expression import (
    EXTREMES_OF_CONDITIONS,
    Aggregated,
    ColumnRef,
    Expression,
    NamedExpression,
    Over,
    children_of,
    has_data_set,
    has_python,
    has_window,
    replaced,
)
from engine.graph.plan import Filter, PlanNode, Project, SaidForm
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import GroupBy, SetOperation
from engine.lowering.projections import columns_as_they_are
from engine.lowering.span_aggregates import of_spans

_OF_DIFFERENT: Final = frozenset({"count", "sum", "avg"})


def may_be_native(said: SaidForm) -> bool:
    """Whether Spark has all functions of an operator, for some types at least."""
    match said.operator:
        case GroupBy(outputs=outputs):
            return bool(outputs) and all(map(_is_native, _aggregates(one.expression for one in outputs)))
        case Project(expressions=named):
            return _has_windows_alone([one.expression for one in named])
        case Filter(predicate=predicate):
            return _has_windows_alone([predicate])
        case SetOperation(counts_copies=counts_copies):
            return counts_copies
    return False


def _has_windows_alone(expressions: Sequence[Expression]) -> bool:
    return any(map(has_window, expressions)) and not any(has_python(one) or has_data_set(one) for one in expressions)


def _is_native(one: Aggregated) -> bool:
    function = EXTREMES_OF_CONDITIONS.get(one.function, one.function)
    is_plain = function in NATIVE and len(one.arguments) < 2 and not one.options and not one.order_by
    return is_plain and (not one.distinct or function in _OF_DIFFERENT)


def _aggregates(expressions: Iterator[Expression]) -> Iterator[Aggregated]:
    """Yield the aggregates in expressions."""
    waiting = list(expressions)
    while waiting:
        one = waiting.pop()
        if isinstance(one, Aggregated):
            yield one
        else:
            waiting += children_of(one)


def said_frame(relations: Relations, node: PlanNode, said: SaidForm, frames: Sequence[Frame]) -> Frame | None:
    """Return the rows of a node from those that the user speaks of, in which nothing waits; None where Spark cannot."""
    match said.operator:
        case GroupBy() as groups:
            return _groups(relations, node, groups, frames[0])
        case Project(expressions=named):
            wanted = [one for one in named if one.name in node.schema.names]
            found = _windowed(relations, frames[0], [one.expression for one in wanted])
            if found is None:
                return None
            frame, expressions = found
            made = [NamedExpression(one.name, each) for one, each in zip(wanted, expressions, strict=True)]
            is_same = _are_of(made, frame, to_arrow_schema(node.schema))
            return relations.projected(frame, node, made) if is_same else None
        case Filter(predicate=predicate):
            found = _windowed(relations, frames[0], [predicate])
            return None if found is None else _filtered(relations, node, *found)
        case SetOperation(in_other=in_other):
            return _copies(relations, node, frames, in_other=in_other)
    return None


def _groups(relations: Relations, node: PlanNode, said: GroupBy, frame: Frame) -> Frame | None:
    leaves: list[tuple[str, Aggregated]] = []

    def column(part: Expression) -> Expression | None:
        if not isinstance(part, Aggregated):
            return None
        known = next((name for name, leaf in leaves if leaf == part), None)
        if known is None:
            known = f"__aggregate{len(leaves)}"
            leaves.append((known, part))
        return ColumnRef(known)

    wanted = set(node.schema.names)
    of_numbers = [(one.name, of_spans(one.expression, frame.arrow_schema)) for one in said.outputs]
    outputs = [NamedExpression(name, replaced(each, column)) for name, each in of_numbers if name in wanted]
    if not leaves:
        # what is above may read none of the aggregates: Spark has no groups without any
        leaves.append((_free("__rows", frame), Aggregated("count_all")))
    schema = to_arrow_schema(node.schema)
    number = schema.field(said.grouping_id) if said.grouping_id in schema.names else None
    groups = relations.groups(frame, said.keys, leaves, said.sets, number)
    if groups is None:
        return None
    by_name = {one.name: one for one in outputs}
    named = [by_name.get(name) or NamedExpression(name, ColumnRef(name)) for name in node.schema.names]
    return relations.projected(groups, node, named) if _are_of(named, groups, schema) else None


def _are_of(named: Sequence[NamedExpression], frame: Frame, schema: pa.Schema) -> bool:
    """Whether expressions over a frame have the types of a schema."""
    return bool(infer_schema(named, frame.arrow_schema).types == schema.types)


def _windowed(
    relations: Relations, frame: Frame, expressions: Sequence[Expression]
) -> tuple[Frame, list[Expression]] | None:
    """Return a frame with a column for each window function, and the expressions over it."""
    overs: list[Over] = []
    names: list[str] = []

    def column(part: Expression) -> Expression | None:
        if not isinstance(part, Over):
            return None
        if part not in overs:
            overs.append(part)
            names.append(_free(f"__over{len(overs)}", frame))
        return ColumnRef(names[overs.index(part)])

    found = [replaced(one, column) for one in expressions]
    schema = frame.arrow_schema
    made = [native_window(over, schema, frame.carriers, is_ordered=frame.is_ordered) for over in overs]
    typed = [one for one in made if one is not None]
    if len(typed) < len(overs):
        return None
    own = relations.fragments.new_names(len(overs))
    data = frame.data.withColumns({name: made for name, (made, _) in zip(own, typed, strict=True)})
    types = [to_column_info(pa.field(name, data_type)) for name, (_, data_type) in zip(names, typed, strict=True)]
    base = PlanSchema((*frame.base.columns, *types))
    return Frame(data, base, (*frame.names, *own), (*frame.columns, *own)), found


def _free(name: str, frame: Frame) -> str:
    while name in frame.base.names:
        name = f"_{name}"
    return name


def _filtered(relations: Relations, node: PlanNode, frame: Frame, expressions: Sequence[Expression]) -> Frame:
    (condition,) = expressions
    rows = relations.filter(frame, Filter(condition))
    if rows is None:
        rows = frame.with_waiting(PlanNode(0, Filter(condition), (), frame.base))
        kept = Project(tuple(columns_as_they_are(node.schema.names)))
        return rows.with_waiting(PlanNode(0, kept, (), node.schema))
    return replace(rows, base=node.schema, names=tuple(map(frame.name, node.schema.names)))


def _copies(relations: Relations, node: PlanNode, frames: Sequence[Frame], *, in_other: bool) -> Frame | None:
    """Return the rows of the left that the right has, or has not, as often as their copies say."""
    left, right = frames
    names = node.schema.names
    if any(left.arrow_schema.field(name).type != right.arrow_schema.field(name).type for name in names):
        return None
    sides = [frame.data.select(*frame.columns_of(names)) for frame in frames]
    data = sides[0].intersectAll(sides[1]) if in_other else sides[0].exceptAll(sides[1])
    own = relations.fragments.new_names(len(names))
    return Frame.of(data.toDF(*own), node.schema, own)
