"""Data sets: schemas are known at once, mistakes are reported where they are made, plans hold just what is needed."""

import pyarrow as pa
import pytest

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.column_expressions.expressions import (
    avg,
    col,
    count,
    count_distinct,
    first,
    last,
    lit,
    max_,
    min_,
    stddev,
    sum_,
    variance,
)
from engine.column_expressions.row_functions import array
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.expression import Cast, ColumnRef, NamedExpression
from engine.graph.plan import Aggregate, Join, Project, Sort, decode_plan, encode_plan
from engine.graph.said_operators import JoinHint
from engine.lowering.logical_node import build_plan

SCHEMA = pa.schema(
    [("id", pa.int32()), ("name", pa.string()), ("price", pa.float64()), ("tags", pa.list_(pa.string()))]
)
OTHER = pa.schema([("id", pa.int64()), ("city", pa.string())])


@pytest.fixture
def data(env):
    return env.from_rows([(1, "a", 2.5, ["x"])], SCHEMA)


@pytest.fixture
def other(env):
    return env.from_rows([(1, "b")], OTHER)


def operators(data_set):
    plan = build_plan([data_set._node], "test")
    assert decode_plan(encode_plan(plan)) == plan
    return [node.operator for node in plan.nodes]


# columns


def test_select_takes_names_expressions_and_lists(data):
    selected = data.select("name", [col("id"), (col("price") * 2).alias("twice")], lit(1).alias("one"))
    assert selected.schema == pa.schema(
        [("name", pa.string()), ("id", pa.int32()), ("twice", pa.float64()), ("one", pa.int64())]
    )


def test_with_columns_replaces_in_place_and_appends_in_order(data):
    changed = data.with_columns(id=col("id") + 1, new=col("price"), other=5)
    assert changed.columns == ["id", "name", "price", "tags", "new", "other"]
    assert changed.schema.field("id").type == pa.int64()
    assert data.with_columns(col("id").alias("z")).columns[-1] == "z"


def test_drop_and_rename_keep_the_order(data):
    assert data.drop("name", col("tags")).columns == ["id", "price"]
    assert data.rename({"id": "key"}, price="cost").columns == ["key", "name", "cost", "tags"]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda data: data.select("nam"), "did you mean 'name'?"),
        (lambda data: data.select("id", col("price").alias("id")), "column 'id' would be there twice"),
        (lambda data: data.select(), "no columns are left"),
        (lambda data: data.select(5), "expected a column name or an expression"),
        (lambda data: data.drop("x"), "no column 'x'"),
        (lambda data: data.drop(*SCHEMA.names), "no columns are left"),
        (lambda data: data.rename(x="y"), "no column 'x'"),
        (lambda data: data.rename(id="name"), "column 'name' would be there twice"),
        (lambda data: data.with_columns(x="name"), "write col('name') or lit('name')"),
        (lambda data: data.with_columns(), "no columns are given"),
        (lambda data: data.filter(col("id")), "id is int32; a condition must be a bool"),
        (lambda data: data.filter(True), "expected an expression"),
        (lambda data: data.filter("id > 1"), "expected an expression"),
        (lambda data: data.sort("tags"), "which has no order"),
        (lambda data: data.sort([]), "no key"),
        (lambda data: data.sort(["id", "id"]), "given twice"),
        (lambda data: data.sort("id", descending=[True, False]), "descending="),
        (lambda data: data.sort(True), "sort: name the keys, then True or False for descending"),
        (lambda data: data.sort("id", True, "name"), "sort: name the keys, then True or False for descending"),
        (lambda data: data.sort("id", True, False, True), "sort: name the keys, then True or False for descending"),
        (lambda data: data.top(2, "id", "name"), "several keys are given as a list"),
        (lambda data: data.sort(array(col("tags"))), "which has no order"),
        (lambda data: data.distinct(), "column 'tags' is list"),
        (lambda data: data.group_by("tags"), "cannot be a key"),
        (lambda data: data.group_by("id", "id"), "a key is given twice"),
        (lambda data: data.group_by("id").agg(), "no aggregates"),
        (lambda data: data.group_by("id").agg(x=col("id")), "is no aggregate"),
        (lambda data: data.group_by("id").agg(sum_("id")), "give it a name"),
        (lambda data: data.group_by("id").agg(id=count()), "column 'id' would be there twice"),
        (lambda data: data.group_by("id").agg(x=sum_("name")), "sum takes numbers"),
        (lambda data: data.group_by("id").agg(x=sum_("nam")), "did you mean 'name'?"),
        (lambda data: data.map(lambda row: row, {"id": int}), "schema must be a pyarrow.Schema"),
        (lambda data: data.map("f", SCHEMA), "expected a function"),
        (lambda data: data.join(data, on="id"), "both sides have a column 'name', 'price', 'tags'"),
        (lambda data: data.join(5, on="id"), "expected a DataSet"),
        (lambda data: data.union(data.drop("id")), "data set 2 has no id"),
    ],
)
def test_mistakes_are_reported_where_they_are_made(data, use, message):
    with pytest.raises(SchemaError) as error:
        use(data)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda data: data.limit(-1),
        lambda data: data.limit(1.5),
        lambda data: data.top(True, "id"),
        lambda data: data.set_parallelism(0),
    ],
)
def test_numbers_of_rows_and_subtasks_are_checked(data, use):
    with pytest.raises(PlanError):
        use(data)


