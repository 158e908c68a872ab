"""Early columns: what is computed of one side of a join is computed before it, where that side has far fewer rows.

    project substr(name) (sales join items)   ->   project key (sales join (project *, substr(name) as key (items)))

Eighteen thousand names are cut instead of two million, and what comes out of the join carries what was cut and no name.
It goes down as far as there are fewer rows, through joins, filters and projections. Only expressions move that cannot
raise, since rows that find no partner are computed too, and only those that look at text or whose columns no other
expression
needs: to copy a number costs as much as to add one to it. The side is one whose rows come out of the join as they are.

Held by: tests/optimizer/test_early_columns.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from engine.graph.expression import ColumnRef, Expression, NamedExpression, columns_of
from engine.graph.plan import Filter, Join, PlanNode, Project
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import cannot_raise, column_projection, is_trivial, mapping_of, substitute
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.join import PASSES_LEFT, PASSES_RIGHT
from engine.optimizer.rules.projection_pruning import used_columns
from engine.statistics.estimates import Estimates

#: ratio of the side's rows to those of the projection below which it pays
FEWER: Final = 0.5
#: rows below which it does not pay
ROWS_MIN: Final = 20_000.0


class _Step(msgspec.Struct, frozen=True):
    """A node on the way down, and which of its inputs comes next."""

    node: PlanNode
    side: int


class _Place(msgspec.Struct, frozen=True):
    """The place at which an expression is computed: right above ``source``, below all ``steps``."""

    steps: tuple[_Step, ...]
    source: PlanNode
    expression: Expression


def apply(plan: LogicalPlan) -> None:
    """Compute every column of a projection as early as that pays."""
    for listed in plan.order():
        if not isinstance(listed.operator, Project) or all(
            is_trivial(named.expression) for named in listed.operator.expressions
        ):
            continue
        for index in range(len(listed.operator.expressions)):
            _move(plan, plan.node(listed.id), index)


def _move(plan: LogicalPlan, node: PlanNode, index: int) -> None:
    projection = node.operator
    assert isinstance(projection, Project)
    named = projection.expressions[index]
    if is_trivial(named.expression) or named.name not in used_columns(plan)[node.id]:
        return
    if not _is_worth_carrying(plan, node, named.expression):
        return
    place = _place(plan, node, named.expression)
    if place is None:
        return
    column = node.schema.column(named.name)
    passed = [node for step in place.steps for node in (step.node, *map(plan.node, step.node.inputs))]
    taken = {name for each in passed for name in each.schema.names}
    early = column if column.name not in taken else msgspec.structs.replace(column, name=_new_name(column.name, taken))
    _compute(plan, place, early)
    expressions = list(projection.expressions)
    expressions[index] = NamedExpression(named.name, ColumnRef(early.name))
    plan.replace(plan.node(node.id), operator=Project(tuple(expressions)))


def _is_worth_carrying(plan: LogicalPlan, node: PlanNode, expression: Expression) -> bool:
    """Whether an expression looks at text, or is the only one of its projection that uses its columns."""
    assert isinstance(node.operator, Project)
    below = plan.node(node.inputs[0]).schema
    names = set(columns_of(expression))
    if any(not below.column(name).width_is_exact for name in names):
        return True
    uses = Counter(name for each in node.operator.expressions for name in set(columns_of(each.expression)))
    return all(uses[name] == 1 for name in names)


def _place(plan: LogicalPlan, node: PlanNode, expression: Expression) -> _Place | None:
    """Return the lowest place of far fewer rows than the projection has, None when there is none."""
    known: dict[int, Estimates] = {}
    consumers = plan.consumers()
    rows = estimate_below(plan, node, known).rows
    found: _Place | None = None
    steps: list[_Step] = []
    below = plan.node(node.inputs[0])
    while rows >= ROWS_MIN and len(consumers[below.id]) == 1 and below.parallelism is None:
        side = _side(plan, below, expression)
        if side is None:
            break
        if isinstance(below.operator, Project):
            expression = substitute(expression, mapping_of(below.operator.expressions))
        steps.append(_Step(below, side))
        below = plan.node(below.inputs[side])
        if isinstance(steps[-1].node.operator, Join) and cannot_raise(expression, below.schema):
            fewer = estimate_below(plan, below, known).rows
            if fewer <= FEWER * rows:
                found, rows = _Place(tuple(steps), below, expression), fewer
    return found


def _side(plan: LogicalPlan, node: PlanNode, expression: Expression) -> int | None:
    """Return the input of which an expression is computed as well as of a node's result, None for none."""
    names = set(columns_of(expression))
    operator = node.operator
    if isinstance(operator, Filter):
        return 0
    if isinstance(operator, Project):
        mapping = mapping_of(operator.expressions)
        return 0 if all(is_trivial(mapping[name]) for name in names) else None
    if not isinstance(operator, Join) or not names:
        return None
    left, right = (set(plan.node(source).schema.names) for source in node.inputs)
    if names <= left:
        return 0 if operator.how in PASSES_LEFT else None
    return 1 if names <= right - left and operator.how in PASSES_RIGHT else None


def _new_name(name: str, taken: set[str]) -> str:
    return next(each for number in range(2, len(taken) + 3) if (each := f"{name}#{number}") not in taken)


def _compute(plan: LogicalPlan, place: _Place, column: ColumnInfo) -> None:
    """Add a column where it is computed, and let every node above it return it."""
    expressions = (*column_projection(place.source.schema.names), NamedExpression(column.name, place.expression))
    schema = PlanSchema((*place.source.schema.columns, column))
    added = plan.insert(Project(expressions), (place.source.id,), schema, place.source)
    for step in reversed(place.steps):
        node = plan.node(step.node.id)
        inputs = tuple(added.id if side == step.side else source for side, source in enumerate(node.inputs))
        operator = node.operator
        if isinstance(operator, Project):
            operator = Project((*operator.expressions, *column_projection([column.name])))
        added = plan.replace(node, operator=operator, inputs=inputs, schema=_with_column(plan, node, step.side, column))


def _with_column(plan: LogicalPlan, node: PlanNode, side: int, column: ColumnInfo) -> PlanSchema:
    """Return the schema of a node with a column more: behind those of the side that it comes from."""
    columns: Sequence[ColumnInfo] = node.schema.columns
    at = len(columns)
    if isinstance(node.operator, Join) and side == 0:
        left = set(plan.node(node.inputs[0]).schema.names)
        at = sum(1 for each in columns if each.name in left)
    return PlanSchema((*columns[:at], column, *columns[at:]))
