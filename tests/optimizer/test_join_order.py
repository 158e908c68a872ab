"""Join order: the cheapest tree of joins, and the same rows from it."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
from hypothesis import strategies as st

from engine.graph.expression import ColumnRef
from engine.graph.plan import Filter, Join, Plan, PlanNode, Source
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.explain import explain
from engine.optimizer.join_search import (
    EXHAUSTIVE_MAX,
    Condition,
    EqualKeys,
    JoinProblem,
    Relation,
    best_order,
    cost_of,
)
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.interpreter import run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema

VALUES = st.sampled_from([None, 0, 1, 1, 2])
ROWS = st.sampled_from([10, 1000, 1_000_000])


def relations_below(plan: Plan, node: PlanNode) -> set[str]:
    if isinstance(node.operator, Source):
        return set(node.operator.spec.paths)
    return set().union(*(relations_below(plan, plan.node(source)) for source in node.inputs))


def joined_sets(plan: Plan) -> list[set[str]]:
    """What each join has below it, in the order of the plan."""
    return [relations_below(plan, node) for node in plan.nodes if isinstance(node.operator, Join)]


def chain(scale: float = 1.0, **rest: object) -> Plan:
    """A large table with a middle one, then with a tiny one that has the middle one's key."""
    builder = Builder()
    large = builder.source(schema(a="int64", b="int64"), rows=1e6 * scale, path="large")
    middle = builder.source(schema(b2="int64", c="int64"), rows=1e5 * scale, path="middle")
    tiny = builder.source(schema(c2="int64", d="int64"), rows=3, path="tiny")
    first = builder.join(large, middle, left_on="b", right_on="b2", **rest)
    builder.sink(builder.join(first, tiny, left_on="c", right_on="c2"))
    return builder.plan()


def test_small_tables_are_joined_first():
    plan = rewrite(chain())
    assert joined_sets(plan) == [{"middle", "tiny"}, {"large", "middle", "tiny"}]
    (sink,) = plan.sinks
    assert plan.node(sink).schema.names == ("a", "b", "b2", "c", "c2", "d")
    assert rewrite(plan) == plan


def test_joins_of_a_few_rows_are_not_worth_a_search():
    assert joined_sets(rewrite(chain(scale=1e-5))) == [{"large", "middle"}, {"large", "middle", "tiny"}]


def test_explain_says_why():
    text = explain(optimize(chain(), OptimizerSettings(parallelism=2)))
    assert "; order by cost: " in text and " as written" in text


@pytest.mark.parametrize("rest", [{"hint": JoinHint.REPARTITION_HASH_FIRST}, {"name": "mine"}, {"parallelism": 3}])
def test_what_was_said_of_a_join_is_kept(rest):
    assert joined_sets(rewrite(chain(**rest))) == [{"large", "middle"}, {"large", "middle", "tiny"}]


def test_the_order_as_written_stays_where_others_are_no_better():
    builder = Builder()
    sides = [builder.source(schema(**{f"k{index}": "int64"}), rows=1000, path=f"t{index}") for index in range(3)]
    first = builder.join(sides[0], sides[1], left_on="k0", right_on="k1")
    builder.sink(builder.join(first, sides[2], left_on="k1", right_on="k2"))
    assert joined_sets(rewrite(builder.plan())) == [{"t0", "t1"}, {"t0", "t1", "t2"}]


def test_keys_that_are_equal_through_a_third_are_keys():
    """a = b and b = c: a and c are joined first, though nobody wrote that they are equal."""
    builder = Builder()
    few = {"a": ColumnStatistics(distinct_count=1e6)}
    a = builder.source(schema(a="int64", x="int64"), rows=1e6, path="a", columns=few)
    b = builder.source(schema(b="int64", y="int64"), rows=1e6, path="b")
    c = builder.source(schema(c="int64"), rows=10, path="c")
    builder.sink(builder.join(builder.join(a, b, left_on="a", right_on="b"), c, left_on="b", right_on="c"))
    first, _ = joined_sets(rewrite(builder.plan()))
    assert "c" in first


