"""Calls that look at a data set: their values are those of Polars and pandas."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import engine.selectors as cs
from engine import DataError, DreyWarning, Environment, SchemaError, row_place

TABLE = pa.table(
    {
        "k": pa.array(["a", "b", None, "a", "a"]),
        "x": pa.array([1, None, 3, 4, 1], pa.int64()),
        "f": pa.array([0.5, 1.5, None, float("nan"), 2.0]),
    }
)


@pytest.fixture(scope="module", params=[1, 2])
def env(request):
    with Environment(config={"parallelism.default": request.param}) as made:
        yield made


@pytest.fixture
def data(env):
    return env.from_arrow(TABLE)


def test_rows_and_columns_as_python_values(data):
    data = data.select("k", "x").sort(row_place())
    assert data.to_dicts() == TABLE.select(["k", "x"]).to_pylist()
    assert data.to_dict() == TABLE.select(["k", "x"]).to_pydict()


def test_data_comes_from_dicts_and_frames(env):
    columns = {"k": ["a", "b"], "x": [1, 2]}
    rows = [{"k": "a", "x": 1}, {"k": "b", "x": 2}]
    schema = pa.schema({"k": pa.string(), "x": pa.int64()})
    for made in (
        env.from_dicts(rows, schema),
        env.from_dict(columns),
        env.from_pandas(pd.DataFrame(columns)),
        env.from_polars(pl.DataFrame(columns)),
        env.from_polars(pl.LazyFrame(columns)),
    ):
        assert made.sort("x").to_dicts() == rows
    assert env.from_pandas(pd.DataFrame(columns)[1:]).to_dicts() == rows[1:]


def test_a_key_that_a_dict_has_not_is_null(env):
    schema = pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.bool_()})
    rows = [{"b": "x"}, {"a": 1}, {}]
    expected = pl.from_dicts(rows, schema={"a": pl.Int64, "b": pl.String, "c": pl.Boolean}).to_dicts()
    assert env.from_dicts(iter(rows), schema).to_dicts() == expected
    with pytest.warns(DreyWarning, match="pass pa.schema"):
        assert env.from_dicts(rows).to_dicts() == pl.from_dicts(rows).to_dicts()
    with pytest.raises(DataError, match=r"^from_dicts: row 0: unknown \['d'\]; the schema has a, b, c"):
        env.from_dicts([{"d": 1}], schema)
    with pytest.raises(DataError, match=r"^from_dicts: row 0, column 'a': 'x' \(str\) is not int64"):
        env.from_dicts([{"a": "x"}], schema)
    with pytest.raises(SchemaError, match=r"^from_dicts: column 'a' has values of no one type"):
        env.from_dicts([{"a": 1}, {"a": "x"}])


FRAME = pd.DataFrame({"x": [1, 2]})


@pytest.mark.parametrize(
    ("call", "value", "said"),
    [
        ("from_pandas", FRAME.set_index("x"), r"from_pandas: the index \['x'\] is no column; write reset_index"),
        ("from_pandas", FRAME.set_index([["p", "q"]]), r"from_pandas: the index \['p', 'q'\] is no column"),
        ("from_pandas", FRAME.set_index([[1, 1], [3, 4]]), r"the index \[\(1, 3\), \(1, 4\)\] is no column"),
        ("from_pandas", FRAME["x"], r"a Series is no DataFrame of pandas; write to_frame\(\)"),
        ("from_pandas", pl.DataFrame(FRAME), "a DataFrame is no DataFrame of pandas; from_polars and from_arrow"),
        ("from_pandas", pd.DataFrame([[1, 2]], columns=["a", "a"]), "the data has two columns of the name 'a'"),
        ("from_pandas", pd.DataFrame(), "the data has no columns"),
        ("from_pandas", pd.DataFrame({"a": pd.arrays.SparseArray([0])}), "Sparse pandas data"),
        ("from_polars", pl.Series("a", [1]), r"a Series has no columns; write series\.to_frame\(\)"),
        ("from_polars", pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "'a' has objects of Python"),
        ("from_arrow", pd.Series([1]), r"a Series has no columns; write series\.to_frame\(\)"),
        ("from_dict", {"a": [1, 2], "b": [3]}, "from_dict: .*expected length 2 but got length 1; pass columns of one"),
        ("from_dict", {"a": 1}, "pass columns of one length by name, such as"),
        ("from_dict", [1], "pass columns of one length by name, such as"),
    ],
)
def test_what_is_no_frame_or_would_lose_values_is_refused(env, call, value, said):
    with pytest.raises(SchemaError, match=said):
        getattr(env, call)(value)


def test_nulls_are_counted(data, env):
    assert data.null_count().to_dicts() == pl.from_arrow(TABLE).null_count().to_dicts()
    assert env.from_arrow(TABLE.slice(0, 0)).null_count().to_dicts() == [{"k": 0, "x": 0, "f": 0}]


@pytest.mark.parametrize("columns", [["k"], ["k", "x"]])
def test_values_are_counted_the_most_frequent_first(data, columns):
    found = data.value_counts(*columns).to_dicts()
    wanted = (
        pl.from_arrow(TABLE)
        .group_by(columns)
        .len("count")
        .sort("count", *columns, descending=[True, *[False] * len(columns)])
    )
    assert found == wanted.to_dicts()
    shares = data.value_counts(*columns, name="share", normalize=True, sort=False).to_dicts()
    assert sorted(row["share"] for row in shares) == sorted(count / 5 for count in wanted["count"])


def test_quantiles_are_described(data):
    shares = [0.25, 0.5, 0.9]
    found = {row["column"]: row for row in data.select("k", "x").describe(shares).to_dicts()}
    wanted = TABLE["x"].to_pandas().quantile(shares).tolist()
    assert [found["x"][name] for name in ("25%", "50%", "90%")] == wanted
    assert found["k"]["50%"] is None
    assert "25%" not in data.describe().columns


def test_a_glimpse_has_a_line_for_each_column(data, capsys):
    data.sort(row_place()).glimpse(2, width=30)
    assert capsys.readouterr().out.splitlines() == ["k  string  'a', 'b'", "x  int64   1, None", "f  double  0.5, 1.5"]
    data.sort(row_place()).glimpse(5, width=20)
    assert capsys.readouterr().out.splitlines()[1] == "x  int64   1, Non..."


def test_schemas_are_asserted(data):
    assert data.assert_schema(TABLE.schema) is data
    data.assert_schema({"x": int, "k": "string"}, ordered=False, allow_more=True)
    with pytest.raises(SchemaError, match="'y' is missing; 'x' is int64, not double; 'k' is one too many; 'f' is one"):
        data.assert_schema({"x": "float64", "y": str})
    with pytest.raises(SchemaError, match="the order is k, x, f, not x, k, f"):
        data.assert_schema({"x": int, "k": str, "f": float})


def test_sorted_rows_are_merged(env):
    one, other = env.from_dict({"x": [1, 4, None]}), env.from_dict({"x": [2, 4]})
    assert one.merge_sorted(other, "x").to_dict() == {"x": [None, 1, 2, 4, 4]}


def test_a_sort_keeps_the_order_of_equal_rows(env):
    rows = pa.table({"k": [index % 3 for index in range(300)], "n": list(range(300))})
    data = env.from_arrow(rows).sort("n", descending=True)
    found = data.sort(cs.first(), descending=True, maintain_order=True).to_arrow().to_pylist()
    assert found == sorted(rows.to_pylist(), key=lambda row: (-row["k"], -row["n"]))
