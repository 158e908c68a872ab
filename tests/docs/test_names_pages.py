"""Each public name of Polars, PySpark and pandas has an answer, whose code runs."""

import inspect
import re

import pandas as pd
import polars as pl
import pytest
from polars.dataframe.group_by import GroupBy
from polars.lazyframe.group_by import LazyGroupBy

from docs.generators.names_page import PAGES, names_page
from engine import Environment, col
from engine import selectors as cs
from engine.foreign_names import NAMES
from tests.docs.answered_names import answers

#: names of versions other than the installed one
_OF_OTHER_VERSIONS = {
    ("pandas", "Series and DataFrame"): {"from_arrow", "select", "to_iceberg", "first", "last", "pad", "backfill"}
    | {"swapaxes", "bool", "applymap", "to_gbq", "ravel", "view"},
    ("pandas", "Series.str"): {"isascii"},
    ("pandas", "groupby"): {"kurt", "fillna", "grouper", "dtypes"},
}


def public(*homes):
    return {name for home in homes for name in dir(home) if not name.startswith("_")}


def names_of_polars():
    spaces = {
        part: type(getattr(pl.col("x"), part.removeprefix("Expr.")))
        for part in NAMES["Polars"]
        if part.startswith("Expr.")
    }
    homes = {"Expr": (pl.Expr,), "LazyFrame": (pl.LazyFrame,), "GroupBy": (GroupBy, LazyGroupBy)}
    found = {part: public(*home) for part, home in (homes | {part: (home,) for part, home in spaces.items()}).items()}
    selectors = {name for name in public(pl.selectors) if inspect.isfunction(getattr(pl.selectors, name))}
    selectors = {name for name in selectors if getattr(pl.selectors, name).__module__ == pl.selectors.__name__}
    frame = public(pl.DataFrame) - public(pl.LazyFrame)
    return found | {"DataFrame": frame, "selectors": selectors, "polars": functions_of(pl)}


def functions_of(module):
    return {name for name in public(module) if inspect.isfunction(getattr(module, name))}


def names_of_pandas():
    times = pd.Series(pd.to_datetime(["2026-01-05"]))
    return {
        "Series and DataFrame": public(pd.Series, pd.DataFrame),
        "Series.str": public(pd.Series.str),
        "Series.dt": public(times.dt),
        "pandas": functions_of(pd),
        "groupby": public(pd.core.groupby.DataFrameGroupBy, pd.core.groupby.SeriesGroupBy),
    }


def names_of_spark():
    from pyspark.sql import Column, DataFrame, GroupedData, functions

    callable_names = {name for name in functions.__all__ if inspect.isfunction(getattr(functions, name))}
    return {
        "functions": callable_names,
        "DataFrame": public(DataFrame),
        "GroupedData": public(GroupedData),
        "Column": public(Column),
    }


@pytest.mark.parametrize(
    ("library", "names"), [("Polars", names_of_polars), ("pandas", names_of_pandas), ("PySpark", names_of_spark)]
)
def test_each_name_has_an_answer(library, names):
    found = names()
    assert found.keys() == NAMES[library].keys()
    for part, wanted in found.items():
        answered = NAMES[library][part].keys()
        assert sorted(wanted - answered) == [], f"{library} {part}: give these an answer"
        more = answered - wanted - _OF_OTHER_VERSIONS.get((library, part), set())
        assert sorted(more) == [], f"{library} {part}: there are no such names"


@pytest.mark.parametrize("library", NAMES)
def test_the_code_of_each_answer_runs(library, tmp_path):
    texts = {text for part in NAMES[library].values() for text in part.values()}
    codes = sorted({code for text in texts for code in re.findall("`([^`]+)`", text)})
    with answers(tmp_path) as space:
        faults = {code: fault for code in codes if (fault := space.fault(code)) is not None}
    assert faults == {}


def test_wrong_code_is_seen(tmp_path):
    with answers(tmp_path) as space:
        for code in ("x.str.uper()", "ds.group('k')", "x.dt.year() + x.str.upper()", "sum_(x.str.upper())", "1 +"):
            assert space.fault(code) is not None, code


def test_an_answer_has_code_or_a_reason():
    for library, parts in NAMES.items():
        for part, rows in parts.items():
            for name, answer in rows.items():
                assert "`" in answer or answer.startswith("no: "), (library, part, name)


def test_the_pages_have_each_name():
    for library in PAGES:
        page = names_page(library)
        for part, rows in NAMES[library].items():
            assert all(f"| `{name}` | " in page for name in rows), part


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda d: col("a").arccos(), "an expression has no 'arccos': write x.acos()"),
        (lambda d: col("a").is_not_nan(), "an expression has no 'is_not_nan': write ~x.is_nan()"),
        (lambda d: col("b").str.swapcase(), ".str has no 'swapcase': write x.str.translate('aA', 'Aa')"),
        (lambda d: col("b").dt.is_leap_year(), ".dt has no 'is_leap_year': write make_date("),
        (lambda d: col("b").list.gather([0]), ".list has no 'gather': write array("),
        (lambda d: d.bottom_k(5, by="a"), "a data set has no 'bottom_k': write ds.top(5, 'x', descending=False)"),
        (lambda d: d.set_index("a"), "a data set has no 'set_index': rows have no labels"),
        (lambda d: d.hstack(d), "a data set has no 'hstack': write ds.join(other, on='k', suffix='_r')"),
        (lambda d: d.partition_by("a"), "a data set has no 'partition_by': write ds.group_by('k').reduce(f)"),
        (lambda d: cs.alpha(), "drey.selectors has no 'alpha': write cs.matches('^[A-Za-z]+$')"),
        (lambda d: cs.numerik(), "drey.selectors has no 'numerik': did you mean 'numeric'?"),
        (lambda d: d.group_by("a").n_unique(), "group_by() has no 'n_unique': write "),
        (lambda d: d.group_by("a").ngroup(), "group_by() has no 'ngroup': write dense_rank().over(order_by='k') - 1"),
    ],
)
def test_the_error_of_a_name_says_its_answer(mistake, message):
    with Environment() as env, pytest.raises(AttributeError, match=re.escape(message)):
        mistake(env.from_dict({"a": [1], "b": ["x"]}))
