"""What a code of the table of traps gives: in each library, over the columns of the table."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import engine
from docs.generators.trap_rows import COLUMNS
from engine import DataSet, Environment
from engine.column_expressions.expression import Expr


class Libraries:
    """The libraries, each with the columns as its ``data``."""

    def __init__(self, environment: Environment, spark: Any = None) -> None:
        table = pa.table(COLUMNS)
        names = {name: getattr(engine, name) for name in engine.__all__}
        self._spaces: dict[str, dict[str, Any]] = {
            "drey": {**names, "data": environment.from_arrow(table)},
            "polars": {"pl": pl, "data": pl.DataFrame(COLUMNS)},
            "pandas": {"pd": pd, "data": pd.DataFrame(COLUMNS)},
        }
        if spark is not None:
            from pyspark.sql import Window, functions

            data = spark.createDataFrame(table)
            self._spaces["spark"] = {"F": functions, "Window": Window, "data": data}

    def value(self, library: str, code: str) -> str:
        """Return what a code gives, as text; "an error" where it fails."""
        space = self._spaces[library]
        try:
            found = _plain(eval(code, dict(space)), space["data"])
        except Exception:
            return "an error"
        return repr(found)


def _plain(found: Any, data: Any) -> Any:
    """Return Python values: of a column a list, of one value itself."""
    if isinstance(found, Expr | pl.Expr) or type(found).__name__ == "Column":
        found = data.select(found)
    if isinstance(found, DataSet):
        rows = [list(row.values()) for row in found.to_dicts()]
    elif isinstance(found, pl.DataFrame):
        rows = [list(row) for row in found.rows()]
    elif hasattr(found, "toPandas"):
        rows = [list(row) for row in found.collect()]
    elif isinstance(found, pd.Series):
        rows = [[value] for value in found.tolist()]
    else:
        return _value(found)
    values = [_value(value) for (value,) in rows]
    return values[0] if len(values) == 1 else values


def _value(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return _NAN
    return round(value, 12) if isinstance(value, float) else value


class _NaN:
    def __repr__(self) -> str:
        return "NaN"


_NAN = _NaN()


@contextlib.contextmanager
def libraries(spark: Any = None) -> Iterator[Libraries]:
    """Open the libraries; with a session, Spark too."""
    with Environment(config={"parallelism.default": 1}) as environment:
        yield Libraries(environment, spark)
