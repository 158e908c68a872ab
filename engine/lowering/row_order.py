"""Orders of rows: keys that are computed are columns for as long as rows are sorted; pages are numbered and cut.

    SortBy(keys)             rows ─► project: rows, __key0 ─► Sort ─► project: rows
    Page(count, offset)      the first rows ─► their places ─► row_number by place > offset ─► Sort by place

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from engine.errors import SchemaError
from engine.expressions.column_names import check_columns
from engine.expressions.text import expression_text
from engine.graph.expression import ROW_PLACE, ColumnRef, NamedExpression, OrderedBy, Over
from engine.graph.plan import Filter, Limit, Sort
from engine.graph.said_operators import Page, SortBy
from engine.graph.sort_key import SortKey
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, free_name, project_node
from engine.lowering.terms import call
from engine.lowering.window_nodes import windowed_project
from engine.records.key_types import is_key_type, key_remedy


def sorted_rows(source: LogicalNode, said: SortBy, what: str, computed: LogicalNode) -> LogicalNode:
    """Return rows in order; ``computed``: the source with a column for each key that is an expression."""
    added = iter(computed.schema.names[len(source.schema.names) :])
    keys = [
        SortKey(
            key.expression.name if isinstance(key.expression, ColumnRef) else next(added),
            key.descending,
            key.nulls_last,
        )
        for key in said.keys
    ]
    names = [key.column for key in keys]
    check_columns(names, computed.schema)
    if not names or len(set(names)) < len(names):
        raise SchemaError(f"{what}: no key, or one given twice: {', '.join(names)}")
    for name, key in zip(names, said.keys, strict=True):
        data_type = computed.schema.field(name).type
        if not is_key_type(data_type):
            text = f"column {name!r}" if isinstance(key.expression, ColumnRef) else expression_text(key.expression)
            raise SchemaError(f"{what}: {text} is {data_type}, which has no order: {key_remedy(data_type)}")
    found = LogicalNode(Sort(tuple(keys), limit=said.limit), (computed,), computed.schema)
    return found if computed is source else project_node(found, columns_as_they_are(source.schema.names), "select")


def key_columns(source: LogicalNode, keys: tuple[OrderedBy, ...]) -> list[NamedExpression]:
    """Return all columns, and one for each key that is an expression; none where all keys are columns."""
    added = [
        NamedExpression(free_name(f"__key{place}", source.schema), key.expression)
        for place, key in enumerate(keys)
        if not isinstance(key.expression, ColumnRef)
    ]
    return [*columns_as_they_are(source.schema.names), *added] if added else []


def page(source: LogicalNode, said: Page) -> LogicalNode:
    """Return rows by their place in the order of the input."""
    first = source
    if said.count is not None:
        first = LogicalNode(Limit(said.count + said.offset, is_first=True), (source,), source.schema)
    place, number = ColumnRef(free_name("__place", source.schema)), ColumnRef(free_name("__number", source.schema))
    rows = columns_as_they_are(source.schema.names)
    placed = project_node(first, [*rows, NamedExpression(place.name, ROW_PLACE)], "limit")
    counted = Over("row_number", None, (), (OrderedBy(place),))
    kept = [*columns_as_they_are(placed.schema.names), NamedExpression(number.name, counted)]
    numbered = windowed_project(placed, kept, "limit")
    behind = LogicalNode(Filter(call("greater", number, said.offset)), (numbered,), numbered.schema)
    in_order = LogicalNode(Sort((SortKey(place.name),)), (behind,), behind.schema)
    return project_node(in_order, rows, "limit")
