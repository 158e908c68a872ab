"""Data sets in expressions against DuckDB: one value, lists of values with nulls, and what is refused."""

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, PlanError, SchemaError, avg, col, count, lit, max_, when

TABLES = {
    "t": pa.table({"k": [1, 2, 3, None, 3], "v": [10, 20, 30, 40, 50]}),
    "u": pa.table({"w": [3, 5]}),
    "n": pa.table({"w": [3, None]}),
    "e": pa.table({"w": pa.array([], pa.int64())}),
}


@pytest.fixture(scope="module")
def data():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield {name: environment.from_arrow(table) for name, table in TABLES.items()}


def same(found, query):
    with duckdb.connect() as oracle:
        for name, table in TABLES.items():
            oracle.register(name, table)
        wanted = oracle.execute(query).fetchall()
    assert sorted(map(repr, (tuple(row.values()) for row in found.to_arrow().to_pylist()))) == sorted(map(repr, wanted))


@pytest.mark.parametrize("other", ["u", "n", "e"])
def test_membership_is_that_of_sql(data, other):
    t, values = data["t"], data[other]
    test = col("k").is_in(values)
    same(t.filter(test), f"FROM t WHERE k IN (FROM {other})")
    same(t.filter(~test), f"FROM t WHERE k NOT IN (FROM {other})")
    same(t.filter(~test & (col("v") > 15)), f"FROM t WHERE k NOT IN (FROM {other}) AND v > 15")
    same(t.filter(test | (col("v") == 10)), f"FROM t WHERE k IN (FROM {other}) OR v = 10")
    same(t.filter((~test).is_null()), f"FROM t WHERE (k NOT IN (FROM {other})) IS NULL")
    same(t.with_columns(m=test), f"SELECT *, k IN (FROM {other}) FROM t")
    same(
        t.select(when(test).then("in").otherwise("out").alias("m"), (col("k") + 0).is_in(values).alias("m2")),
        f"SELECT CASE WHEN k IN (FROM {other}) THEN 'in' ELSE 'out' END, k IN (FROM {other}) FROM t",
    )


def test_a_value_of_another_data_set(data):
    t, u = data["t"], data["u"]
    mean = t.agg(mean=avg("v")).scalar()
    same(t.filter(col("v") > mean), "FROM t WHERE v > (SELECT avg(v) FROM t)")
    same(
        t.with_columns(d=col("v") - mean, twice=mean + mean),
        "SELECT *, v - (SELECT avg(v) FROM t), 60.0::DOUBLE FROM t",
    )
    same(t.filter((col("v") > mean) & col("k").is_in(u)), "FROM t WHERE v > 30 AND k IN (FROM u)")
    same(t.sort(col("v") * u.agg(m=max_("w")).scalar()), "FROM t")
    assert t.filter(col("v") == data["e"].scalar()).count() == 0
    assert t.with_columns(x=data["e"].scalar()).filter(col("x").is_null()).count() == 5
    assert t.with_columns(x=u.filter(col("w") == 5).scalar()).agg(m=max_("x")).to_arrow()["m"].to_pylist() == [5]


def test_two_rows_are_no_value(data):
    with pytest.raises(JobExecutionError, match="a data set that stands for a value has more than one row") as failure:
        data["t"].filter(col("v") > data["u"].scalar()).count()
    assert str(failure.value).splitlines()[0].partition("; in a row with w=")[2].endswith(", rows=2")


def test_a_window_beside_it_sees_all_rows(data):
    found = data["t"].filter(col("k").is_in(data["u"]) & (count().over() == 5))
    same(found, "FROM t WHERE k IN (FROM u)")


def test_what_is_refused(data):
    t, u = data["t"], data["u"]
    with pytest.raises(SchemaError, match="scalar: the data set has 2 columns"):
        t.scalar()
    with pytest.raises(SchemaError, match="is_in: the data set has 2 columns"):
        col("k").is_in(t)
    with pytest.raises(SchemaError, match="stands in select, with_columns and filter only"):
        t.group_by(u.scalar().alias("x"))
    refused = r"is_in\(data_set\): the value is string, the data set's 'w' is int64; they have no common type"
    with pytest.raises(SchemaError, match=refused):
        t.filter(lit("a").is_in(u))
    with pytest.raises(SchemaError, match=refused):
        t.with_columns(m=lit("a").is_in(u))
    with pytest.raises(SchemaError, match="make the value a column first"):
        t.with_columns(x=u.agg(m=max_("w")).scalar().is_in(u))
    with Environment() as other, pytest.raises(PlanError, match="of another environment"):
        t.filter(col("v") > other.from_arrow(TABLES["u"]).scalar())