# joins and unions


def test_on_gives_one_key_of_the_left_and_compares_it_in_the_common_type(data, other):
    joined = data.join(other, on="id", how="left", hint=JoinHint.BROADCAST_HASH_SECOND)
    assert joined.columns == [*SCHEMA.names, "city"]
    assert joined.schema.field("id").type == SCHEMA.field("id").type != pa.int64()
    _source, cast, _right, _renamed, join, shown = operators(joined)
    assert isinstance(cast, Project)
    assert [type(one.expression) for one in cast.expressions] == [*[ColumnRef] * 4, Cast]
    assert join == Join("left", ("__id_as_int64",), ("__right_id",), False, JoinHint.BROADCAST_HASH_SECOND)
    assert shown == Project(tuple(NamedExpression(name, ColumnRef(name)) for name in joined.columns))


def test_left_on_and_right_on_keep_both_keys(data, other):
    joined = data.join(other.rename(id="other_id"), left_on="id", right_on="other_id")
    assert joined.columns == [*SCHEMA.names, "other_id", "city"]
    with pytest.raises(SchemaError, match="both sides have a column 'id'"):
        data.join(other, left_on="id", right_on="id")


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_return_the_left_columns(data, how):
    assert data.join(data, on=["id", "name"], how=how).columns == SCHEMA.names


def test_outer_sides_become_nullable(env):
    left = env.from_rows([(1,)], pa.schema([("a", pa.int64())]))
    joined = left.join(left.rename(a="b"), left_on="a", right_on="b", how="full")
    assert all(field.nullable for field in joined.schema)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither given"),
        ({"left_on": "id"}, "left_on given"),
        ({"on": "id", "left_on": "id"}, "on and left_on given"),
        ({"on": []}, "name at least one key"),
        ({"left_on": ["id", "name"], "right_on": "id"}, "2 keys left, 1 right"),
        ({"on": "city"}, "no column 'city'"),
        ({"on": "name"}, "no column 'name'"),
        ({"on": "id", "how": "sideways"}, "choose one of inner, left, right, full, semi, anti, cross"),
        ({"on": "id", "how": "cross"}, "a cross join has no keys"),
        ({"on": "id", "hint": "FAST"}, "choose one of OPTIMIZER_CHOOSES"),
        ({"left_on": "name", "right_on": "id"}, "'name' is string left, 'id' is int64 right"),
        ({"left_on": "tags", "right_on": "id"}, "which cannot be a key"),
    ],
)
def test_joins_that_make_no_sense_are_refused(data, other, options, message):
    with pytest.raises(SchemaError) as error:
        data.join(other, **options)
    assert message in str(error.value)


def test_union_matches_by_name_and_widens(env):
    first = env.from_rows([(1, "a")], pa.schema([("n", pa.int32()), ("s", pa.string())]))
    second = env.from_rows([("b", 2.5)], pa.schema([("s", pa.string()), ("n", pa.float64())]))
    both = first.union(second, second)
    assert both.schema == pa.schema([("n", pa.float64()), ("s", pa.string())])
    plan = build_plan([both._node], "")
    for source in plan.nodes[-1].inputs:
        assert to_arrow_schema(plan.node(source).schema) == both.schema
    with pytest.raises(SchemaError, match="column 's' is string, int64; no common type"):
        first.union(first.with_columns(s=1))


def test_data_sets_of_two_environments_do_not_meet(data):
    with Environment(target="recording") as other, pytest.raises(PlanError, match="two environments"):
        data.union(other.from_rows([(1, "a", 2.5, ["x"])], SCHEMA))


# groups and order


