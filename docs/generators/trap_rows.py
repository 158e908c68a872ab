"""The names and calls that mean one thing here and another in Polars, pandas or PySpark: the table of traps.

    trap_page() -> Markdown       ROWS: what is written in each library over COLUMNS, and what comes out

A code is an expression to select (here, Polars, PySpark), or a call on ``data``. Values are texts of Python values.

Held by: tests/docs/test_traps.py
"""

from __future__ import annotations

import datetime
from typing import Final, NamedTuple

COLUMNS: Final = {
    "x": [1.0, None, 3.0],
    "s": ["b", "a", "c"],
    "h": [0.5, 1.5, 2.5],
    "r": [7, 7, 8],
    "day": [datetime.date(2026, 1, 5)] * 3,
    "t": ["abcdef", "vwxyz", ""],
    "nan": [1.0, float("nan"), 2.0],
    "w": ["1-22", "ß", "aa"],
    "at": [datetime.datetime(2026, 1, 5, 10, 0, 5, 123456)] * 3,
    "items": [[], [1, 2], None],
}


class Cell(NamedTuple):
    """One library's code and what it gives."""

    code: str
    values: str


class Trap(NamedTuple):
    """A row of the table; None: the library has nothing of that name."""

    what: str
    drey: Cell
    polars: Cell | None
    pandas: Cell | None
    spark: Cell | None
    #: advice for those that come from elsewhere
    advice: str


