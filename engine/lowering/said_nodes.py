"""Nodes of operators as users say them: lowered at once, and remembered as it was said.

    lowered(GroupBy(...), (rows,))       node: Aggregate, below it the projection of its arguments; said: the GroupBy

A rule is a pure function of an operator and its inputs. It runs when the user says something, so that mistakes are
errors of that call; what it makes is kept, so that nothing is lowered twice.

Held by: tests/lowering/test_said_plans.py
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.graph.expression import NamedExpression, has_data_set, has_python, has_window, is_said
from engine.graph.plan import Filter, Project
from engine.graph.said_operators import Apply, AsofJoinBy, GroupBy, JoinBy, Page, Pivot, SetOperation, SortBy
from engine.lowering.logical_node import LogicalNode, Said
from engine.lowering.projections import columns_as_they_are, project_node

#: operators that have rules
Spoken = Project | Filter | GroupBy | JoinBy | AsofJoinBy | SortBy | Page | SetOperation | Pivot | Apply


def lowered(operator: Spoken, inputs: Sequence[LogicalNode], what: str = "") -> LogicalNode:
    """Return the node of an operator as users say it; ``what``: the call that errors speak of.

    Raises: SchemaError, NotYetSupportedError for what does not fit.
    """
    match operator:
        case Project():
            if not any(is_said(one.expression) for one in operator.expressions):
                return project_node(inputs[0], operator.expressions, what)
            node = _project(operator, inputs, what)
        case Filter():
            if not is_said(operator.predicate):
                return _filtered(operator, inputs[0])
            node = _filter(operator, inputs)
        case GroupBy():
            from engine.lowering.groups import grouped

            node = grouped(inputs[0], operator)
        case JoinBy():
            from engine.lowering.joins import joined

            node = joined(inputs[0], inputs[1], operator)
        case AsofJoinBy():
            from engine.lowering.asof_joins import asof_node

            node = asof_node(inputs[0], inputs[1], operator)
        case SortBy():
            from engine.lowering.row_order import key_columns, sorted_rows

            columns = key_columns(inputs[0], operator.keys)
            keyed = lowered(Project(tuple(columns)), inputs, what) if columns else inputs[0]
            node = sorted_rows(inputs[0], operator, what, keyed)
            if not columns:
                return node
        case Page():
            from engine.lowering.row_order import page

            node = page(inputs[0], operator)
        case SetOperation():
            from engine.lowering.set_operations import matched

            node = matched(inputs[0], inputs[1], operator)
        case Pivot():
            from engine.lowering.pivots import pivoted

            node = pivoted(inputs[0], operator)
        case Apply():
            from engine.lowering.apply import applied

            node = applied(inputs[0], inputs[1], operator)
    return replace(node, said=Said(operator, tuple(inputs)))


def _project(operator: Project, inputs: Sequence[LogicalNode], what: str) -> LogicalNode:
    node, expressions = inputs[0], [one.expression for one in operator.expressions]
    if any(map(has_data_set, expressions)):
        from engine.lowering.data_set_values import with_values

        node, expressions = with_values(inputs, expressions)
    if any(map(has_python, expressions)):
        from engine.lowering.function_columns import with_functions

        node, expressions = with_functions(node, expressions, what)
    names = (one.name for one in operator.expressions)
    named = [NamedExpression(name, expression) for name, expression in zip(names, expressions, strict=True)]
    if not any(map(has_window, expressions)):
        return project_node(node, named, what)
    from engine.lowering.partition_aggregates import partitioned_project

    return partitioned_project(node, named, what)


def _filter(operator: Filter, inputs: Sequence[LogicalNode]) -> LogicalNode:
    """Return the rows for which a predicate is true; what was computed for it is dropped behind it."""
    node, predicate = inputs[0], operator.predicate
    if has_data_set(predicate):
        from engine.lowering.data_set_values import filtered_by_membership, with_values

        node, rest = filtered_by_membership(inputs, predicate)
        if rest is None:
            return node
        node, (predicate,) = with_values((node, *inputs[1:]), [rest])
    if has_python(predicate):
        from engine.lowering.function_columns import with_functions

        node, (predicate,) = with_functions(node, [predicate], "filter")
    if has_window(predicate):
        from engine.lowering.partition_aggregates import partitioned_filter

        node = partitioned_filter(node, predicate)
    else:
        node = _filtered(Filter(predicate), node)
    names = inputs[0].schema.names
    return node if node.schema.names == names else project_node(node, columns_as_they_are(names), "select")


def _filtered(operator: Filter, source: LogicalNode) -> LogicalNode:
    from engine.expressions.infer import check_predicate, with_constants, with_typed_texts

    predicate = with_constants(operator.predicate)
    check_predicate(predicate, source.schema)
    return LogicalNode(Filter(with_typed_texts(predicate, source.schema)), (source,), source.schema)
