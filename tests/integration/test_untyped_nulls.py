"""Columns of nothing but nulls, which have no type: keys like others, and numbers where they are aggregated."""

import pandas as pd
import pyarrow as pa
import pytest

from engine import avg, col, count, max_, median, min_, row_number, sum_, when

pytestmark = pytest.mark.usefixtures("one_zygote")

ROWS = 20_000


@pytest.fixture(params=[False, True])
def environment(request, open_environment):
    return open_environment(**{"debug.force-spill": request.param})


@pytest.fixture
def data(environment):
    return environment.from_arrow(pd.DataFrame({"k": [None] * ROWS, "x": range(ROWS)}))


def test_they_are_grouped_sorted_and_told_apart(data):
    assert data.schema.field("k").type == pa.null()
    assert data.group_by("k").agg(n=count(), most=max_("x")).collect() == [(None, ROWS, ROWS - 1)]
    assert data.group_by("k", "x").agg(n=count()).count() == ROWS
    assert data.select("k").distinct().collect() == [(None,)]
    assert data.sort(["k", "x"], descending=True).head(2).collect() == [(None, ROWS - 1), (None, ROWS - 2)]
    assert data.top(2, "k").count() == 2
    numbered = data.select("x", n=row_number().over("k", order_by="x"))
    assert numbered.filter(col("n") != col("x") + 1).count() == 0


def test_they_are_joined_as_nulls_are(environment, data):
    assert data.join(data.select("k", y=col("x")), on="k").count() == 0
    assert data.join(data, on=["k", "x"], how="left").count() == ROWS
    others = environment.from_arrow(pa.table({"k": ["a", None]}))
    assert data.join(others, on="k", how="full").count() == ROWS + 2
    assert data.intersect(data).count() == ROWS and data.except_(data).count() == 0


def test_they_are_numbers_for_aggregates_and_false_as_conditions(data):
    assert data.agg(a=min_("k"), b=sum_("k"), c=avg("x", filter=col("k")), d=median("k")).collect() == [(None,) * 4]
    assert data.agg(n=count("k"), m=count(filter=col("k"))).collect() == [(0, 0)]
    assert data.select(a=min_("k").over("k"), b=when(col("k")).then(1).otherwise(2)).distinct().collect() == [(None, 2)]


NOTHING = pa.null()
NESTED = {
    "list": ([[None], [], None], pa.list_(NOTHING)),
    "large_list": ([[None], [], None], pa.large_list(NOTHING)),
    "fixed_list": ([[None, None], None, [None, None]], pa.list_(NOTHING, 2)),
    "struct": ([{"a": None, "b": 1}, None, {"a": None, "b": None}], pa.struct([("a", NOTHING), ("b", pa.int64())])),
    "map": ([[("k", None)], [], None], pa.map_(pa.string(), NOTHING)),
    "list_of_lists": ([[[None], None], [], None], pa.list_(pa.list_(NOTHING))),
    "list_of_structs": ([[{"a": None}], [], None], pa.list_(pa.struct([("a", NOTHING)]))),
}


def parts(batch):
    return [batch.slice(0, 10), batch.slice(10, 5), batch.slice(15)]


WAYS = {
    "a batch": lambda rows: rows.map_batches(lambda batch: batch, rows.schema),
    "parts of a batch": lambda rows: rows.map_batches(parts, rows.schema),
    "a table": lambda rows: rows.map_batches(lambda batch: pa.Table.from_batches(parts(batch)), rows.schema),
    "pandas": lambda rows: rows.map_batches(lambda frame: frame, rows.schema, "pandas"),
    "numpy": lambda rows: rows.map_batches(lambda columns: columns, rows.schema, "numpy"),
    "rows": lambda rows: rows.map(lambda row: row, rows.schema),
    "a partition": lambda rows: rows.map_partition(lambda found: found, rows.schema),
    "kept rows": lambda rows: rows.filter(lambda row: row.i >= 0),
    "sent rows": lambda rows: rows.rebalance().map_batches(parts, rows.schema),
    "sorted rows": lambda rows: rows.sort("i").map_batches(parts, rows.schema),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NESTED)
def test_children_of_nothing_but_nulls_pass_through_functions(environment, name, way):
    values, data_type = NESTED[name]
    table = pa.table({"i": range(3000), "x": pa.array(values * 1000, data_type)})
    found = WAYS[way](environment.from_arrow(table)).to_arrow().sort_by("i")
    assert found["x"].type == data_type
    assert found["x"].to_pylist() == table["x"].to_pylist()


def test_children_of_nothing_but_nulls_become_numbers_where_the_schema_says_so(environment):
    table = pa.table({"x": pa.array([[None], [], None] * 1000, NESTED["list"][1])})
    schema = pa.schema([("x", pa.list_(pa.int64()))])
    assert environment.from_arrow(table).map_batches(parts, schema).to_arrow().schema == schema