ROWS: Final = (
    Trap(
        "a text in `then`",
        Cell('when(col("x") > 0).then("s")', "['s', None, 's']"),
        Cell('pl.when(pl.col("x") > 0).then("s")', "['b', None, 'c']"),
        None,
        Cell('F.when(F.col("x") > 0, "s")', "['s', None, 's']"),
        'Polars reads a text as a column: write `col("s")` for the column',
    ),
    Trap(
        "`slice` of a text",
        Cell('col("t").str.slice(1, 3)', "['bc', 'wx', '']"),
        Cell('pl.col("t").str.slice(1, 3)', "['bcd', 'wxy', '']"),
        Cell('data["t"].str.slice(1, 3)', "['bc', 'wx', '']"),
        Cell('F.substring("t", 1, 3)', "['abc', 'vwx', '']"),
        "here start and stop, as in Python; in Polars start and length, in Spark from 1",
    ),
    Trap(
        "`weekday`",
        Cell('col("day").dt.weekday()', "[0, 0, 0]"),
        Cell('pl.col("day").dt.weekday()', "[1, 1, 1]"),
        Cell('pd.to_datetime(data["day"]).dt.weekday', "[0, 0, 0]"),
        Cell('F.dayofweek("day")', "[2, 2, 2]"),
        "here 0 on Monday, as in Python",
    ),
    Trap(
        "the sum of an empty list",
        Cell('col("items").list.sum()', "[None, 3, None]"),
        Cell('pl.col("items").list.sum()', "[0, 3, None]"),
        None,
        Cell('F.aggregate("items", F.lit(0).cast("bigint"), lambda one, two: one + two)', "[0, 3, None]"),
        "`.fill_null(0)`",
    ),
    Trap(
        "the sum of no values",
        Cell('data.filter(col("x") > 9).agg(v=sum_("x"))', "None"),
        Cell('data.filter(pl.col("x") > 9).select(pl.col("x").sum())', "0.0"),
        Cell('data[data["x"] > 9]["x"].sum()', "0.0"),
        Cell('data.filter("x > 9").agg(F.sum("x"))', "None"),
        'null, as in SQL: `coalesce(sum_("x"), 0)`',
    ),
    Trap(
        "`round` of a half",
        Cell('col("h").round()', "[1.0, 2.0, 3.0]"),
        Cell('pl.col("h").round()', "[0.0, 2.0, 2.0]"),
        Cell('data["h"].round()', "[0.0, 2.0, 2.0]"),
        Cell('F.round("h")', "[1.0, 2.0, 3.0]"),
        "away from zero, as in SQL",
    ),
    Trap(
        "`rank` of equal values",
        Cell('rank().over(order_by="r")', "[1, 1, 3]"),
        Cell('pl.col("r").rank()', "[1.5, 1.5, 3.0]"),
        Cell('data["r"].rank()', "[1.5, 1.5, 3.0]"),
        Cell('F.rank().over(Window.orderBy("r"))', "[1, 1, 3]"),
        '`rank(method="average")`',
    ),
    Trap(
        "`contains` of a text",
        Cell('col("t").str.contains(".")', "[False, False, False]"),
        Cell('pl.col("t").str.contains(".")', "[True, True, False]"),
        Cell('data["t"].str.contains(".")', "[True, True, False]"),
        Cell('F.col("t").contains(".")', "[False, False, False]"),
        "plain text; a pattern with `regex=True`",
    ),
    Trap(
        "a quantile between two values",
        Cell('data.agg(v=quantile("r", 0.6))', "7.2"),
        Cell('data.select(pl.col("r").quantile(0.6))', "7.0"),
        Cell('data["r"].quantile(0.6)', "7.2"),
        Cell('data.agg(F.percentile("r", 0.6))', "7.2"),
        "interpolated; Polars takes the nearest",
    ),
    Trap(
        "the name of an expression",
        Cell('data.with_columns(col("r") + 1).columns[-1:]', "['r + 1']"),
        Cell('data.with_columns(pl.col("r") + 1).columns[-1:]', "['items']"),
        None,
        Cell('data.select(F.col("r") + 1).columns', "['(r + 1)']"),
        'the text of the expression is a new column; `r=col("r") + 1` or `.name.keep()` replaces it',
    ),
    Trap(
        "a float as an integer",
        Cell('col("h").cast("int64")', "an error"),
        Cell('pl.col("h").cast(pl.Int64)', "[0, 1, 2]"),
        Cell('data["h"].astype("int64")', "[0, 1, 2]"),
        Cell('F.col("h").cast("bigint")', "[0, 1, 2]"),
        "`.floor()`, `.ceil()` or `.round()` first",
    ),
    Trap(
        "nulls in a sort",
        Cell('data.sort("x").select("x")', "[None, 1.0, 3.0]"),
        Cell('data.sort("x").select("x")', "[None, 1.0, 3.0]"),
        Cell('data.sort_values("x")["x"]', "[1.0, 3.0, NaN]"),
        Cell('data.sort("x").select("x")', "[None, 1.0, 3.0]"),
        "`nulls_last=True`",
    ),
    Trap(
        "the greatest number beside NaN",
        Cell('data.agg(v=max_("nan"))', "NaN"),
        Cell('data.select(pl.col("nan").max())', "2.0"),
        Cell('data["nan"].max()', "2.0"),
        Cell('data.agg(F.max("nan"))', "NaN"),
        'NaN is the greatest; leave it out with `filter=~col("nan").is_nan()`',
    ),
    Trap(
        "equal keys that are null",
        Cell('data.join(data, on="x", suffix="_r").count()', "2"),
        Cell('data.join(data, on="x").height', "2"),
        Cell('len(data.merge(data, on="x"))', "3"),
        Cell('data.join(data, on="x").count()', "2"),
        "`null_safe=True`",
    ),
    Trap(
        "different values with a null",
        Cell('data.agg(v=count_distinct("x"))', "2"),
        Cell('data.select(pl.col("x").n_unique())', "3"),
        Cell('data["x"].nunique()', "2"),
        Cell('data.agg(F.countDistinct("x"))', "2"),
        '`select("x").distinct().count()` counts null, too',
    ),
    Trap(
        "division by zero",
        Cell('col("r") / 0', "[inf, inf, inf]"),
        Cell('pl.col("r") / 0', "[inf, inf, inf]"),
        Cell('data["r"] / 0', "[inf, inf, inf]"),
        Cell('F.col("r") / 0', "an error"),
        "`.nullif(0)` of what divides",
    ),
    Trap(
        "a place in a list that is not there",
        Cell('col("items").list.get(5)', "[None, None, None]"),
        Cell('pl.col("items").list.get(5)', "an error"),
        None,
        Cell('F.element_at("items", 6)', "an error"),
        "null; positions from 0",
    ),
    Trap(
        "`microsecond`",
        Cell('col("at").dt.microsecond()', "[456, 456, 456]"),
        Cell('pl.col("at").dt.microsecond()', "[123456, 123456, 123456]"),
        Cell('data["at"].dt.microsecond', "[123456, 123456, 123456]"),
        None,
        'here those behind the millisecond: `col("at").dt.epoch("us") % 1_000_000`',
    ),
    Trap(
        "`replace` in a text",
        Cell('col("w").str.replace("a", "b")', "['1-22', 'ß', 'bb']"),
        Cell('pl.col("w").str.replace("a", "b")', "['1-22', 'ß', 'ba']"),
        Cell('data["w"].str.replace("a", "b")', "['1-22', 'ß', 'bb']"),
        Cell('F.replace("w", F.lit("a"), F.lit("b"))', "['1-22', 'ß', 'bb']"),
        "here each place, in Polars the first one",
    ),
    Trap(
        "matches in a text",
        Cell('col("w").str.count_matches("[0-9]")', "[0, 0, 0]"),
        Cell('pl.col("w").str.count_matches("[0-9]")', "[3, 0, 0]"),
        Cell('data["w"].str.count("[0-9]")', "[3, 0, 0]"),
        Cell('F.regexp_count("w", F.lit("[0-9]"))', "[3, 0, 0]"),
        "plain text; a pattern with `regex=True`",
    ),
    Trap(
        "a text that is not found",
        Cell('col("t").str.find("a")', "[0, -1, -1]"),
        Cell('pl.col("t").str.find("a")', "[0, None, None]"),
        Cell('data["t"].str.find("a")', "[0, -1, -1]"),
        Cell('F.instr("t", "a")', "[1, 0, 0]"),
        "-1, as in Python; `.nullif(-1)`",
    ),
    Trap(
        "a text in upper case",
        Cell('col("w").str.upper()', "['1-22', 'ẞ', 'AA']"),
        Cell('pl.col("w").str.to_uppercase()', "['1-22', 'SS', 'AA']"),
        Cell('data["w"].str.upper()', "['1-22', 'SS', 'AA']"),
        Cell('F.upper("w")', "['1-22', 'SS', 'AA']"),
        "a letter stays one letter",
    ),
    Trap(
        "a null among the values of `is_in`",
        Cell('col("x").is_in([1.0, None])', "[True, None, None]"),
        Cell('pl.col("x").is_in([1.0, None])', "[True, None, False]"),
        Cell('data["x"].isin([1.0, None])', "[True, False, False]"),
        Cell('F.col("x").isin(1.0, None)', "[True, None, None]"),
        "null where nothing is equal, as in SQL; leave null out of the values",
    ),
    Trap(
        "a float as text",
        Cell('col("x").cast(str)', "['1', None, '3']"),
        Cell('pl.col("x").cast(pl.String)', "['1.0', None, '3.0']"),
        Cell('data["x"].astype(str)', "['1.0', 'nan', '3.0']"),
        Cell('F.col("x").cast("string")', "['1.0', None, '3.0']"),
        "the shortest text that reads back as the number",
    ),
    Trap(
        "the remainder of a negative number",
        Cell('-col("r") % 3', "[2, 2, 1]"),
        Cell('-pl.col("r") % 3', "[2, 2, 1]"),
        Cell('-data["r"] % 3', "[2, 2, 1]"),
        Cell('-F.col("r") % 3', "[-1, -1, -2]"),
        "the sign of the divisor, as in Python",
    ),
    Trap(
        "the skewness",
        Cell('data.agg(v=skewness("r"))', "1.732050807569"),
        Cell('data.select(pl.col("r").skew())', "0.707106781187"),
        Cell('data["r"].skew()', "1.732050807569"),
        Cell('data.agg(F.skewness("r"))', "0.707106781187"),
        "of a sample, as in pandas and DuckDB; `kurtosis` likewise",
    ),
    Trap(
        "columns of a union in another order",
        Cell('data.select("s", "t").union(data.select("t", "s")).select("s").distinct().count()', "3"),
        Cell('pl.concat([data.select("s", "t"), data.select("t", "s")])["s"].n_unique()', "an error"),
        Cell('pd.concat([data[["s", "t"]], data[["t", "s"]]])["s"].nunique()', "3"),
        Cell('data.select("s", "t").union(data.select("t", "s")).select("s").distinct().count()', "6"),
        "by name, in Spark by place; `rename` first",
    ),
)

_HEAD: Final = """# Traps: one name, two meanings

The same name, or the same idea, gives different values in Drey, Polars, pandas and PySpark. A test computes each
value below over these columns (on a Monday):

```python
{columns}
```

"""


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    code = cell.code.replace("|", "\\|")
    return f"`{code}`<br>`{cell.values}`"


def trap_page() -> str:
    """Return the page, in Markdown."""
    columns = ",\n".join(f"    {name!r}: {values!r}" for name, values in COLUMNS.items()).replace("nan]", "NaN]")
    columns = columns.replace(" nan,", " float('nan'),")
    lines = [_HEAD.format(columns=f"columns = {{\n{columns},\n}}")]
    lines += ["| | Drey | Polars | pandas | PySpark | what to write |", "|---|---|---|---|---|---|"]
    for row in ROWS:
        cells = (row.drey, row.polars, row.pandas, row.spark)
        lines.append(f"| {row.what} | {' | '.join(map(_shown, cells))} | {row.advice} |")
    return "\n".join([*lines, ""])