def test_pairs_of_all_rows_are_avoided_where_a_third_table_connects():
    builder = Builder()
    a = builder.source(schema(a="int64"), rows=1000, path="a")
    b = builder.source(schema(b="int64"), rows=1000, path="b")
    both = builder.source(schema(a2="int64", b2="int64"), rows=1000, path="both")
    pairs = builder.join(a, b, how=JoinType.CROSS)
    joined = builder.join(pairs, both, left_on="a", right_on="a2")
    builder.sink(builder.filter(joined, call("equal", "b", "b2")))
    plan = rewrite(builder.plan())
    assert {node.operator.how for node in plan.nodes if isinstance(node.operator, Join)} == {JoinType.INNER}


def test_outer_joins_stay_where_they_are():
    builder = Builder()
    large = builder.source(schema(a="int64", b="int64"), rows=1e6, path="large")
    middle = builder.source(schema(b2="int64", c="int64"), rows=1e5, path="middle")
    tiny = builder.source(schema(c2="int64"), rows=3, path="tiny")
    outer = builder.join(large, middle, left_on="b", right_on="b2", how=JoinType.LEFT)
    builder.sink(builder.join(outer, tiny, left_on="a", right_on="c2"))
    assert joined_sets(rewrite(builder.plan())) == [{"large", "middle"}, {"large", "middle", "tiny"}]


@st.composite
def join_chains(draw: st.DrawFn) -> Plan:
    """Inner and cross joins of three to five tables, with projections, filters and conditions between them."""
    builder = Builder()
    parts = []
    for index in range(draw(st.integers(3, 5))):
        source = builder.source(schema(k="int64", v="int64"), rows=draw(ROWS), path=f"t{index % 2}")
        parts.append(builder.project(source, *((column(f"{n}{index}"), ColumnRef(n)) for n in ("k", "v"))))
    while len(parts) > 1:
        left = parts.pop(draw(st.integers(0, len(parts) - 1)))
        right = parts.pop(draw(st.integers(0, len(parts) - 1)))
        left_key = draw(st.sampled_from(builder.schema(left).names))
        right_key = draw(st.sampled_from(builder.schema(right).names))
        condition = call(draw(st.sampled_from(["equal", "less"])), left_key, right_key)
        kind = draw(st.sampled_from(["keys", "keys", "keys", "coalesced", "condition", "cross"]))
        if kind == "coalesced":
            names = builder.schema(right).names
            shown = [(column(left_key if name == right_key else name), ColumnRef(name)) for name in names]
            pair = builder.join(left, builder.project(right, *shown), on=left_key)
        elif kind == "keys":
            more = condition if draw(st.booleans()) else None
            pair = builder.join(left, right, left_on=left_key, right_on=right_key, condition=more)
        else:
            pair = builder.join(left, right, how=JoinType.CROSS, condition=condition if kind == "condition" else None)
        if draw(st.booleans()):
            one, other = (draw(st.sampled_from(builder.schema(pair).names)) for _ in range(2))
            pair = builder.filter(pair, call(draw(st.sampled_from(["equal", "less"])), one, other))
        if draw(st.booleans()):
            names = draw(st.permutations(builder.schema(pair).names))
            pair = builder.project(pair, *names[: max(1, len(names) - 1)])
        parts.append(pair)
    builder.sink(parts[0])
    return builder.plan()


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    join_chains(),
    st.fixed_dictionaries(
        {
            name: st.lists(st.fixed_dictionaries({"k": VALUES, "v": VALUES}), min_size=1, max_size=4)
            for name in ("t0", "t1")
        }
    ),
)
def test_any_order_returns_the_same_rows(plan, data):
    rewritten = rewrite(plan)
    (expected,), (found,) = run_plan(plan, data), run_plan(rewritten, data)
    names = plan.node(plan.sinks[0]).schema.names
    assert rewritten.node(rewritten.sinks[0]).schema.names == names
    shown = [Counter(tuple(row[name] for name in names) for row in rows) for rows in (expected, found)]
    assert shown[0] == shown[1]
    assert rewrite(rewritten) == rewritten


