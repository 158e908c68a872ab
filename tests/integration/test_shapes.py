"""Shapes of tables against DuckDB and plain Python: pivot, unpivot, unnest, grouping sets."""

import datetime
import random

import duckdb
import pyarrow as pa
import pytest

from engine import Environment, PlanError, SchemaError, col, count, max_, min_, row_number, struct, sum_

ROWS = 1_000


@pytest.fixture(scope="module")
def rows():
    rng = random.Random(5)
    return pa.table(
        {
            "a": [rng.choice([None, "x", "y", "z"]) for _ in range(ROWS)],
            "b": [rng.choice([None, 1, 2, 3]) for _ in range(ROWS)],
            "v": [rng.choice([None, *range(100)]) for _ in range(ROWS)],
            "f": [rng.choice([None, rng.random()]) for _ in range(ROWS)],
        }
    )


@pytest.fixture(scope="module", params=[1, 2])
def data(request, rows):
    with Environment(config={"parallelism.default": request.param}) as environment:
        source = environment.from_arrow(rows)
        yield source.rebalance() if request.param > 1 else source


def answer(query, rows):
    with duckdb.connect() as oracle:
        oracle.register("t", rows)
        return oracle.sql(query).to_arrow_table()


def as_rows(table):
    """Rows in an order of their own, floats to ten digits."""
    named = [
        tuple(round(one, 10) if isinstance(one, float) else one for one in row.values()) for row in table.to_pylist()
    ]
    return sorted(named, key=repr)


@pytest.mark.parametrize(
    ("agg", "duck"), [("sum", "sum(v)"), (max_, "max(v)"), ("count", "count(v)"), ("avg", "avg(v)")]
)
def test_a_pivot_is_duckdbs(data, rows, agg, duck):
    found = data.pivot("b", "v", index="a", agg=agg)
    assert found.columns == ["a", "1", "2", "3", "null"]
    cells = ", ".join(f"{duck} FILTER (WHERE b IS NOT DISTINCT FROM {value})" for value in ("1", "2", "3", "NULL"))
    assert as_rows(found.to_arrow()) == as_rows(answer(f"SELECT a, {cells} FROM t GROUP BY a", rows))


def test_a_pivot_has_the_columns_that_are_named_and_null_where_no_row_is(data):
    small = data.filter(col("a").is_in(["x", "y"]) & col("b").is_in([1, 2]) & ((col("a") == "x") | (col("b") == 1)))
    found = small.pivot("b", ["v", "f"], index=["a"], agg="count", columns=[2, 9])
    assert found.columns == ["a", "2_v", "2_f", "9_v", "9_f"]
    by_name = {row["a"]: row for row in found.to_arrow().to_pylist()}
    assert by_name["x"]["2_v"] > 0
    assert by_name["x"]["9_v"] is None
    assert by_name["y"]["2_f"] is None


def test_a_pivot_by_dates_and_bools_names_columns_as_python_writes_them(data):
    day = datetime.date(2024, 2, 29)
    known = data.limit(1).with_columns(day=day, yes=True)
    assert known.pivot("day", "v", "a", "sum").columns == ["a", "2024-02-29"]
    assert known.pivot("yes", "v", "a", "sum").columns == ["a", "true"]


def test_a_pivot_without_an_index_has_a_line_for_all_other_columns(data):
    small = data.select("a", "b", "v")
    assert as_rows(small.pivot("b", "v", agg="sum").to_arrow()) == as_rows(small.pivot("b", "v", "a", "sum").to_arrow())


def test_one_value_for_nulls_goes_to_the_columns_that_are_named():
    with Environment() as env:
        known = env.from_arrow(pa.table({"x": [1, None], "y": [None, 2], "t": ["a", None]}))
        assert known.fill_null(0, "x").to_dicts() == [{"x": 1, "y": None, "t": "a"}, {"x": 0, "y": 2, "t": None}]
        assert known.fill_null(0, ["x", "y"]).select("y").to_dicts() == [{"y": 0}, {"y": 2}]
        with pytest.raises(SchemaError, match="t"):
            known.fill_null(0, ["x", "t"])
        with pytest.raises(SchemaError, match="values by name say their columns"):
            known.fill_null({"x": 0}, "x")


def test_a_star_counts_rows(data):
    assert data.agg(n=count("*")).collect() == data.agg(n=count()).collect()


def test_mistakes_in_a_pivot_are_said(data):
    with pytest.raises(PlanError, match="more than 1,000 different values"):
        data.with_columns(n=row_number().over()).limit(1001).union(
            data.with_columns(n=row_number().over() + 5000)
        ).pivot("n", "v", "a", "sum")
    for use, said in (
        (lambda: data.pivot("b", "v", "b", "sum"), "another column as index"),
        (lambda: data.pivot("b", "v", "a", "median_of"), "choose one of sum, count"),
        (lambda: data.pivot("b", "v", "a"), "agg='sum'"),
        (lambda: data.pivot("b", "v", "a", "sum", columns=["one"]), "'one' is no int64"),
        (lambda: data.pivot("b", "v", "a", "sum", columns=[1, 1]), "two columns '1'"),
        (lambda: data.pivot("b", "v", "a", 5), "the name of an aggregate"),
    ):
        with pytest.raises(SchemaError, match=said):
            use()


