"""Which sources are filtered by the keys of a join, and by which columns of theirs."""

from __future__ import annotations

import pytest

from engine.graph.expression import Call, ColumnRef
from engine.graph.operator_descriptor import HashJoinOperator, SourceOperator
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer import runtime_filter_planning
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.runtime_filter_planning import kept_share
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.estimates import Estimates
from tests.optimizer.plan_building import Builder, call, column, lit, schema

FACTS = schema(k="int64", a="int64")
DIMENSION = schema(d="int64", b="int64")
BROADCAST_SECOND = JoinHint.BROADCAST_HASH_SECOND
KEYS = {"k": ColumnStatistics(distinct_count=10_000.0)}


def facts(builder, rows=1e6, **rest):
    return builder.source(FACTS, rows, columns=KEYS, path="facts.parquet", **rest)


def dimension(builder, rows=1000):
    return builder.source(DIMENSION, rows, path="dimension.parquet")


def filters(builder, **settings):
    """(column, keys of the join) for each filter of a source; the joins make what sources apply."""
    nodes = optimize(builder.plan(), OptimizerSettings(parallelism=2, **settings)).nodes
    operators = [node.descriptor.operator for node in nodes]
    made = [each for one in operators if isinstance(one, HashJoinOperator) for each in one.filters]
    applied = [each for one in operators if isinstance(one, SourceOperator) for each in one.filters]
    assert sorted(made, key=str) == sorted(applied, key=str)
    assert all(isinstance(operators[each.join], HashJoinOperator) for each in made)
    return [(each.column, each.key) for each in applied]


def joined(how=JoinType.INNER, hint=BROADCAST_SECOND, probe=facts, build=dimension, **rest):
    builder = Builder()
    left, right = probe(builder), build(builder)
    builder.sink(builder.join(left, right, how=how, hint=hint, left_on="k", right_on="d", **rest))
    return builder


@pytest.mark.parametrize(
    ("how", "hint", "is_filtered"),
    [
        (JoinType.INNER, BROADCAST_SECOND, True),
        (JoinType.SEMI, BROADCAST_SECOND, True),
        (JoinType.LEFT, BROADCAST_SECOND, False),
        (JoinType.ANTI, BROADCAST_SECOND, False),
        (JoinType.INNER, JoinHint.REPARTITION_HASH_SECOND, True),
        (JoinType.RIGHT, JoinHint.REPARTITION_HASH_SECOND, True),
        (JoinType.LEFT, JoinHint.REPARTITION_HASH_SECOND, False),
        (JoinType.FULL, JoinHint.REPARTITION_HASH_SECOND, False),
        (JoinType.INNER, JoinHint.REPARTITION_SORT_MERGE, False),
    ],
)
def test_rows_are_filtered_where_the_join_drops_those_without_match(how, hint, is_filtered):
    assert filters(joined(how, hint)) == ([("k", 0)] if is_filtered else [])