@st.composite
def problems(draw: st.DrawFn, most: int = 5) -> JoinProblem:
    """Relations that keys connect as a tree, and perhaps once more."""
    count = draw(st.integers(2, most))
    relations = [Relation(draw(ROWS) * 1.0, draw(st.sampled_from([8.0, 100.0]))) for _ in range(count)]
    distinct = st.sampled_from([None, 1.0, 50.0, 1e5])
    keys = []
    for index in range(1, count):
        other = draw(st.integers(0, index - 1))
        keys.append(EqualKeys({index: draw(distinct), other: draw(distinct)}, 1 << index | 1 << other))
    conditions = [Condition(3, 0.1)] if draw(st.booleans()) else []
    return JoinProblem(relations, keys, conditions)


def all_trees(relations: list[int]):
    if len(relations) == 1:
        yield relations[0]
    first, *others = relations
    for bits in range(2 ** len(others) - 1):
        left = [first, *(each for index, each in enumerate(others) if bits >> index & 1)]
        right = [each for each in relations if each not in left]
        for one in all_trees(left):
            for other in all_trees(right):
                yield (one, other)


def bits_of(tree) -> int:
    return 1 << tree if isinstance(tree, int) else bits_of(tree[0]) | bits_of(tree[1])


def is_connected(problem: JoinProblem, tree) -> bool:
    if isinstance(tree, int):
        return True
    sides = [bits_of(side) for side in tree]
    has_key = any(all(keys.relations & side for side in sides) for keys in problem.keys)
    return has_key and all(is_connected(problem, side) for side in tree)


@hypothesis.given(problems())
def test_no_other_tree_costs_less(problem):
    """Of three relations; of more, estimates of a set depend on how it was joined, and one tree of each set is kept."""
    best = best_order(problem)
    assert best is not None
    assert best.cost == pytest.approx(cost_of(problem, best.tree).cost)
    count = len(problem.relations)
    if count <= 3:
        trees = [tree for tree in all_trees(list(range(count))) if is_connected(problem, tree)]
        assert best.cost == pytest.approx(min(cost_of(problem, tree).cost for tree in trees))


@hypothesis.given(problems(EXHAUSTIVE_MAX + 4))
def test_many_relations_are_joined_all(problem):
    best = best_order(problem)
    assert best is not None
    assert best.relations == (1 << len(problem.relations)) - 1


def test_a_filter_of_one_side_keeps_its_share_of_the_other():
    """One order of a hundred joins one item of a hundred, though few orders are left to have keys."""
    items, orders = Relation(4e6, 8), Relation(1e4, 8)
    problem = JoinProblem([items, orders], [EqualKeys({0: 2e5, 1: 1e6}, 3)], [])
    assert cost_of(problem, (0, 1)).rows == pytest.approx(4e4)


def test_several_keys_have_no_more_combinations_than_there_are_rows():
    keys = [EqualKeys({0: 1e5, 1: 1e5}, 3), EqualKeys({0: 1e5, 1: 1e5}, 3)]
    assert cost_of(JoinProblem([Relation(1e6, 8), Relation(1e6, 8)], keys, []), (0, 1)).rows == pytest.approx(1e6)


def test_what_no_key_connects_has_no_order():
    assert best_order(JoinProblem([Relation(1, 8), Relation(1, 8)], [], [])) is None


def test_filters_between_joins_are_met_as_soon_as_they_can_be():
    builder = Builder()
    large = builder.source(schema(a="int64", b="int64"), rows=1e6, path="large")
    middle = builder.source(schema(b2="int64", c="int64"), rows=1e5, path="middle")
    tiny = builder.source(schema(c2="int64", d="int64"), rows=3, path="tiny")
    first = builder.join(large, middle, left_on="b", right_on="b2")
    both = builder.join(first, tiny, left_on="c", right_on="c2")
    builder.sink(builder.filter(both, call("and", call("less", "c", "d"), call("less", "a", lit(5)))))
    plan = rewrite(builder.plan())
    below = [plan.node(node.inputs[0]).operator for node in plan.nodes if isinstance(node.operator, Filter)]
    assert any(isinstance(operator, Source) for operator in below)