def test_groups_have_their_keys_then_their_aggregates(data):
    grouped = data.group_by("name", (col("id") % 2).alias("odd")).agg(
        count().alias("rows"), total=sum_(col("id") + 1), mean=avg("price"), least=min_("name"), most=max_("id")
    )
    assert grouped.schema == pa.schema(
        [
            ("name", pa.string()),
            ("odd", pa.int64()),
            ("rows", pa.int64()),
            ("total", pa.int64()),
            ("mean", pa.float64()),
            ("least", pa.string()),
            ("most", pa.int32()),
        ]
    )
    aggregate = operators(grouped)[-1]
    assert isinstance(aggregate, Aggregate)
    assert aggregate.keys == ("name", "odd")
    assert aggregate.argument_schema.names == ("name", "odd", "__arg1", "__arg2", "__arg3", "__arg4")
    assert aggregate.state_schema.names[2:] == (
        "__state0_0",
        "__state1_0",
        "__state2_0",
        "__state2_1",
        "__state3_0",
        "__state4_0",
    )


def test_distinct_is_an_aggregate_without_calls(data):
    aggregate = operators(data.drop("tags").distinct())[-1]
    assert (aggregate.keys, aggregate.calls) == (("id", "name", "price"), ())


def test_sort_keys_carry_their_directions(data):
    keys = operators(data.sort(["name", "id"], descending=[True, False], nulls_last=True))[-1].keys
    assert [(key.column, key.descending, key.nulls_last) for key in keys] == [("name", True, True), ("id", False, True)]
    top = operators(data.top(3, by="price"))[-1]
    assert isinstance(top, Sort)
    assert (top.limit, top.keys[0].descending, top.keys[0].nulls_last) == (3, True, True)


def test_first_and_last_of_lists_say_not_yet(data):
    with pytest.raises(NotYetSupportedError, match=r"first\(tags\) of list.* is not supported yet"):
        data.group_by("id").agg(x=first("tags"))


@pytest.mark.parametrize("aggregate", [stddev, variance])
def test_deviations_are_of_numbers(data, aggregate):
    assert data.group_by("id").agg(x=aggregate("price")).schema.field("x").type == pa.float64()
    with pytest.raises(SchemaError, match="takes numbers"):
        data.group_by("id").agg(x=aggregate("name"))


def test_a_distinct_count_alone_is_two_aggregates_and_beside_others_a_union(data):
    alone = operators(data.group_by("id").agg(x=count_distinct("name"), y=count_distinct(col("name"))))
    assert [type(operator).__name__ for operator in alone[-3:]] == ["Project", "Aggregate", "Aggregate"]
    assert alone[-2].keys == ("id", "__distinct")
    mixed = operators(data.group_by("id").agg(x=count_distinct("name"), y=last("price")))
    assert [type(operator).__name__ for operator in mixed].count("Aggregate") == 4
    assert [call.function for call in mixed[-1].calls] == ["max", "max"]


# nodes and plans


def test_data_sets_do_not_change(data):
    named = data.name("first").set_parallelism(3)
    assert (named._node.name, named._node.parallelism) == ("first", 3)
    assert (data._node.name, data._node.parallelism) == ("", None)
    assert isinstance(named, DataSet)


def test_a_node_with_two_consumers_is_in_the_plan_once(data):
    filtered = data.filter(col("id") > 1)
    plan = build_plan([filtered.select("id").union(filtered.select("id"))._node], "")
    assert [type(node.operator).__name__ for node in plan.nodes] == ["Source", "Filter", "Project", "Project", "Union"]
    assert plan.nodes[2].inputs == plan.nodes[3].inputs == (1,)


def test_the_two_sides_of_a_self_join_are_one_node(data):
    narrow = data.select("id")
    plan = build_plan([narrow.join(narrow, on="id")._node], "")
    assert plan.nodes[-1].inputs == (1, 1)


def test_a_long_chain_needs_no_deep_stack(data):
    for _ in range(3000):
        data = data.filter(col("id") > 1)
    assert len(build_plan([data._node], "").nodes) == 3001


@pytest.mark.parametrize("call", ["key_by", "partition_by_range"])
def test_a_function_as_a_key_says_that_keys_are_columns(data, call):
    def key_of(row):
        return row.id

    with pytest.raises(SchemaError, match=r"Could not extract key from key_of.*map\(function, schema\)"):
        getattr(data, call)(key_of)


def test_an_unknown_hint_is_an_error_that_lists_the_hints_and_says_where_they_are_written(env):
    data = env.from_arrow(pa.table({"id": [1]}))
    with pytest.raises(SchemaError) as raised:
        data.join(data.rename(id="other"), left_on="id", right_on="other", hint="BROADCAST")
    text = str(raised.value)
    assert text.startswith("Unrecognized join hint 'BROADCAST': choose one of OPTIMIZER_CHOOSES, ")
    assert all(hint in text for hint in JoinHint) and "SELECT /*+ BROADCAST(t) */" in text
