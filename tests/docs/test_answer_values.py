"""An answer for a name of another library gives the values that the name has there."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import engine
from engine import DataSet, Environment, selectors
from engine.column_expressions.aggregates import Aggregate
from engine.foreign_names import NAMES
from tests.docs.answer_values import PANDAS, POLARS, SPARK, TIMES, Columns
from tests.spark.conftest import spark

__all__ = ["spark"]

_OTHER = {"k": ["a", "b"], "x": [10, 20]}


def plain(value: Any) -> Any:
    """Return a value without the types that libraries have for it: no NaN, floats of twelve digits."""
    if isinstance(value, list | tuple | pl.Series):
        return [plain(one) for one in value]
    if value is None or value is pd.NaT:
        return None
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None if math.isnan(value) else round(float(value), 12)
    return value


def answered(environment: Environment, library: str, part: str, name: str, columns: Columns) -> Any:
    """Return the values of the first code of an answer: of a data set, the last column."""
    code = re.findall("`([^`]+)`", NAMES[library][part][name])[0]
    data = environment.from_arrow(pa.table(columns))
    space = {each: getattr(engine, each) for each in engine.__all__} | {"pa": pa, "cs": selectors, "datetime": datetime}
    space |= {"ds": data, "other": environment.from_dict(_OTHER), "x": engine.col("x"), "y": engine.col("y")}
    found = eval(code, space)
    if isinstance(found, Aggregate):
        found = data.agg(v=found)
    elif not isinstance(found, DataSet):
        found = data.with_row_index("row").select("row", v=found).sort("row")
    return plain(list(found.to_dict().values())[-1])


def of_polars(code: str, columns: Columns) -> Any:
    data, other = pl.DataFrame(columns), pl.DataFrame(_OTHER)
    found = eval(code, {"pl": pl, "data": data, "other": other, "x": pl.col("x"), "y": pl.col("y")})
    return plain((data.select(found) if isinstance(found, pl.Expr) else found).to_series(-1))


def of_pandas(code: str, columns: Columns) -> Any:
    data, other = pd.DataFrame(columns), pd.DataFrame(_OTHER)
    found = eval(code, {"pd": pd, "data": data, "other": other, "x": data.get("x"), "y": data.get("y")})
    return plain(found.tolist() if isinstance(found, pd.Series) else [found])


def wrong(library: str, rows: Any, wanted: Callable[[Any, Columns], Any]) -> dict[str, Any]:
    """Return the names whose answers give other values, with these and the wanted ones."""
    found = {}
    with Environment(config={"parallelism.default": 1}) as environment:
        for part, name, columns, origin in rows:
            values, right = answered(environment, library, part, name, columns), wanted(origin, columns)
            if values != right:
                found[f"{part}.{name}"] = values, right
    return found


def test_answers_give_what_polars_gives():
    assert wrong("Polars", POLARS, of_polars) == {}


def test_answers_give_what_pandas_gives():
    assert wrong("pandas", PANDAS, of_pandas) == {}


def test_answers_give_what_spark_gives():
    rows = [(part, name, columns, values) for part, name, columns, _, values in SPARK]
    assert wrong("PySpark", rows, lambda values, _columns: plain(values)) == {}


@pytest.mark.spark
def test_values_of_spark_are_what_it_gives(spark):
    from pyspark.sql import functions

    for _, name, columns, code, values in SPARK:
        data = spark.createDataFrame(pa.table(columns))
        found = eval(code, {"data": data, "F": functions}) if "data." in code else data.selectExpr(code)
        assert plain([row[-1] for row in found.collect()]) == plain(values), name


def test_other_values_are_seen():
    rows = [("Expr.dt", "millisecond", TIMES, "x.dt.microsecond()"), ("Expr.str", "reverse", {"x": ["ab"]}, "x")]
    assert wrong("Polars", rows, of_polars).keys() == {"Expr.dt.millisecond", "Expr.str.reverse"}
