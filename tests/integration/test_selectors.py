"""Selectors choose the columns that those of Polars choose, wherever a data set takes columns."""

import datetime
from decimal import Decimal

import polars as pl
import polars.selectors as pcs
import pyarrow as pa
import pytest

import engine.selectors as cs
from engine import Environment, SchemaError, avg, coalesce, col, count, first, least, max_, row_number, sum_

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 2], pa.int64()),
        "small": pa.array([1, None, 3], pa.uint8()),
        "Price": pa.array([1.5, None, 2.5]),
        "cost": pa.array([Decimal("1.10"), None, Decimal("2.20")], pa.decimal128(10, 2)),
        "name": pa.array(["a", None, "b"]),
        "flag": pa.array([True, False, None]),
        "day": pa.array([datetime.date(2026, 1, 1)] * 3),
        "at": pa.array([datetime.datetime(2026, 1, 1, 12)] * 3, pa.timestamp("us")),
        "clock": pa.array([datetime.time(1)] * 3, pa.time64("ns")),
        "gap": pa.array([datetime.timedelta(1)] * 3, pa.duration("us")),
        "raw": pa.array([b"a", b"b", None], pa.binary()),
        "items": pa.array([[1], [], None], pa.list_(pa.int64())),
        "pair": pa.array([{"a": 1}, None, {"a": 2}], pa.struct([("a", pa.int64())])),
    }
)
#: text of a selector, the same in both libraries
SAME = (
    *("numeric", "integer", "float", "decimal", "string", "boolean", "binary", "temporal", "date", "datetime"),
    *("time", "duration", "struct", "list", "all", "first", "last"),
)
SETS = (
    "cs.numeric() | cs.string()",
    "cs.numeric() - cs.integer()",
    "cs.numeric() & cs.first()",
    "cs.numeric() ^ cs.float()",
    "~cs.temporal()",
    "~(cs.numeric() | cs.temporal())",
    "cs.numeric() - cs.by_name('id')",
    "cs.by_name('small', 'id')",
    "cs.by_name(['name', 'nothing'], require_all=False)",
    "cs.all().exclude('id', 'name')",
    "cs.all().exclude('^i.*$')",
    "cs.exclude('id', cs.temporal())",
    "cs.starts_with('i', 'P')",
    "cs.ends_with('e')",
    "cs.contains('i', 'o')",
    "cs.matches('^[a-c]')",
    "cs.by_index(0, -1)",
)


@pytest.fixture(scope="module")
def env():
    with Environment(config={"parallelism.default": 1}) as environment:
        yield environment


@pytest.fixture(scope="module")
def data(env):
    return env.from_arrow(TABLE)


def polars_columns(text):
    # the names follow the order of by_name in Polars, here that of the table
    chosen = pl.from_arrow(TABLE).select(eval(text, {"cs": pcs, "col": pl.col})).columns
    return sorted(chosen, key=TABLE.schema.names.index)


@pytest.mark.parametrize("text", [*(f"cs.{name}()" for name in SAME), *SETS])
def test_a_selector_chooses_what_polars_chooses(data, text):
    assert data.select(eval(text, {"cs": cs, "col": col})).columns == polars_columns(text)


@pytest.mark.parametrize("name", ["^.*i.*$", "*"])
def test_a_name_is_a_pattern_as_in_polars(data, name):
    frame = pl.from_arrow(TABLE)
    assert data.select(name).columns == frame.select(name).columns
    assert data.select(col(name)).columns == frame.select(pl.col(name)).columns
    assert data.select(col("id", "flag").is_null()).columns == ["id", "flag"]


def test_a_column_that_is_called_like_a_pattern_is_that_column(env):
    data = env.from_arrow(pa.table({"^x$": [1], "x": [2]}))
    assert data.select("^x$").columns == ["^x$"]
    assert data.select(col("^x$") + 1).to_arrow().column(0).to_pylist() == [2]


def test_types_choose_columns(data):
    assert data.select(cs.by_dtype(pa.int64(), "float64", str)).columns == ["id", "Price", "name"]
    coded = pa.table({"code": pa.array(["a"]).dictionary_encode()})
    assert cs.string().names(coded.schema) == ["code"]
    assert data.select(cs.string() | col("id")).columns == ["id", "name"]
    assert data.select(cs.numeric().exclude(cs.float())).columns == ["id", "small", "cost"]


def test_an_expression_is_computed_for_each_column_under_its_name(data):
    frame = pl.from_arrow(TABLE)
    found = data.with_columns((cs.float() | cs.integer()) * 2, (cs.string() + "!").name.suffix("_2"))
    wanted = frame.with_columns(
        (pcs.float() | pcs.integer()).cast(pl.Float64) * 2, (pcs.string() + "!").name.suffix("_2")
    )
    assert found.columns == wanted.columns
    assert (
        found.select("id", "Price", "name_2").to_arrow().to_pylist()
        == wanted.select("id", "Price", "name_2").to_dicts()
    )
    assert data.select(cs.integer().cast("string")).schema.types == [pa.string()] * 2


