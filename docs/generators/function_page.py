"""The page of all functions: what the table says of each, with the text and example of its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from docs.generators.directives import directives
from docs.generators.function_languages import NOT_IN_SQL
from docs.generators.function_places import NAMESPACES, OPERATORS, face_of, faces
from engine.graph.function_table import FUNCTION_TABLE

_HEAD = """# Functions

The methods of expressions such as `col("x")`, and the functions of the package `drey`. Types are checked when an
expression is used, before anything runs; the error names the expression, its types and what to do.

In the examples, `values(expression, x=[...])` is short for the result over a small table:
`env.from_arrow(pa.table({"x": [...]})).select(expression).to_arrow()`.

- **null**: a function returns null if an argument is null, unless its text says otherwise.
- **may fail**: for some values there is no result, and the job fails with an error that shows the row. Exclude such
  values with `when`. Filters with such a function are not moved before joins. Functions of text fail for bytes that
  are not UTF-8.
- All functions work with `-t spark`. If Spark has no function with exactly the same results, the engine computes it
  there.
- **same type** means [the common type](../guide/expressions.md#two-types-in-one-column) of the arguments.

## Where others differ

| what | here | as | otherwise |
|---|---|---|---|
| `round` of a half | away from zero | SQL, Spark, DuckDB | Python, Polars: to the even digit |
| `least`, `greatest` with null | nulls are ignored | Spark, DuckDB, Polars | MySQL, Snowflake: null |
| NaN | the greatest number, equals itself | Spark, DuckDB, PostgreSQL | Polars' `min` and `max` ignore it |
| `sqrt(-1)`, `ln(-1)` | NaN | Polars, Spark (`sqrt`) | DuckDB: an error; Spark's `ln`: null |
| `ln(0)` | -inf | Polars, NumPy | DuckDB: an error; Spark: null |
| `power` of integers | float64 | Spark, DuckDB | Python, Polars: an integer |
| `floor`, `round(1)` of decimals | the result has the requested scale | Spark, DuckDB | Polars: the same type |
| `floor`, `ceil` of integers | integers | Polars | DuckDB: floats |
| integers that overflow | an error | DuckDB, Spark's ANSI mode | Polars: wrap around |
| `extract` without a match | null | Polars | DuckDB, Spark: the empty text |
| a group of `extract` that took no part | the empty text | DuckDB, Spark | Polars: null |
| `split_part` beyond the last part | the empty text | PostgreSQL, DuckDB, Spark | Polars: null |
| `find` where nothing is found | -1, and positions from 0 | Python | DuckDB: 0, from 1; Polars: null, in bytes |
| `pad_left` of longer texts | not changed | Python, Polars | DuckDB, Spark: cut off |
| `concat` with null | null | Spark, Polars | DuckDB: nulls are ignored, as in `concat_ws` |
| a date and `timedelta(days=1)` | a date | Python, Polars, Spark | DuckDB: a timestamp |
| `interval(months=1)` after Jan 31 | the month's last day | SQL, Spark, DuckDB, Polars | |
| `interval(days=1)` where clocks change | the same time of day | Spark, DuckDB, Polars | a `timedelta` is 24 hours |
| `dt.diff` in months | whole months, by day and time of day | Java, Spark | DuckDB: Jan 31 to Feb 29 is one |
| `last_day` of a timestamp | a date | Spark, DuckDB | Polars: a timestamp |
| `weekday` | 0 on Monday | Python | Polars: 1 on Monday; DuckDB, Spark: from Sunday |
| `day < "1998-09-02"` | the text is a date | SQL, Spark, DuckDB | Polars: an error |
| `list.get` beyond the end | null | DuckDB, Spark's `get` | Polars: an error |
| positions in lists | from 0 | Polars, Spark's `get` | DuckDB: from 1 |
| nulls among elements in `sum`, `min`, `max`, `join` | ignored | Polars, DuckDB | |
| `list.contains` where elements are null | false | DuckDB, Polars | Spark: null |
| a key twice in a map | allowed in data that is read; `get` returns the first value | | Spark, DuckDB: an error |
| `map.concat` with a key twice | an error | Spark | DuckDB's `map_concat`: the last value |
| `now` | the moment at which the job is submitted | Spark | Polars: none; pandas: when it is called |
| `sequence` by months from Jan 31 | Feb 29, Mar 31 | Spark, Polars | DuckDB: Feb 29, Mar 29 |
| `truncate("2 weeks")` | from Monday 1970-01-05 | Polars | DuckDB's `time_bucket`: from 2000-01-03 |
| `jaro` and `jaro_winkler` | count characters | | DuckDB: bytes |
| `replace_strict` of a value that is no key | an error, or the default | Polars | |
| `hash64` | XXH64 with seed 42, chained | Spark's `xxhash64` | DuckDB, Polars: other hashes, not stable |
| `levenshtein` | counts characters | Spark | DuckDB: bytes |
| `json_get` of what is no JSON | null | Spark | DuckDB, Polars: an error |
| bits beyond 64 in `shift_left` | dropped | Spark, Polars | DuckDB: an error |
"""
_GROUPS: tuple[tuple[str, str], ...] = (
    ("Values", ""),
    *((f"`.{name}`", prefix) for prefix, (name, _) in NAMESPACES.items()),
)


def _signature(face: str, function: Callable[..., Any]) -> str:
    """Return how a function is called, without annotations."""
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parameters.append(f"{star}{parameter.name}{default}")
    return f"{face}({', '.join(parameters)})"


def _facts(name: str) -> str:
    """Return what the table says of a function, in words."""
    row = FUNCTION_TABLE.get(name)
    if row is None:
        return ""
    results = {"first": "the type of the value", "same": "the common type", "-": "see above"}
    words = [f"arguments: {', '.join(row.arguments)}", f"result: {results.get(row.result, row.result)}"]
    if row.fails != "never":
        words.append("may fail" if row.fails == "values" else "fails for bytes that are no UTF-8")
    if not row.is_deterministic:
        words.append("another value each time")
    if name in NOT_IN_SQL:
        words.append(f"not a function of SQL: {NOT_IN_SQL[name]}")
    return "; ".join(words).replace("*", "\\*")


def _entry(face: str, function: Callable[..., Any], name: str) -> list[str]:
    text, _, example = inspect.cleandoc(function.__doc__ or "").partition(">>> ")
    lines = [f"### `{_signature(face, function)}`", "", text.strip(), ""]
    if example:
        lines += ["```pycon", f">>> {example.strip()}", "```", ""]
    facts = _facts(name)
    return [*lines, facts, ""] if facts else lines


def function_page() -> str:
    """Return the page, in Markdown."""
    lines = [_HEAD, "## Operators", "", "| operator | arguments and result |", "|---|---|"]
    for name, (written, _) in OPERATORS.items():
        shown = written.replace("|", "&#124;")
        lines.append(f"| <code>{shown}</code> | {_facts(name)} |")
    lines.append("")
    known = {face_of(name): name for name in FUNCTION_TABLE}
    found = faces()
    for title, prefix in _GROUPS:
        namespace = NAMESPACES[prefix][0] + "." if prefix else ""
        lines += [f"## {title}", ""]
        for face, function in sorted(found.items()):
            if face.startswith(namespace) if namespace else "." not in face:
                lines += _entry(face, function, known.get(face, face))
    lines.append(directives())
    return "\n".join(lines)
