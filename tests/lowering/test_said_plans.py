"""Plans hold what users say; lowered again they are the plans that are optimized."""

from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

from engine import (
    Environment,
    PlanError,
    SchemaError,
    avg,
    col,
    collect_list,
    count,
    count_distinct,
    lag,
    max_by,
    median,
    mode,
    row_number,
    sum_,
    udf,
)
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.expression import is_said
from engine.graph.plan import Filter, Plan, Project, decode_plan, encode_plan
from engine.graph.said_operators import SAID
from engine.lowering.logical_node import LogicalNode, build_plan, said_plan
from engine.lowering.said_nodes import lowered
from tests.tpch.queries import QUERIES, read_tables
from tests.tpch.sql_queries import QUERIES as SQL
from tests.tpch.tables import write_small


@udf(int)
def twice(value):
    return 2 * value


@pytest.fixture(scope="module")
def env():
    with Environment() as environment:
        yield environment


@pytest.fixture(scope="module")
def rows(env):
    return env.from_arrow(pa.table({"k": [1, 1, 2], "x": [1, 2, 3], "t": pa.array([1.0, 2.0, 3.0])}))


@pytest.fixture(scope="module")
def others(env):
    return env.from_arrow(pa.table({"k": pa.array([1, 2], pa.int32()), "y": [5, 6], "t": pa.array([1.5, 2.5])}))


PROGRAMS = {
    "windows": lambda rows, _: rows.with_columns(
        share=col("x") / sum_("x").over("k"), before=lag("x").over("k", order_by=col("x") + 1)
    ),
    "windows of parts": lambda rows, _: rows.select(
        "k", n=count_distinct("x").over("k"), best=max_by("x", "t").over("k"), m=median("x").over("k")
    ),
    "a filter by a window": lambda rows, _: rows.filter(row_number().over("k", order_by="x") == 1),
    "aggregates": lambda rows, _: rows.group_by(odd=col("x") % 2).agg(
        total=sum_("x", filter=col("t") > 1.0),
        kinds=count_distinct("k"),
        most=mode("x"),
        all=collect_list("x", order_by="t"),
        mean=sum_("x") / count(),
    ),
    "grouping sets": lambda rows, _: rows.group_by("k", odd=col("x") % 2).cube("number").agg(total=sum_("x")),
    "a value": lambda rows, others: rows.filter(col("x") > others.agg(mean=avg("y")).scalar() - 4),
    "membership": lambda rows, others: rows.filter(col("k").is_in(others.select("k")) & (col("x") > 1)),
    "no membership": lambda rows, others: rows.filter(~col("k").is_in(others.select("k"))),
    "a mark": lambda rows, others: rows.with_columns(there=col("k").is_in(others.select("k"))),
    "a function": lambda rows, _: rows.with_columns(y=twice(col("x") + 1)).filter(twice(col("x")) > 2),
    "a function of a window": lambda rows, _: rows.with_columns(y=twice(sum_("x").over("k"))),
    "everything at once": lambda rows, others: rows.filter(
        (twice(col("x")) > others.select("y").limit(1).scalar()) | (row_number().over("k") == 1)
    ),
    "a join by computed keys": lambda rows, others: rows.join(
        others, left_on=col("k") + 0, right_on="k", how="left", suffix="_right", null_safe=True
    ),
    "a full join": lambda rows, others: rows.drop("t").join(others.drop("t"), on="k", how="full"),
    "a range join": lambda rows, others: rows.join(
        others.select("y", until=col("t")), condition=(col("t") <= col("until")) & (col("y") - 3 > col("x"))
    ),
    "an order": lambda rows, _: rows.sort([col("x") % 2, "k"], descending=[True, False]).top(2, -col("x")),
    "an order by windows": lambda rows, others: rows.sort(
        [sum_("x").over("k"), twice(col("x")), others.agg(y=avg("y")).scalar()]
    ),
    "a page": lambda rows, _: rows.sort("x").limit(1, offset=1),
    "different rows": lambda rows, _: rows.distinct(["k"]),
    "last rows of groups": lambda rows, _: rows.drop_duplicates("k", keep="last", order_by="x"),
    "first rows of groups": lambda rows, _: rows.group_by("k").head(1, "x"),
    "numbers of rows": lambda rows, _: rows.with_row_index("n", offset=3),
    "rows of both": lambda rows, others: rows.select("k").intersect(others.select("k")),
    "rows of one": lambda rows, others: rows.select("x").except_(others.select(x=col("y")), all=True),
    "a pivot": lambda rows, _: rows.pivot("k", ["x", "t"], index="x", agg="sum", columns=[1, 2]),
    "an as-of join": lambda rows, others: rows.asof_join(others, on="t", by="k", direction="nearest", tolerance=1),
}