def second_join(how, key="k", hint=BROADCAST_SECOND):
    """A join with a small table of what comes from another one, whose build side has the columns c and f."""
    builder = Builder()
    other = builder.source(schema(c="int64", f="int64"), 900, path="other.parquet")
    first = builder.join(facts(builder), other, how=how, hint=BROADCAST_SECOND, left_on="a", right_on="c")
    builder.sink(builder.join(first, dimension(builder), hint=hint, left_on=key, right_on="d"))
    return builder


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize("hint", [BROADCAST_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_the_probe_side_of_another_join_is_filtered(how, hint):
    assert ("k", 0) in filters(second_join(how, hint=hint))


@pytest.mark.parametrize("hint", [BROADCAST_SECOND, JoinHint.REPARTITION_HASH_SECOND])
def test_the_probe_side_of_another_join_is_filtered_through_what_lies_between(hint):
    builder = Builder()
    other = builder.source(schema(c="int64", f="int64"), 900, path="other.parquet")
    first = builder.join(facts(builder), other, hint=BROADCAST_SECOND, left_on="a", right_on="c")
    kept = builder.filter(first, call("less", "f", lit(3)))
    renamed = builder.project(kept, (column("x"), call("add", "a", "f")), (column("y"), ColumnRef("k")))
    builder.sink(builder.join(renamed, dimension(builder), hint=hint, left_on="y", right_on="d"))
    assert ("k", 0) in filters(builder)


def test_joins_between_pass_filters_on():
    builder = Builder()
    data = facts(builder)
    for number in range(4):
        other = builder.source(schema(**{f"d{number}": "int64"}), 900, path=f"other{number}.parquet")
        data = builder.join(data, other, hint=BROADCAST_SECOND, left_on="k", right_on=f"d{number}")
    builder.sink(data)
    assert [column for column, _ in filters(builder)] == ["k"] * 4
    nodes = optimize(builder.plan(), OptimizerSettings(parallelism=2)).nodes
    joins = [node.descriptor.operator for node in nodes if isinstance(node.descriptor.operator, HashJoinOperator)]
    behind = [[own for join in joins[place + 1 :] for own in join.filters] for place in range(len(joins))]
    assert [list(join.passes) for join in joins] == behind


def test_joins_between_pass_filters_on_to_all_branches_of_a_union():
    builder = Builder()
    branches = [facts(builder), builder.source(FACTS, 1e6, columns=KEYS, path="others.parquet")]
    behind = builder.source(schema(c="int64", f="int64"), 900, path="other.parquet")
    first = builder.join(builder.union(*branches), behind, hint=BROADCAST_SECOND, left_on="a", right_on="c")
    builder.sink(builder.join(first, dimension(builder), hint=BROADCAST_SECOND, left_on="k", right_on="d"))
    assert filters(builder) == [("k", 0)] * 2


def test_numbers_that_are_drawn_for_rows_of_another_join_are_those_of_all_its_rows():
    builder = Builder()
    other = builder.source(schema(c="int64", f="int64"), 900, path="other.parquet")
    first = builder.join(facts(builder), other, hint=BROADCAST_SECOND, left_on="a", right_on="c")
    drawn = builder.project(first, (column("x", "double"), Call("rand", (), {"seed": 1})), "k")
    builder.sink(builder.join(drawn, dimension(builder), hint=BROADCAST_SECOND, left_on="k", right_on="d"))
    assert ("k", 0) not in filters(builder)


def test_columns_of_another_joins_build_side_filter_nothing(monkeypatch):
    monkeypatch.setattr(runtime_filter_planning, "KEPT_SHARE_MAX", 1.0)
    # a is the key of the first join, f of the side that it builds; the second join makes an inner one of the first
    assert filters(second_join(JoinType.INNER, "f")) == filters(second_join(JoinType.LEFT, "f")) == [("a", 0)]
    # the key of a pair is that of the probe side
    assert [column for column, _ in filters(second_join(JoinType.INNER, "c"))] == ["a", "a"]
    assert [column for column, _ in filters(second_join(JoinType.LEFT, "c"))] == ["a", "a"]


def test_null_keys_that_speak_for_others_are_read():
    assert filters(joined(JoinType.ANTI, JoinHint.OPTIMIZER_CHOOSES, null_aware=True)) == []


def test_a_computed_key_is_none_of_the_source():
    builder = Builder()
    computed = builder.project(facts(builder), (column("x"), call("add", "k", "a")))
    builder.sink(builder.join(computed, dimension(builder), hint=BROADCAST_SECOND, left_on="x", right_on="d"))
    assert filters(builder) == []


def test_a_renamed_column_is_filtered_by_the_name_that_it_has_in_the_file():
    builder = Builder()
    kept = builder.filter(facts(builder), call("less", "a", lit(3)))
    renamed = builder.project(kept, (column("x"), call("add", "a", "a")), (column("y"), ColumnRef("k")))
    builder.sink(builder.join(renamed, dimension(builder), hint=BROADCAST_SECOND, left_on="y", right_on="d"))
    assert filters(builder) == [("k", 0)]


def test_numbers_that_are_drawn_for_all_rows_are_those_of_all_rows():
    builder = Builder()
    drawn = builder.project(facts(builder), (column("x", "double"), Call("rand", (), {"seed": 1})), "k")
    builder.sink(builder.join(drawn, dimension(builder), hint=BROADCAST_SECOND, left_on="k", right_on="d"))
    assert filters(builder) == []


@pytest.mark.parametrize(
    ("probe_rows", "build_rows", "is_filtered"),
    [(1e6, 1000, True), (1e6, 4000, True), (1e6, 9000, False), (50_000, 100, False), (3e6, 2.5e6, False)],
)
def test_a_filter_has_to_pay(probe_rows, build_rows, is_filtered):
    builder = joined(
        probe=lambda builder: facts(builder, probe_rows), build=lambda builder: dimension(builder, build_rows)
    )
    assert bool(filters(builder)) is is_filtered


def test_rows_that_others_read_too_are_all_read():
    builder = Builder()
    shared = facts(builder)
    builder.sink(builder.join(shared, dimension(builder), hint=BROADCAST_SECOND, left_on="k", right_on="d"))
    builder.sink(shared)
    assert filters(builder) == []


def test_filters_can_be_switched_off():
    assert filters(joined(), runtime_filters=False) == []


def test_explain_says_which_join_filters_a_source():
    text = explain(optimize(joined().plan(), OptimizerSettings(parallelism=2)))
    assert "run-time filter on k from join [2]" in text


def test_the_share_that_is_kept_is_that_of_all_keys():
    known = {"k": ColumnStatistics(distinct_count=400.0)}
    build, source = Estimates(100, 1, "", known), Estimates(9000, 1, "", known)
    assert kept_share(build, "k", source, "k") == 100 / 400
    assert kept_share(Estimates(100, 1, ""), "k", Estimates(9000, 1, ""), "k") == 1.0
    assert kept_share(Estimates(900, 1, "", known), "k", source, "k") == 1.0


def few_rows(builder):
    """A table of which one row in two is expected to be left, more than pays."""
    return builder.filter(dimension(builder, rows=60_000), call("greater", "b", lit(5)))


@pytest.mark.parametrize(
    ("hint", "rows_max"),
    [(BROADCAST_SECOND, 5000), (JoinHint.REPARTITION_HASH_SECOND, 2500)],  # all rows in each subtask, and a part
)
def test_a_build_side_that_may_be_smaller_than_expected_makes_one_up_to_so_many_rows(hint, rows_max):
    optimized = optimize(joined(hint=hint, build=few_rows).plan(), OptimizerSettings(parallelism=2))
    operators = [node.descriptor.operator for node in optimized.nodes]
    (join,) = [each for each in operators if isinstance(each, HashJoinOperator)]
    assert [(each.column, each.rows_max) for each in join.filters] == [("k", rows_max)]
    condition = f"if none of its subtasks builds more than {rows_max} rows"
    assert f"run-time filter on k from join [2], {condition}" in explain(optimized)
    assert filters(joined(build=lambda builder: dimension(builder, rows=60_000))) == []


@pytest.mark.parametrize(("probe_rows", "is_sure"), [(3e6, True), (1e6, False)])
def test_a_build_side_that_is_small_beside_the_source_always_makes_one(probe_rows, is_sure):
    built = joined(probe=lambda builder: facts(builder, probe_rows), build=few_rows)
    operators = [node.descriptor.operator for node in optimize(built.plan(), OptimizerSettings(parallelism=2)).nodes]
    (join,) = [each for each in operators if isinstance(each, HashJoinOperator)]
    assert [each.rows_max is None for each in join.filters] == [is_sure]
