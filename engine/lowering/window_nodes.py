"""Window functions as operators of the plan: taken out of expressions, which then read columns.

    with_windows(source, expressions, what) -> (node, expressions)

    select(a, sum(x).over(k, order d) / x)       source ─► project: a, x, k, d, and what keys and arguments compute
                                                        ─► Window by k, d: sum(x) over (...)
                                                        ─► project: a, sum(x) over (...) / x

The column of a result is called after its text, which errors of rows and plans show.

Functions with the same partition whose orders do not contradict (one begins with the other) share a Window, so rows are
sorted once for all of them. Others become Windows above: those with fewer partition keys first, since rows that lie
together by some of their keys need not be moved for more of them.

Held by: tests/column_expressions/test_windows.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from msgspec.structs import replace

from engine.errors import SchemaError
from engine.expressions.common_type import DECIMAL_DIGITS_MAX, common_type
from engine.expressions.infer import check_depth, check_predicate, infer_type
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import (
    ROW_PLACE,
    Cast,
    ColumnRef,
    Expression,
    NamedExpression,
    Over,
    children_of,
    has_window,
    with_children,
)
from engine.graph.plan import Filter, Window
from engine.graph.sort_key import SortKey
from engine.graph.window import (
    FRAME_VALUE_FUNCTIONS,
    GROUP,
    RANKING_FUNCTIONS,
    RUNNING_FRAME,
    WHOLE_FRAME,
    WindowCall,
)
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import project_node
from engine.lowering.sorted_parts import quantile_argument
from engine.lowering.span_aggregates import of_spans
from engine.lowering.terms import cast
from engine.lowering.window_distances import frame_distances
from engine.lowering.window_rewrites import is_made_of_others, with_plain_windows
from engine.records.key_types import is_key_type, key_remedy
from engine.window.functions import AGGREGATES, OF_ALL_VALUES, result_type
from engine.window.key_levels import KEYS_MAX

#: aggregates under the names that windows have for them
_RENAMED = {"first": "first_value", "last": "last_value"}
#: aggregates of values that kernels read in their own form
_OF_VALUES = AGGREGATES - {"count"} | {"quantile"}


def with_windows(
    source: LogicalNode, expressions: Sequence[Expression], what: str
) -> tuple[LogicalNode, list[Expression]]:
    """Return a node that has the results of all window functions in expressions, and the expressions over it.

    Raises: SchemaError for a window within a window, keys without an order, and types that do not fit.
    """
    overs: list[Over] = []
    for expression in expressions:
        check_depth(expression)
    expressions = [of_spans(expression, source.schema) for expression in expressions]
    for expression in expressions:
        _collect(expression, overs)
    if any(map(is_made_of_others, overs)):
        source, plain = with_plain_windows(source, expressions, what, windowed_project)
        return with_windows(source, plain, what)
    return _Windows(source, what).add(overs, expressions)


def _collect(expression: Expression, overs: list[Over]) -> None:
    if isinstance(expression, Over):
        for child in children_of(expression):
            if has_window(child):
                raise SchemaError(
                    f"{expression_text(expression)}: a window function within another one; make the inner one a "
                    "column by with_columns(name=...) first"
                )
        if expression not in overs:
            overs.append(expression)
        return
    for child in children_of(expression):
        _collect(child, overs)


def _narrow(value: Expression, data_type: pa.DataType | None) -> tuple[Expression, pa.DataType | None]:
    """Return a decimal as one of 38 digits, which kernels of windows read; where it has more, the job fails with it."""
    if data_type is None or not pa.types.is_decimal256(data_type) or data_type.scale > DECIMAL_DIGITS_MAX:
        return value, data_type
    wanted = pa.decimal128(DECIMAL_DIGITS_MAX, data_type.scale)
    return Cast(value, type_to_ipc(wanted), str(wanted), widens=True), wanted


class _Windows:
    """The Windows above one node."""

    def __init__(self, source: LogicalNode, what: str) -> None:
        self._source = source
        self._what = what
        self._names = set(source.schema.names)
        self._computed: list[NamedExpression] = []
        #: names of the results; a list, since expressions have no hash
        self._columns: list[tuple[Over, str]] = []

    def add(self, overs: Sequence[Over], expressions: Sequence[Expression]) -> tuple[LogicalNode, list[Expression]]:
        """Return the node with their results, and expressions that read these."""
        groups: list[tuple[frozenset[str], list[tuple[Over, WindowCall, tuple[SortKey, ...]]]]] = []
        for over in overs:
            partition, order, call = self._call(over)
            members = next((group for keys, group in groups if keys == partition and _agree(group, order)), None)
            if members is None:
                members = []
                groups.append((partition, members))
            members.append((over, call, order))
        node = self._source
        if self._computed:
            kept = [NamedExpression(name, ColumnRef(name)) for name in node.schema.names]
            node = project_node(node, [*kept, *self._computed], self._what)
        for partition, members in sorted(groups, key=lambda group: len(group[0])):
            node = _window(node, partition, members)
        return node, [self._read(expression) for expression in expressions]

    def _read(self, expression: Expression) -> Expression:
        if isinstance(expression, Over):
            return ColumnRef(next(name for over, name in self._columns if over == expression))
        return with_children(expression, [self._read(child) for child in children_of(expression)])

    def _call(self, over: Over) -> tuple[frozenset[str], tuple[SortKey, ...], WindowCall]:
        text = expression_text(over)
        partition = frozenset(self._key(key, text) for key in over.partition_by)
        order: list[SortKey] = []
        has_distances = (
            over.frame is not None and over.frame.kind == "range" and any((over.frame.start, over.frame.end))
        )
        for key in over.order_by:
            name = self._key(self._with_distances(key.expression) if has_distances else key.expression, text)
            # equal in the partition: there is no order among them
            if name not in partition and name not in [one.column for one in order]:
                order.append(SortKey(name, key.descending, key.nulls_last))
        if len(partition) + len(order) > KEYS_MAX:
            raise SchemaError(f"{text}: {len(partition) + len(order)} keys, at most {KEYS_MAX}")
        function = _RENAMED.get(over.function, over.function)
        value = over.argument
        argument_type = None if value is None else infer_type(value, self._source.schema)
        if value is not None and function in _OF_VALUES:
            if pa.types.is_null(argument_type):
                argument_type = pa.int64()  # as in a group
                value = Cast(value, type_to_ipc(argument_type), "int64")
            value, argument_type = _narrow(value, argument_type)
        try:
            if function == "quantile" and value is not None and argument_type is not None:
                argument_type = quantile_argument(argument_type)
                value = cast(value, argument_type, widens=True)
            result_type(function, argument_type)
        except SchemaError as error:
            raise SchemaError(f"{text}: {error}") from None
        argument = None if value is None else self._column(value)
        name = self._free(text)
        self._columns.append((over, name))
        has_frame = function in FRAME_VALUE_FUNCTIONS | AGGREGATES | OF_ALL_VALUES or function == "count_all"
        frame = None
        if has_frame:
            frame = over.frame or (RUNNING_FRAME if over.order_by else WHOLE_FRAME)
            frame = frame_distances(frame, over, self._source.schema)
            if not order and frame.kind == "range" and (frame.start or frame.end):
                # all rows of a partition have the same order key, at no distance from each other
                if float(frame.start or 0) > 0 or float(frame.end or 0) < 0:
                    raise SchemaError(f"{text}: all rows of a partition have the same order key, none another distance")
                frame = replace(WHOLE_FRAME, exclude=frame.exclude, part=frame.part)
        default_type = pa.bool_() if function == "list" else argument_type
        default = None if over.default is None else self._default(over.default, default_type, text)
        uses_peers = function in RANKING_FUNCTIONS or (
            frame is not None and (frame.kind == "range" or frame.exclude == GROUP)
        )
        call = WindowCall(
            function, argument, name, frame, len(order) if uses_peers else 0, over.count, default, over.factor
        )
        return partition, tuple(order), call

    def _key(self, expression: Expression, text: str) -> str:
        if expression == ROW_PLACE:
            # a projection of its own computes it, once for each row
            return self._column(expression)
        data_type = infer_type(expression, self._source.schema)
        if not is_key_type(data_type):
            raise SchemaError(
                f"{text}: {expression_text(expression)} is {data_type}, which cannot be a key: {key_remedy(data_type)}"
            )
        return self._column(expression)

    def _with_distances(self, key: Expression) -> Expression:
        """Return a key as what kernels measure distances in."""
        return _narrow(key, infer_type(key, self._source.schema))[0]

    def _default(self, expression: Expression, wanted: pa.DataType | None, text: str) -> str:
        assert wanted is not None, "lag and lead have an argument"
        found = infer_type(expression, self._source.schema)
        if found != wanted:
            if common_type(found, wanted) is None and not pa.types.is_null(found):
                raise SchemaError(f"{text}: the default is {found}, the values are {wanted}")
            expression = Cast(expression, type_to_ipc(wanted), str(wanted), widens=True)
        return self._column(expression)

    def _column(self, expression: Expression) -> str:
        """Return the name of a column with the values of an expression."""
        if isinstance(expression, ColumnRef):
            return expression.name
        known = next((one.name for one in self._computed if one.expression == expression), None)
        if known is None:
            known = self._free(expression_text(expression))
            self._computed.append(NamedExpression(known, expression))
        return known

    def _free(self, text: str) -> str:
        """Return a name for a column, which errors and plans show: the text of what it is, unless a column has it."""
        while text in self._names:
            text = f"_{text}"
        self._names.add(text)
        return text


def _agree(members: Sequence[tuple[Over, WindowCall, tuple[SortKey, ...]]], order: tuple[SortKey, ...]) -> bool:
    """Whether an order begins with each of the others, or they with it."""
    return all(order[: len(other)] == other[: len(order)] for _, _, other in members)


def _window(
    source: LogicalNode,
    partition: frozenset[str],
    members: Sequence[tuple[Over, WindowCall, tuple[SortKey, ...]]],
) -> LogicalNode:
    names = tuple(name for name in source.schema.names if name in partition)
    order = max((order for _, _, order in members), key=len)
    calls = tuple(call for _, call, _ in members)
    fields = list(source.schema)
    for call in calls:
        argument = None if call.argument is None else source.schema.field(call.argument).type
        fields.append(pa.field(call.name, result_type(call.function, argument)))
    return LogicalNode(Window(names, order, calls), (source,), pa.schema(fields))


def windowed_project(source: LogicalNode, named: Sequence[NamedExpression], what: str) -> LogicalNode:
    """Return a projection of a node whose columns have window functions in them."""
    node, expressions = with_windows(source, [one.expression for one in named], what)
    return project_node(
        node, [replace(one, expression=expression) for one, expression in zip(named, expressions, strict=True)], what
    )


def windowed_filter(source: LogicalNode, predicate: Expression) -> LogicalNode:
    """Return the rows of a node for which a condition with window functions in it is true."""
    node, (condition,) = with_windows(source, [predicate], "filter")
    check_predicate(condition, node.schema)
    kept = [NamedExpression(name, ColumnRef(name)) for name in source.schema.names]
    return project_node(LogicalNode(Filter(condition), (node,), node.schema), kept, "filter")
