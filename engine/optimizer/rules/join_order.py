"""Join order: inner joins that follow each other are done in the order that costs least.

    join(join(a, b), c)  ──►  relations a b c, sets of equal keys, conditions  ──►  search  ──►  join(b, join(a, c))

A tree of inner joins is taken apart as far as their results have no other use, and no hint says how they are to
run (a hint, a name, a parallelism). Projections that only choose and rename, and filters that cannot raise, are part of
it. Columns of two relations that a condition says are equal are keys, and so are keys that are equal through a third;
then what was written as all pairs is none any more. Column names are made different where two relations have the
same, and a projection on top gives the columns as they were.

The order as written stays unless another costs less by a tenth: estimates are no better than that, and the author of
the joins may know. The origin of the top join's estimates, which ``explain`` shows, says what both cost.

Held by: tests/optimizer/test_join_order.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from engine.graph.expression import Call, ColumnRef, Expression, NamedExpression, columns_of, conjunction, conjuncts
from engine.graph.plan import Filter, Join, PlanNode, Project
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import cannot_raise, column_behind, substitute
from engine.optimizer.join_search import (
    Condition,
    EqualKeys,
    Joined,
    JoinProblem,
    Relation,
    Tree,
    best_order,
    cost_of,
    search_cost,
)
from engine.optimizer.key_ranges import values_met
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.projection_pruning import used_columns
from engine.optimizer.selectivity import selectivity
from engine.shown_sizes import size_text
from engine.statistics.estimates import Estimates, row_width

#: share of the cost of the written order below which another order is taken
WORTHWHILE = 0.9
#: limit of nested joins that are reordered; a loop may have built any number
DEPTH_MAX = 64

#: index of a relation, and its column
Place = tuple[int, str]


class JoinTree(msgspec.Struct):
    """Inner joins, taken apart. Columns in ``conditions`` are names of ``places``."""

    relations: list[PlanNode] = msgspec.field(default_factory=list)
    pairs: list[tuple[Place, Place]] = msgspec.field(default_factory=list)
    conditions: list[tuple[Expression, dict[str, Place]]] = msgspec.field(default_factory=list)
    #: filters on keys that follow from filters on equal keys (``equal_keys``)
    implied: list[str] = msgspec.field(default_factory=list)


def apply(plan: LogicalPlan) -> None:
    """Put every tree of inner joins into the order that costs least."""
    consumers = plan.consumers()
    taken: set[int] = set()
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        if node.id in taken:
            continue
        apart = _TakingApart(plan, consumers)
        found = apart.top(node)
        taken |= apart.taken
        if found is not None and len(apart.tree.relations) > 2:
            _reorder(plan, node, apart.tree, *found)


def _is_free_join(node: PlanNode) -> bool:
    join = node.operator
    if not isinstance(join, Join) or join.how not in (JoinType.INNER, JoinType.CROSS):
        return False
    return join.hint is JoinHint.OPTIMIZER_CHOOSES and not node.name and node.parallelism is None


class _TakingApart:
    """The way down from the top; ``taken`` are the joins that belong to the tree."""

    def __init__(self, plan: LogicalPlan, consumers: Mapping[int, list[int]]) -> None:
        self._plan = plan
        self._consumers = consumers
        self.tree = JoinTree()
        self.taken: set[int] = set()

    def top(self, node: PlanNode) -> tuple[dict[str, Place], Tree] | None:
        """Take apart what begins at a join, or at the filter above one; return None where nothing does.

        Else where the columns come from, and the tree as written.
        """
        if _is_free_join(node):
            return self._join(node, 0)
        if isinstance(node.operator, Filter) and not node.name and cannot_raise(node.operator.predicate, node.schema):
            below = self._plan.node(node.inputs[0])
            if self._leads_to_join(below):
                places, tree = self._input(below, 0)
                self._meet(node.operator.predicate, places)
                return places, tree
        return None

    def _join(self, node: PlanNode, depth: int) -> tuple[dict[str, Place], Tree]:
        join = node.operator
        assert isinstance(join, Join)
        self.tree.implied += join.implied
        left, left_tree = self._input(self._plan.node(node.inputs[0]), depth + 1)
        right, right_tree = self._input(self._plan.node(node.inputs[1]), depth + 1)
        for left_key, right_key in zip(join.left_keys, join.right_keys, strict=True):
            self.tree.pairs.append((left[left_key], right[right_key]))
        places = {**right, **left}
        if join.condition is not None:
            self._meet(join.condition, places)
        return places, (left_tree, right_tree)

    def _input(self, node: PlanNode, depth: int) -> tuple[dict[str, Place], Tree]:
        if depth < DEPTH_MAX and self._leads_to_join(node):
            match node.operator:
                case Project(expressions=expressions):
                    below, tree = self._input(self._plan.node(node.inputs[0]), depth)
                    names = {name: column_behind(expressions, name) for name in node.schema.names}
                    return {name: below[behind] for name, behind in names.items() if behind is not None}, tree
                case Filter(predicate=predicate):
                    below, tree = self._input(self._plan.node(node.inputs[0]), depth)
                    self._meet(predicate, below)
                    return below, tree
            self.taken.add(node.id)
            return self._join(node, depth)
        self.tree.relations.append(node)
        index = len(self.tree.relations) - 1
        return {name: (index, name) for name in node.schema.names}, index

    def _meet(self, predicate: Expression, places: dict[str, Place]) -> None:
        """Add a predicate to the tree: equal columns of two relations are keys."""
        for part in conjuncts(predicate):
            match part:
                case Call(function="equal", arguments=(ColumnRef(name=one), ColumnRef(name=other))) if self._is_key(
                    places[one], places[other]
                ):
                    self.tree.pairs.append((places[one], places[other]))
                case _:
                    self.tree.conditions.append((part, places))

    def _is_key(self, one: Place, other: Place) -> bool:
        columns = [self.tree.relations[relation].schema.column(name) for relation, name in (one, other)]
        return one[0] != other[0] and columns[0].ipc == columns[1].ipc and columns[0].is_key_type

    def _leads_to_join(self, node: PlanNode) -> bool:
        """Whether there is nothing but choosing, renaming and filtering between here and a join of the tree."""
        while len(self._consumers[node.id]) == 1 and not node.name and node.parallelism is None:
            operator = node.operator
            if isinstance(operator, Join):
                below = [self._plan.node(source).schema for source in node.inputs]
                pairs = PlanSchema(tuple(column for schema in below for column in schema.columns))
                condition = operator.condition
                return _is_free_join(node) and (condition is None or cannot_raise(condition, pairs))
            if isinstance(operator, Project):
                if not all(isinstance(named.expression, ColumnRef) for named in operator.expressions):
                    return False
            elif not isinstance(operator, Filter) or not cannot_raise(operator.predicate, node.schema):
                return False
            node = self._plan.node(node.inputs[0])
        return False


def _reorder(plan: LogicalPlan, top: PlanNode, tree: JoinTree, places: dict[str, Place], written: Tree) -> None:
    sets = _equal_sets(tree.pairs)
    if any(len({relation for relation, _ in members}) < len(members) for members in sets):
        return  # two columns of one relation are equal: that is a filter, which no key says
    problem = _problem(plan, tree, sets)
    as_written = cost_of(problem, written)
    if as_written.cost <= search_cost(problem):
        return
    best = best_order(problem)
    if best is None or best.cost > as_written.cost * WORTHWHILE:
        return
    _Building(plan, top, tree, sets).build(best, as_written, places)


def _equal_sets(pairs: Sequence[tuple[Place, Place]]) -> list[list[Place]]:
    """Return the sets of columns that pairs make equal, directly or through others."""
    sets: list[list[Place]] = []
    for pair in pairs:
        touched = [members for members in sets if pair[0] in members or pair[1] in members]
        sets = [members for members in sets if members not in touched]
        sets.append(sorted({*pair, *(place for members in touched for place in members)}))
    return sets


def _problem(plan: LogicalPlan, tree: JoinTree, sets: list[list[Place]]) -> JoinProblem:
    known: dict[int, Estimates] = {}
    estimates = [estimate_below(plan, node, known) for node in tree.relations]
    used = used_columns(plan)
    relations = []
    for node, estimate in zip(tree.relations, estimates, strict=True):
        needed = node.schema.select(name for name in node.schema.names if name in used[node.id])
        relations.append(Relation(estimate.rows, row_width(needed, estimate.columns)))
    keys = [
        EqualKeys(_values([(relation, estimates[relation], name) for relation, name in members]), _bits(members))
        for members in sets
    ]
    conditions = []
    for part, places in tree.conditions:
        over = {name: places[name] for name in columns_of(part)}
        columns = {
            name: estimates[relation].columns[column]
            for name, (relation, column) in over.items()
            if column in estimates[relation].columns
        }
        conditions.append(Condition(_bits(list(over.values())), selectivity(part, columns)[0]))
    return JoinProblem(relations, keys, conditions)


def _values(members: Sequence[tuple[int, Estimates, str]]) -> dict[int, float | None]:
    """Return the number of values that equal columns had before rows were filtered (filters leave keys as they are)."""
    known = {relation: estimates.columns.get(name, ColumnStatistics()) for relation, estimates, name in members}
    return {
        relation: values_met(
            known[relation], estimates.rows, [each for other, each in known.items() if other != relation]
        )
        for relation, estimates, _ in members
    }


def _bits(places: Sequence[Place]) -> int:
    found = 0
    for relation, _ in places:
        found |= 1 << relation
    return found


class _Building:
    """The joins anew, in another order, under the id of the top one."""

    def __init__(self, plan: LogicalPlan, top: PlanNode, tree: JoinTree, sets: list[list[Place]]) -> None:
        self._plan = plan
        self._top = top
        self._tree = tree
        self._sets = sets
        names = Counter(name for node in tree.relations for name in node.schema.names)
        self._is_shared = {name for name, count in names.items() if count > 1}
        self._left = [
            (substitute(part, {name: ColumnRef(self._name(place)) for name, place in places.items()}), places, part)
            for part, places in tree.conditions
        ]

    def build(self, best: Joined, written: Joined, places: dict[str, Place]) -> None:
        """Replace the top join."""
        node, _ = self._node(best.tree)
        why = f"order by cost: {size_text(best.cost)} touched, {size_text(written.cost)} as written"
        assert isinstance(node.operator, Join)
        implied = dict.fromkeys(self._tree.implied)
        join = msgspec.structs.replace(node.operator, ordered=why, implied=tuple(implied))
        node = self._plan.replace(node, operator=join)
        restored = tuple(NamedExpression(name, ColumnRef(self._name(places[name]))) for name in self._top.schema.names)
        self._plan.replace(self._top, operator=Project(restored), inputs=(node.id,))

    def _name(self, place: Place) -> str:
        relation, name = place
        return f"__{relation}_{name}" if name in self._is_shared else name

    def _node(self, tree: Tree) -> tuple[PlanNode, int]:
        """Return the node of a tree, and its relations as bits."""
        if isinstance(tree, int):
            return self._relation(tree), 1 << tree
        (left, left_bits), (right, right_bits) = self._node(tree[0]), self._node(tree[1])
        keys = [
            tuple(next(place for place in members if bits >> place[0] & 1) for bits in (left_bits, right_bits))
            for members in self._sets
            if _bits(members) & left_bits and _bits(members) & right_bits
        ]
        both = left_bits | right_bits
        met = [entry for entry in self._left if self._needs(entry) & both == self._needs(entry)]
        self._left = [entry for entry in self._left if entry not in met]
        join = Join(
            JoinType.INNER,
            tuple(self._name(one) for one, _ in keys),
            tuple(self._name(other) for _, other in keys),
            coalesce_keys=False,
            condition=conjunction(condition for condition, _, _ in met) if met else None,
        )
        schema = PlanSchema((*left.schema.columns, *right.schema.columns))
        return self._plan.insert(join, (left.id, right.id), schema, self._top), both

    def _needs(self, entry: tuple[Expression, dict[str, Place], Expression]) -> int:
        _, places, part = entry
        return _bits([places[name] for name in columns_of(part)])

    def _relation(self, index: int) -> PlanNode:
        """Return a relation, its columns renamed where another has one of the same name."""
        node = self._tree.relations[index]
        names = [(column, self._name((index, column.name))) for column in node.schema.columns]
        if all(column.name == name for column, name in names):
            return node
        renamed = tuple(NamedExpression(name, ColumnRef(column.name)) for column, name in names)
        schema = PlanSchema(tuple(msgspec.structs.replace(column, name=name) for column, name in names))
        return self._plan.insert(Project(renamed), (node.id,), schema, node)
