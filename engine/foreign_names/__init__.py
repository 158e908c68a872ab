"""The names of Polars, PySpark and pandas, and what is written here for each.

    NAMES["Polars"]["Expr"]["arccos"]      "`x.acos()`"

A row of the modules has names that share an answer, and the answer. Code stands between backticks, and each piece of
it is Python that a test runs: ``x`` and ``y`` are columns, ``ds`` and ``other`` data sets, ``env`` their environment,
``f`` a function of the user. ``@`` is the name itself. An answer that begins with ``no:`` says why a name has no
counterpart.

A test holds that each public name of the three libraries has an answer. The pages of the names are made of these rows,
and an AttributeError for one of the names says the answer.

polars_expressions.py    Polars' expressions; polars_namespaces.py: texts, times, lists and the rest
polars_frames.py         its frames, groups and selectors
spark_functions.py       ``pyspark.sql.functions``: values; spark_collections.py: lists, maps, aggregates, windows
spark_frames.py          DataFrame, GroupedData, Column
module_functions.py      functions of the modules polars and pandas
pandas_names.py          Series, DataFrame, accessors, groups

Held by: tests/docs/test_names_pages.py
"""

from __future__ import annotations

from typing import Final

from engine.foreign_names import (
    module_functions,
    pandas_names,
    polars_expressions,
    polars_frames,
    polars_namespaces,
    spark_collections,
    spark_frames,
)
from engine.foreign_names.polars_expressions import Rows


def _by_name(rows: Rows) -> dict[str, str]:
    """Return the answers by name; a name that stands in two rows is a mistake of the table."""
    found: dict[str, str] = {}
    for names, answer in rows:
        for name in names.split():
            if name in found:
                raise ValueError(f"{name} has two answers: {found[name]} and {answer}")
            found[name] = answer.replace("@", name)
    return found


_POLARS: Final[dict[str, Rows]] = {
    "Expr": polars_expressions.EXPR,
    "Expr.str": polars_namespaces.STR,
    "Expr.dt": polars_namespaces.DT,
    "Expr.list": polars_namespaces.LIST,
    "Expr.arr": polars_namespaces.ARR,
    "Expr.struct": polars_namespaces.STRUCT,
    "Expr.cat": polars_namespaces.CAT,
    "Expr.bin": polars_namespaces.BIN,
    "Expr.name": polars_expressions.NAME,
    "Expr.meta": polars_expressions.META,
    "Expr.ext": polars_expressions.EXT,
    "LazyFrame": polars_frames.LAZY_FRAME,
    "DataFrame": polars_frames.DATA_FRAME,
    "GroupBy": polars_frames.GROUP_BY,
    "selectors": polars_frames.SELECTORS,
    "polars": module_functions.POLARS,
}
_SPARK: Final[dict[str, Rows]] = {
    "functions": spark_collections.FUNCTIONS,
    "DataFrame": spark_frames.DATA_FRAME,
    "GroupedData": spark_frames.GROUPED_DATA,
    "Column": spark_frames.COLUMN,
}
_PANDAS: Final[dict[str, Rows]] = {
    "Series and DataFrame": pandas_names.FRAME,
    "Series.str": pandas_names.STR,
    "Series.dt": pandas_names.DT,
    "groupby": pandas_names.GROUP_BY,
    "pandas": module_functions.PANDAS,
}
#: library -> part of it -> name -> answer
NAMES: Final[dict[str, dict[str, dict[str, str]]]] = {
    library: {part: _by_name(rows) for part, rows in parts.items()}
    for library, parts in (("Polars", _POLARS), ("PySpark", _SPARK), ("pandas", _PANDAS))
}