def test_columns_become_rows_as_in_duckdb(data, rows):
    found = data.unpivot(["v", "f"], index=["a", "b"])
    assert found.columns == ["a", "b", "variable", "value"]
    wanted = "SELECT a, b, 'v', v::DOUBLE FROM t UNION ALL SELECT a, b, 'f', f FROM t"
    assert as_rows(found.to_arrow()) == as_rows(answer(wanted, rows))
    assert data.unpivot(index=["a", "b", "f"], variable_name="n", value_name="x").columns == ["a", "b", "f", "n", "x"]
    assert data.unpivot(on="v").columns == ["a", "b", "f", "variable", "value"]
    with pytest.raises(SchemaError, match="no common type"):
        data.unpivot(["a", "v"])
    with pytest.raises(SchemaError, match="no column is left"):
        data.unpivot([], index="a")


def test_fields_of_structs_become_columns(data):
    made = data.with_columns(s=struct(p=col("a"), q=col("v"))).select("f", "s")
    assert made.unnest("s").columns == ["f", "p", "q"]
    assert as_rows(made.unnest("s").to_arrow()) == as_rows(data.select("f", "a", "v").to_arrow())
    for use, said in (
        (lambda: data.unnest("a"), "no struct"),
        (data.unnest, "no column"),
        (lambda: made.rename(f="p").unnest("s"), "'p' would be there twice"),
        (lambda: data.explode("a"), "no list and no map"),
        (lambda: data.with_columns(l=col("a").str.split("x")).explode("l", position="v"), "there is a column"),
    ):
        with pytest.raises(SchemaError, match=said):
            use()


@pytest.mark.parametrize(
    ("sets", "duck"),
    [
        (lambda groups: groups.rollup(grouping_id="g"), "ROLLUP (a, b)"),
        (lambda groups: groups.cube(grouping_id="g"), "CUBE (a, b)"),
        (lambda groups: groups.grouping_sets("b", ["a", "b"], [], grouping_id="g"), "GROUPING SETS ((b), (a, b), ())"),
    ],
)
def test_grouping_sets_are_duckdbs(data, rows, sets, duck):
    made = sets(data.group_by("a", "b")).agg(count().alias("n"), total=sum_("v"), least=min_("f"))
    assert made.columns == ["a", "b", "g", "n", "total", "least"]
    query = f"SELECT a, b, grouping(a, b), count(*), sum(v)::BIGINT, min(f) FROM t GROUP BY {duck}"
    assert as_rows(made.to_arrow()) == as_rows(answer(query, rows))


def test_grouping_sets_without_number_and_mistakes(data):
    assert data.group_by("a").rollup().agg(n=count()).columns == ["a", "n"]
    assert data.filter(col("v") > 1000).group_by("a").rollup().agg(n=count()).to_arrow().to_pylist() == [
        {"a": None, "n": 0}
    ]
    with pytest.raises(SchemaError, match="'v' is no key of group_by"):
        data.group_by("a").grouping_sets(["v"])
    with pytest.raises(SchemaError, match="at least one set"):
        data.group_by("a").grouping_sets()
    with pytest.raises(SchemaError, match="grouping sets"):
        data.group_by(*(col("v").alias(f"k{i}") for i in range(7))).cube()
    with pytest.raises(SchemaError, match="keys make"):
        data.group_by(*(col("v").alias(f"k{i}") for i in range(9))).cube()


def test_the_first_rows_of_each_group(data, rows):
    found = data.group_by("a").head(2, ["v", "f"], descending=[True, False], nulls_last=True)
    wanted = (
        "SELECT a, v, f FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY v DESC NULLS LAST, f NULLS LAST) <= 2"
    )
    assert as_rows(found.select("a", "v").to_arrow()) == as_rows(answer(f"SELECT a, v FROM ({wanted})", rows))
    kept = data.group_by("a").head(3).group_by("a").agg(n=count()).to_arrow().to_pylist()
    assert [row["n"] for row in kept] == [3, 3, 3, 3]
    assert data.group_by().head(4).count() == 4


def test_keys_of_grouping_sets_may_be_expressions(data, rows):
    made = data.group_by((col("v") % 2).alias("odd")).rollup().agg(n=count())
    assert as_rows(made.to_arrow()) == as_rows(answer("SELECT v % 2, count(*) FROM t GROUP BY ROLLUP (v % 2)", rows))


def test_flags_of_a_sort_stand_behind_its_keys_or_have_names(data):
    whole = data.sort(["a", "v"], descending=[True, False], nulls_last=True).select("a", "v").collect()
    assert data.sort("a", "v", [True, False], True).select("a", "v").collect() == whole
    assert data.sort(["a", "v"], [True, False], nulls_last=True).select("a", "v").collect() == whole
    assert data.sort("v", True).select("v").collect() == data.sort(by="v", descending=True).select("v").collect()
