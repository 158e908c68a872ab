"""The page of forms and defaults: places of nulls, regular expressions, decimals of results, texts in files.

forms_page() -> the page, in Markdown; every cell is what the engine does when the page is made

Held by: tests/docs/test_forms_page.py
"""

from __future__ import annotations

import datetime
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa

from engine import Environment, avg, col, row_number, sum_
from engine.errors import EngineError

_HEAD: Final = """# Forms and defaults

What is not said in a call, and how values look as text. Each cell of the tables is computed by the engine when this
page is built.
"""
_SORTS: Final = """
## Nulls in sorts

`nulls_last=`, or `NULLS FIRST` and `NULLS LAST` in SQL, says another place.
[Where nulls go](../guide/grouping.md#where-nulls-go) has the other calls.

| order | ascending | descending |
|---|---|---|
"""
_SORTS_ELSEWHERE: Final = """
Elsewhere: Polars puts nulls first in both, pandas last in both, Spark first in ascending and last in descending order;
DuckDB puts them last in both, and PostgreSQL last in ascending and first in descending order. NaN is greater than all
numbers.
"""
_PATTERNS: Final = """
## Regular expressions

They are those of [RE2](https://github.com/google/re2/wiki/Syntax), in the API and in SQL: time grows with the text, not
with the pattern. What RE2 lacks is an error before or while the job runs. The text is `Ab1 äb2`.

| pattern | means | matches |
|---|---|---|
"""
_DECIMALS: Final = """
## Decimals of results

`a` is `decimal(10, 2)`, `b` is `decimal(6, 4)`, and `n` is `int64`. A result that needs more than 38 digits is an error
that names the value. [Decimals](../guide/decimals.md) has the rules.

| expression | type |
|---|---|
"""
_TEXTS: Final = """
## Values as text in files

A row of each file, with the defaults of `write_csv` and `write_json`.

| value | CSV | JSON |
|---|---|---|
"""
#: patterns with what they mean
PATTERNS: Final = {
    "b[0-9]": "classes of characters",
    r"\d+": "digits of ASCII",
    r"\w+": "letters and digits of ASCII, `_`",
    r"b\d\b": "the border of a word",
    "(?i)AB": "flags: upper and lower case are the same",
    r"\p{L}+": "classes of Unicode",
    "(?P<name>b)([0-9])": "groups, with and without a name",
    "b.*?b": "as few as possible",
    "(?<=A)b": "looking behind",
    "b(?=1)": "looking ahead",
    r"(b)\1": "the same as a group before",
    "b++": "possessive quantifiers",
}
VALUES: Final = {
    "null": pa.array([None], pa.string()),
    "empty text": pa.array([""]),
    "text with a comma": pa.array(["a,b"]),
    "true": pa.array([True]),
    "double 1.0": pa.array([1.0]),
    "double 1e21": pa.array([1e21]),
    "NaN": pa.array([float("nan")]),
    "infinity": pa.array([float("inf")]),
    "decimal(5, 2)": pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
    "date": pa.array([datetime.date(2026, 3, 1)]),
    "time": pa.array([datetime.time(8, 5)], pa.time64("us")),
    "timestamp, us": pa.array([datetime.datetime(2026, 3, 1, 8, 5, 0, 120)], pa.timestamp("us")),
    "timestamp, Europe/Berlin": pa.array([datetime.datetime(2026, 3, 1, 8, 5)], pa.timestamp("s", "Europe/Berlin")),
    "duration, s": pa.array([90], pa.duration("s")),
    "binary": pa.array([b"ab"], pa.binary()),
    "list": pa.array([[1, None]]),
    "struct": pa.array([{"a": 1}]),
}


def forms_page() -> str:
    """Return the page."""
    with Environment({"parallelism.default": 1}) as env:
        return "".join(
            [
                _HEAD,
                _SORTS,
                *(_row(cells) for cells in sorts(env)),
                _SORTS_ELSEWHERE,
                _PATTERNS,
                *(_row((f"`{pattern}`", PATTERNS[pattern], found)) for pattern, found in patterns(env).items()),
                _DECIMALS,
                *(_row((f"`{text}`", f"`{kind}`")) for text, kind in decimals(env).items()),
                _TEXTS,
                *(_row((name, *cells)) for name, cells in texts(env).items()),
            ]
        )


def sorts(env: Environment) -> list[tuple[str, str, str]]:
    """Return calls with the place of nulls in ascending and descending order."""
    data = env.from_arrow(pa.table({"x": [1, None, 2]}))
    env.register("numbers", data)

    def place(values: list[int | None]) -> str:
        return "first" if values[0] is None else "last"

    def window(descending: bool) -> list[int | None]:
        numbered = data.with_columns(n=row_number().over(order_by="x", descending=descending))
        return [row.x for row in numbered.sort("n").collect()]

    def call(descending: bool) -> list[int | None]:
        return [row.x for row in data.sort("x", descending=descending).collect()]

    def query(descending: bool) -> list[int | None]:
        order = "DESC" if descending else "ASC"
        return [row.x for row in env.sql(f"SELECT x FROM numbers ORDER BY x {order}").collect()]  # noqa: S608

    found = {"`sort`": call, "`over(order_by=)`": window, "SQL `ORDER BY`": query}
    return [(name, place(rows(False)), place(rows(True))) for name, rows in found.items()]


def patterns(env: Environment) -> dict[str, str]:
    """Return patterns with what each finds, or that it is refused."""
    data = env.from_arrow(pa.table({"x": ["Ab1 äb2"]}))
    found = {}
    for pattern in PATTERNS:
        try:
            (row,) = data.select(all=col("x").str.extract_all(pattern)).collect()
            found[pattern] = ", ".join(f"`{text}`" for text in row.all) or "nothing"
        except EngineError:
            found[pattern] = "refused"
    return found


def decimals(env: Environment) -> dict[str, str]:
    """Return expressions over decimals with the types of their results."""
    a, b, n = col("a"), col("b"), col("n")
    schema = pa.schema([("a", pa.decimal128(10, 2)), ("b", pa.decimal128(6, 4)), ("n", pa.int64())])
    data = env.from_arrow(schema.empty_table())
    rows = {
        "a + b": a + b,
        "a * b": a * b,
        "a / b": a / b,
        "a % b": a % b,
        "a + n": a + n,
        "a * n": a * n,
        "a * 1.5 (a float)": a * 1.5,
        "a.round(1)": a.round(1),
    }
    found = {text: str(data.select(x=one).schema.field("x").type) for text, one in rows.items()}
    of_groups = data.agg(s=sum_("a"), m=avg("a")).schema
    return found | {"sum_(a)": str(of_groups.field("s").type), "avg(a)": str(of_groups.field("m").type)}


def texts(env: Environment) -> dict[str, tuple[str, str]]:
    """Return values with their texts in CSV and JSON."""
    return {name: (_written(env, value, "csv"), _written(env, value, "json")) for name, value in VALUES.items()}


def _written(env: Environment, value: pa.Array, kind: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            env.from_arrow(pa.table({"x": value})).write(kind, f"{folder}/out")
            env.execute()
        except EngineError:
            return "refused"
        (part,) = Path(folder, "out").iterdir()
        text = part.read_text(encoding="utf-8").rstrip("\n").replace("|", "\\|")
    return f"`{text}`" if text else "nothing"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |\n"