def lowered_again(plan: Plan) -> Plan:
    """Lower a plan as it was said, from its bytes: what each operator says, over what its inputs became."""
    nodes: list[LogicalNode] = []
    for one in decode_plan(encode_plan(plan)).nodes:
        inputs = tuple(nodes[source] for source in one.inputs)
        node = LogicalNode(one.operator, inputs, to_arrow_schema(one.schema))
        if is_said_operator(one.operator):
            node = lowered(one.operator, inputs)
            assert node.schema == to_arrow_schema(one.schema)
        nodes.append(replace(node, name=one.name, parallelism=one.parallelism))
    return build_plan([nodes[sink] for sink in plan.sinks], plan.name)


def is_said_operator(operator) -> bool:
    match operator:
        case Project(expressions=named):
            return any(is_said(one.expression) for one in named)
        case Filter(predicate=predicate):
            return is_said(predicate)
        case _:
            return isinstance(operator, SAID)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_said_is_all_that_the_plan_of_a_job_is_made_of(rows, others, name):
    node = PROGRAMS[name](rows, others)._node
    said = said_plan([node])
    assert any(is_said_operator(one.operator) for one in said.nodes)
    assert not any(is_said_operator(one.operator) for one in build_plan([node], "").nodes)
    assert lowered_again(said) == build_plan([node], "")


@pytest.fixture(scope="module")
def tables(env, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch") / "small"
    write_small(folder)
    found = read_tables(env, folder)
    for name, data in vars(found).items():
        env.register(name, data)
    return found


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_questions_of_tpc_h_are_said_and_lowered(env, tables, number):
    for node in (QUERIES[number](tables)._node, env.sql(SQL[number])._node):
        assert lowered_again(said_plan([node])) == build_plan([node], "")


def test_what_is_said_is_shown(rows, others):
    wanted = rows.with_columns(share=col("x") / sum_("x").over("k"), y=twice(col("x")))
    wanted = wanted.filter(col("x") > rows.agg(mean=avg("x")).scalar())
    joined = wanted.join(others, left_on=col("k") + 0, right_on="k", suffix="_right")
    grouped = joined.group_by("k", odd=col("x") % 2).agg(total=sum_("x", filter=col("y_right") > 5), n=count())
    assert grouped.explain(logical=True).splitlines() == [
        "[6] group by k, odd = x % 2: total = sum(x) filter (where y_right > 5), n = count()",
        "└─ [5] inner join on k + 0 == k",
        "   ├─ [3] filter x > data_set.scalar()",
        "   │  ├─ [1] project *, share = x / sum(x) over (partition by k), y = twice(x)",
        "   │  │  └─ [0] arrow source",
        "   │  └─ [2] aggregate: mean = avg(x)",
        "   │     └─ [0] arrow source (above)",
        "   └─ [4] arrow source",
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("grouping sets", "[1] group by k, odd = x % 2, sets (k, odd), (k), (odd), (): total = sum(x)"),
        ("an as-of join", "[2] as-of join on k and t, nearest, within 1"),
        ("a full join", "[4] full join on k"),
        ("an order", "[2] first 2 by -x descending"),
        ("a page", "[2] limit 1 behind 1"),
        ("different rows", "[1] filter row_number() over (partition by k) == 1"),
        ("numbers of rows", "[1] project n = row_number() over (order by row_place()) + 2, k, x, t"),
        ("rows of both", "[4] intersect"),
        ("rows of one", "[4] except all"),
        ("a pivot", "[1] pivot k by x: x = sum(x), t = sum(t) in 1, 2"),
        ("windows of parts", "max_by(x, t) over (partition by k)"),
    ],
)
def test_operators_are_shown_as_they_are_said(rows, others, name, line):
    assert line in PROGRAMS[name](rows, others).explain(logical=True).splitlines()[0]


def test_a_program_of_any_length_is_shown(rows):
    data = rows
    for _ in range(1000):
        data = data.filter(col("x") > 0)
    assert len(data.explain(logical=True).splitlines()) == 1001


def test_mistakes_are_errors_of_the_call(rows, others):
    with pytest.raises(SchemaError, match="'z'"):
        rows.with_columns(n=sum_("z").over("k"))
    with pytest.raises(SchemaError, match="no common type"):
        rows.filter(col("k").is_in(rows.select(text=col("x").cast(str))))
    with pytest.raises(SchemaError, match="both sides have a column 't'"):
        rows.join(others, on="k")
    with pytest.raises(PlanError, match="choose one"):
        rows.explain(logical=True, analyze=True)
