"""Functions of several values of a row, called by their names: ``coalesce(col("a"), col("b"), 0)``.

Held by: tests/api/test_documented_functions.py
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from engine.column_expressions.expression import Expr, to_expression
from engine.column_expressions.intervals import interval, units_of
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.expressions.lambda_bodies import ELEMENT_ITSELF
from engine.expressions.literals import make_literal, refuse_texts_alone
from engine.graph.expression import SQL_TEXT, Call, ColumnRef

if TYPE_CHECKING:
    from engine.choices import SequenceEnds


def _call(function: str, values: tuple[Any, ...]) -> Expr:
    if not values:
        raise SchemaError(f"{function}(): give it at least one value")
    return Expr(Call(function, tuple(map(to_expression, values))))


def coalesce(*values: Any) -> Expr:
    """Return the first value that is not null; all widen to their common type.

    >>> values(coalesce(col("x"), col("y"), 0), x=[1, None, None], y=[7, 8, None])
    [1, 8, 0]
    """
    if len(values) > 1 and isinstance(values[0], str):
        raise SchemaError(
            f"coalesce({values[0]!r}, ...): a text is a constant here, which is never null; write"
            f" coalesce(col({values[0]!r}), ...) for the column"
        )
    return _call("coalesce", values)


def least(*values: Any) -> Expr:
    """Return the least value; nulls are passed over, NaN is the greatest number.

    >>> values(least(col("x"), col("y"), 3), x=[1, 5, None], y=[2, 4, 9])
    [1, 3, 3]
    """
    refuse_texts_alone("least", values)
    return _call("least", values)


def greatest(*values: Any) -> Expr:
    """Return the greatest value; nulls are passed over, NaN is the greatest number.

    >>> values(greatest(col("x"), col("y")), x=[1, 5, None], y=[2, 4, None])
    [2, 5, None]
    """
    refuse_texts_alone("greatest", values)
    return _call("greatest", values)


def array(*values: Any) -> Expr:
    """Return the list of some values of each row; all widen to their common type.

    >>> values(array(col("x"), 0), x=[1, None])
    [[1, 0], [None, 0]]
    """
    return _call("array", values)


def struct(**fields: Any) -> Expr:
    """Return a struct of some values of each row, by their names.

    >>> values(struct(a=col("x"), b="c"), x=[1, None])
    [{'a': 1, 'b': 'c'}, {'a': None, 'b': 'c'}]
    """
    if not fields:
        raise SchemaError("struct(): give it at least one field, as in struct(name=col('a'))")
    names: dict[str, bool | int | float | str | None] = {}
    names |= {str(index): check_column_name(name, "struct") for index, name in enumerate(fields)}
    return Expr(Call("struct", tuple(map(to_expression, fields.values())), names))


def map_from(keys: Any, values: Any) -> Expr:
    """Return the map of a list of keys and one of values; a null key, one twice, or two lengths fail the job.

    >>> values(map_from(col("k"), col("v")), k=[["a", "b"], None], v=[[1, 2], [3]])
    [[('a', 1), ('b', 2)], None]
    """
    return Expr(Call("map_from", (to_expression(keys), to_expression(values))))


def map_from_entries(entries: Any) -> Expr:
    """Return the map of a list of structs of a key and a value; a null key or entry, or a key twice, fail the job.

    >>> values(map_from_entries(array(struct(key=col("k"), value=1))), k=["a", "b"])
    [[('a', 1)], [('b', 1)]]
    """
    return Expr(Call("map_from_entries", (to_expression(entries),)))


def make_date(year: Any, month: Any, day: Any) -> Expr:
    """Return the date of a year, a month and a day; one that no calendar has fails the job.

    >>> values(make_date(col("y"), 2, 29), y=[2024, None])
    [datetime.date(2024, 2, 29), None]
    """
    return _call("make_date", (year, month, day))


def make_time(hour: Any, minute: Any, second: Any = 0) -> Expr:
    """Return the time of day of an hour, a minute and seconds, which may have a fraction; 24:00 fails the job.

    >>> values(make_time(col("h"), 30, 1.5), h=[13])
    [datetime.time(13, 30, 1, 500000)]
    """
    return _call("make_time", (hour, minute, second))


def make_timestamp(year: Any, month: Any, day: Any, hour: Any = 0, minute: Any = 0, second: Any = 0) -> Expr:
    """Return the timestamp of a date and a time of day; ``.dt.with_timezone`` gives it a zone.

    >>> values(make_timestamp(col("y"), 2, 29, 12), y=[2024])
    [datetime.datetime(2024, 2, 29, 12, 0)]
    """
    return _call("make_timestamp", (year, month, day, hour, minute, second))


def sequence(start: Any, stop: Any, step: Any = None, closed: SequenceEnds = "both") -> Expr:
    """Return the list of integers, dates or timestamps from one to another, by a step: 1, or a day.

    A step of moments is an interval or a text such as "15 minutes". Where it leads away there is no element. closed:
    "both", or "left" without the end.

    >>> values(sequence(1, col("x")), x=[3, 0])
    [[1, 2, 3], []]
    >>> values(sequence(col("d"), col("d") + interval(days=2), "1 day").list.length(), d=[datetime.date(2024, 2, 29)])
    [3]
    """
    if closed not in ("both", "left"):
        raise SchemaError(f"sequence(closed={closed!r}): choose one of both, left")
    if isinstance(step, str | timedelta):
        step = interval(**units_of(step, "sequence"))
    values = (start, stop) if step is None else (start, stop, step)
    return Expr(Call("sequence", tuple(map(to_expression, values)), {"closed": closed}))


def now() -> Expr:
    """Return the moment at which this is called, in UTC: one moment for all rows and subtasks.

    >>> values(now() > datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC))
    [True]
    """
    from datetime import UTC, datetime

    return Expr(make_literal(datetime.now(UTC)))


def current_date(timezone: str = "UTC") -> Expr:
    """Return the date at which this is called, in a time zone: one date for all rows and subtasks.

    >>> values(current_date("Asia/Tokyo") > datetime.date(2024, 1, 1))
    [True]
    """
    return now().dt.to_timezone(timezone).dt.date()


def element() -> Expr:
    """Return the element of a list, within ``list.transform``, ``list.filter`` and the like.

    >>> values(col("x").list.transform(element() * 2), x=[[1, 2], []])
    [[2, 4], []]
    """
    return Expr(ColumnRef(ELEMENT_ITSELF))


def format_(pattern: str, *values: Any) -> Expr:
    """Return a text with values at the places of ``{}``, as a cast to string writes them; null where one is null.

    ``{{`` and ``}}`` are braces. What else stands in braces is an error: round or pad the value first.

    >>> values(format_("{}: {} of 3", col("x"), col("n")), x=["a", None], n=[1, 2])
    ['a: 1 of 3', None]
    """
    parts = re.split(r"(\{\{|\}\}|\{[^{}]*\})", pattern)
    places = [part for part in parts[1::2] if part not in ("{{", "}}")]
    if set(places) - {"{}"} or len(places) != len(values) or re.search("[{}]", "".join(parts[::2])):
        raise SchemaError(f"format_({pattern!r}): write {{}} at the place of each of the {len(values)} values")
    waiting, texts, text = iter(values), list[Any](), ""
    for at, part in enumerate(parts):
        if at % 2 and part == "{}":
            texts += [text] * bool(text) + [Expr(to_expression(next(waiting))).cast("string")]
            text = ""
        else:
            text += part[0] if at % 2 else part
    texts += [text] * bool(text or not texts)
    return Expr(Call("str_concat", tuple(map(to_expression, texts)), {"separator": ""}))


def expr(text: str) -> Expr:
    """Return the expression that a text of SQL is over the columns of a data set, in select, filter and the like.

    Functions, casts, CASE and windows are those of ``env.sql``; queries and aggregates stand in a query alone.

    >>> with Environment() as env:
    ...     env.sequence(1, 2, name="a").select(expr("a + 1").alias("b")).to_arrow().column("b").to_pylist()
    [2, 3]
    """
    if not isinstance(text, str) or not text.strip():
        raise SchemaError(f"expr({text!r}): write an expression of SQL, such as expr('upper(name)')")
    return Expr(Call(SQL_TEXT, (), {"text": text.strip()}), text.strip())


def hash64(*values: Any) -> Expr:
    """Return a hash of some values as int64: Spark's xxhash64, the same everywhere and in every release.

    The type counts: an int32 and an int64 of the same value differ. Null leaves the hash of the values before it.

    >>> values(hash64(col("x"), col("y")), x=[1, None], y=["a", "a"])
    [-8527884376001292090, -8582455328737087284]
    """
    refuse_texts_alone("hash64", values)
    return _call("hash64", values)


def rand(seed: int | None = None) -> Expr:
    """Return a number from 0 up to 1 for each row, in ``select`` and ``with_columns``.

    A seed gives the same numbers to the same rows behind a source that is read in the same splits by as many subtasks;
    behind an exchange, such as a join's, rows come in another order each time. Without a seed one is drawn here. For a
    value that stays with the row take ``hash64`` of its key.

    >>> values(rand(7) < 1)
    [True]
    """
    if seed is None:
        import secrets

        seed = secrets.randbits(62)
    if isinstance(seed, bool) or not isinstance(seed, int) or not -(2**63) <= seed < 2**63:
        raise SchemaError(f"rand({seed!r}): the seed is an int of 64 bits")
    return Expr(Call("rand", (), {"seed": seed}))


def row_place() -> Expr:
    """Return a number that grows from row to row, with gaps, in ``select`` and ``with_columns``.

    It is the subtask's number and the row's within it: the order in which ``collect()`` gives the rows. Spark calls it
    ``monotonically_increasing_id``. ``with_row_index`` numbers rows without gaps.

    >>> values(row_place(), x=["a", "b", "c"])
    [0, 1, 2]
    """
    return Expr(Call("row_place", ()))