def test_names_are_made_of_names_that_were_given(data):
    frame = pl.from_arrow(TABLE)
    for module, rows in ((pl, frame), (None, data)):
        c, chosen = (module.col, pcs.integer()) if module else (col, cs.integer())
        names = rows.select(
            c("Price").name.prefix("p_").name.suffix("_s"),
            c("cost").alias("q").name.to_uppercase(),
            c("name").alias("q").name.keep(),
            chosen.name.prefix("n_").name.suffix("_s"),
        ).columns
        assert names == ["p_Price_s", "Q", "name", "n_id_s", "n_small_s"]


def test_names_are_made_of_the_column(data):
    made = data.select(
        (col("id") + 1).name.prefix("next_"),
        cs.float().name.to_lowercase(),
        cs.string().name.map(lambda name: name[::-1]),
        (col("small") + col("id")).name.keep(),
        cs.boolean().name.replace("f", "F"),
        cs.date().name.to_uppercase(),
    )
    assert made.columns == ["next_id", "price", "eman", "small", "Flag", "DAY"]
    assert data.rename(str.upper).columns == [name.upper() for name in TABLE.schema.names]


def test_aggregates_of_selectors_are_those_of_polars(data):
    found = data.group_by(cs.first()).agg(
        sum_(cs.numeric() - cs.decimal()).name.suffix("_sum"),
        max_(cs.string()),
        avg(cs.float()).name.suffix("_mean"),
        n=count(),
    )
    wanted = (
        pl.from_arrow(TABLE)
        .group_by("id")
        .agg(
            pl.col("small", "Price").sum().name.suffix("_sum"),
            pl.col("name").max(),
            pl.col("Price").mean().name.suffix("_mean"),
            n=pl.len(),
        )
    )
    assert found.columns == wanted.columns
    wanted = wanted.with_columns(pl.col("small_sum").cast(pl.Int64))
    assert found.sort("id").to_arrow().to_pylist() == wanted.sort("id").to_dicts()
    assert data.drop(cs.list(), cs.struct()).agg(first(cs.all())).columns == data.columns[:-2]


def test_all_places_that_take_columns_take_selectors(env, data):
    names = TABLE.schema.names
    numbers = ["id", "small", "Price", "cost"]
    assert data.drop(cs.numeric()).columns == [name for name in names if name not in numbers]
    assert data[[cs.numeric()]].columns == numbers
    assert data.sort(cs.integer(), descending=True).to_arrow()["id"].to_pylist() == [2, 2, 1]
    assert data.top(1, cs.first()).to_arrow()["id"].to_pylist() == [2]
    assert data.distinct(cs.first()).count() == data.drop_duplicates(cs.first()).count() == 2
    assert data.drop_nulls(cs.numeric()).count() == 2
    assert data.with_columns(cs.numeric().fill_null(0)).drop_nulls(cs.numeric()).count() == 3
    assert data.unpivot(on=cs.integer(), index=cs.string()).count() == 6
    assert data.join(data, on=cs.first(), suffix="_r").count() == 5
    assert data.join(data, left_on=cs.first(), right_on=cs.matches("^id$"), how="semi").count() == 3
    assert data.unnest(cs.struct()).columns == [*names[:-1], "a"]
    assert data.filter(cs.boolean()).count() == 1
    assert data.filter(least(cs.integer()) > 1).count() == 2
    assert data.select(coalesce(cs.integer()).alias("c")).columns == ["c"]
    assert data.key_by(cs.integer()).columns == names
    number = row_number().over(cs.first(), order_by=cs.float())
    assert data.select(number.alias("n")).to_arrow()["n"].to_pylist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda data: data.drop("raw").select(cs.binary()), r"cs.binary\(\) selects no column; there are id int64"),
        (lambda data: data.drop(cs.contains("zz")), r"cs.contains\('zz'\) selects no column"),
        (lambda data: data.select("^zz$"), "selects no column"),
        (lambda data: data.select((cs.float() + cs.integer()).alias("x")), "several selectors in one expression"),
        (
            lambda data: data.select((cs.integer() + 1).alias("x")),
            r"alias\('x'\) is one name for 2 columns \(id, small\)",
        ),
        (lambda data: data.select(x=cs.integer() + 1), "is one name for 2 columns"),
        (lambda data: data.filter(cs.integer() > 1), "2 conditions"),
        (lambda data: data.select(cs.by_name("nothing")), "no column 'nothing'"),
        (lambda data: data.select(cs.by_index(20)), "there are 13 columns"),
        (lambda data: data.select(cs.integer(), "id"), "would be there twice"),
        (lambda _: cs.matches("("), "no regular expression"),
        (lambda _: cs.by_name(1), "names of columns"),
        (lambda _: cs.exclude(), "at least one column"),
        (lambda _: cs.all().exclude(1), "no name, type or selector"),
        (lambda _: cs.numeric() ^ 1, "both must be selectors"),
        (lambda _: cs.contains(1), "parts of names"),
        (lambda data: data.select((col("id") + 1).name.map(3)), "a function of a name"),
    ],
)
def test_what_is_wrong_is_said(data, call, text):
    with pytest.raises(SchemaError, match=text):
        call(data)
