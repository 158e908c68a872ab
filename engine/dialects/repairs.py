"""Forms of other dialects that sqlglot's translation leaves with another meaning than they have there.

    REPAIRS["spark"][exp.DayOfWeek]     dayofweek(d) ──► dayofweek(d) + 1: Sunday is 1 there, and 0 here

A repair takes a node of the dialect's tree and returns the node that means the same here. NotYetSupportedError names a
form that has no equal.

Held by: tests/sql/dialects/test_duckdb.py
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Any, Final

from sqlglot import exp

from engine.dialects.compared_rows import ROWS_OF_DUCKDB
from engine.dialects.element_forms import finished, flattened
from engine.dialects.shared_forms import (
    FUNCTIONS_OF_DUCKDB,
    PATTERNS,
    Repair,
    before_the_text,
    call,
    from_one,
    in_either_way,
    in_format,
    is_within,
    key_of_json,
    nothing_at_zero,
    number,
    numbers_between,
    of_no_length,
    of_rows,
    or_null,
    part_of_list,
    references,
    refused,
    to_whole,
)
from engine.dialects.spark_forms import SPARK_CALLS, SPARK_FORMS
from engine.errors import NotYetSupportedError

_UNITS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    **dict.fromkeys(("DAY", "DD"), "DAY"),
}
_DAYS: Final = ("DOW", "DAYOFWEEK")
#: letters of the formats of to_char and to_date in PostgreSQL, the longest first
_TO_CHAR: Final = {
    "HH24": "%H",
    "HH12": "%I",
    "YYYY": "%Y",
    "FMMonth": "%B",
    "FMDay": "%A",
    "FMMM": "%-m",
    "FMDD": "%-d",
    "FMHH24": "%-H",
    "DDD": "%j",
    "Mon": "%b",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "US": "%f",
    "MS": "%g",
    "YY": "%y",
    "MM": "%m",
    "DD": "%d",
    "Dy": "%a",
    "AM": "%p",
    "PM": "%p",
    "IW": "%V",
    "IYYY": "%G",
    "ID": "%u",
}
_TO_CHAR_PIECE: Final = re.compile(
    "|".join(sorted(_TO_CHAR, key=len, reverse=True)) + r'|"[^"]*"|[^A-Za-z"]+|[A-Za-z]+'
)


def _renamed(name: str) -> Repair:
    return lambda node: call(name, *[one for one in (node.this, node.args.get("expression")) if one is not None])


def _formatted(pattern: str) -> Repair:
    return lambda node: call("strftime", node.this, exp.Literal.string(pattern))


def _of_the_moment(node: exp.Expr) -> exp.Expr:
    """Return a part of a moment whose seconds have a fraction."""
    unit = node.this.name.upper().rstrip("S")
    if unit in ("SECOND", "SECS", "SEC", "MILLISECOND"):
        per = 1_000_000 if unit.startswith("SEC") else 1000
        return exp.Paren(this=exp.Div(this=_part("microsecond", node), expression=number(per), typed=False, safe=False))
    return _week_day(node, 0)


def _week_day(node: Any, first: int) -> exp.Expr:
    """Return a part of a date whose weeks have days from so many on."""
    unit = node.this.name.upper()
    if unit in _DAYS:
        day = _part("dow", node)
        return exp.Paren(this=exp.Add(this=day, expression=number(first))) if first else day
    names = {"DOW_ISO": "isodow", "DAYOFWEEK_ISO": "isodow", "DAYOFWEEKISO": "isodow", "DOY": "doy", "DAYOFYEAR": "doy"}
    return _part(names[unit], node) if unit in names else node


def _of_spark(node: exp.Expr) -> exp.Expr:
    found = _of_the_moment(node)
    return _week_day(node, 1) if isinstance(found, exp.Anonymous) and node.this.name.upper() in _DAYS else found


def _of_bigquery(node: exp.Expr) -> exp.Expr:
    if node.this.name.upper() == "WEEK" or isinstance(node.this, exp.WeekStart):
        raise NotYetSupportedError("sql: EXTRACT(WEEK ...), whose weeks begin on Sunday; write ISOWEEK")
    return _part("week", node) if node.this.name.upper() == "ISOWEEK" else _week_day(node, 1)


def _of_trino(node: exp.Expr) -> exp.Expr:
    names = {"DOW": "isodow", "DAY_OF_WEEK": "isodow", "DOY": "doy", "DAY_OF_YEAR": "doy"}
    name = names.get(node.this.name.upper())
    return node if name is None else _part(name, node)


def _part(name: str, node: Any) -> exp.Expr:
    return call("date_part", exp.Literal.string(name), node.expression)


def _more(name: str, amount: int) -> Repair:
    def repaired(node: exp.Expr) -> exp.Expr:
        given = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
        return exp.Paren(this=exp.Add(this=call(name, *given), expression=number(amount)))

    return repaired


def _in_unit(node: exp.Expr) -> exp.Expr:
    """Return a moment cut to a unit that other words are used for."""
    unit = node.args["unit"].name.upper()
    if not isinstance(node.args["unit"], exp.Literal | exp.Var):
        raise NotYetSupportedError("sql: trunc() and date_trunc() take a constant unit")
    return call("date_trunc", exp.Literal.string(_UNITS.get(unit, unit).lower()), node.this)


def _whole_units(name: str) -> Repair:
    """Return the repair of a difference in whole units, where others count the limits of units that lie between."""

    def repaired(node: exp.Expr) -> exp.Expr:
        unit = node.args.get("unit")
        if unit is None:
            return node
        return call(name, exp.Literal.string(unit.name.lower()), _plain(node.expression), _plain(node.this))

    return repaired


def _plain(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.TsOrDsToDate | exp.TsOrDsToTimestamp) else node


def _cut(node: exp.Expr) -> exp.Expr:
    """Return a cast that cuts numbers off where it makes integers."""
    is_whole = node.args["to"].this in exp.DataType.INTEGER_TYPES
    if is_whole and isinstance(node.this, exp.Literal) and not node.this.is_string:
        node.set("this", number(int(float(node.this.name))))
    return to_whole("cut_to_whole")(node)


def _texts(null: str | None, is_null: bool = False) -> Repair:
    """Return a repair of format(): texts in place of ``%s`` and ``%d``; null is a text, nothing, or makes all null."""

    def repaired(node: exp.Expr) -> exp.Expr:
        template = node.this
        pieces = re.split(r"(%%|%[sd])", template.name) if isinstance(template, exp.Literal) else ["%"]
        if any("%" in one and one not in ("%%", "%s", "%d") for one in pieces):
            raise NotYetSupportedError("sql: format() takes a constant with %s and %d here; write concat(...)")
        given = iter(node.expressions)
        parts: list[exp.Expr] = []
        for piece in pieces:
            if piece in ("%s", "%d"):
                text = exp.cast(next(given, exp.Null()), "varchar")
                parts.append(exp.Coalesce(this=text, expressions=[exp.Literal.string(null)]) if null else text)
            elif piece:
                parts.append(exp.Literal.string(piece.replace("%%", "%")))
        parts = parts or [exp.Literal.string("")]
        if not is_null:
            return call("concat", *parts)
        return exp.Paren(this=reduce(lambda one, other: exp.DPipe(this=one, expression=other, safe=True), parts))

    return repaired


def _similar(node: exp.Expr) -> exp.Expr:
    """Return a match of a whole text with the regular expression that a pattern of SIMILAR TO means."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal):
        raise NotYetSupportedError("sql: SIMILAR TO takes a constant pattern; write regexp_like(s, ...)")
    written = re.sub(r"[%_.^$]", lambda one: {"%": ".*", "_": "."}.get(one[0], "\\" + one[0]), pattern.name)
    return call("regexp_full_match", node.this, exp.Literal.string(written))


def _list_of_text(node: exp.Expr) -> exp.Expr:
    """Return the parts of a text: an empty text has none."""
    parts = call("string_to_array", node.this, node.expression)
    empty = exp.EQ(this=node.this.copy(), expression=exp.Literal.string(""))
    return exp.Case(
        ifs=[exp.If(this=empty, true=call("list_slice", parts.copy(), number(2), number(1)))], default=parts
    )


def _to_char(node: exp.Expr) -> exp.Expr:
    """Return a moment as a text. Raises: NotYetSupportedError for a format of numbers, or with other letters."""
    moment, template = (*node.expressions, None)[:2]
    if not isinstance(template, exp.Literal):
        raise NotYetSupportedError("sql: to_char() takes a constant format")
    return call("strftime", moment, exp.Literal.string(_pattern("to_char", template.name)))


def _from_text(name: str, is_date: bool) -> Repair:
    def repaired(node: exp.Expr) -> exp.Expr:
        text, template = (*node.expressions, None)[:2]
        if not isinstance(template, exp.Literal):
            raise NotYetSupportedError(f"sql: {name}() takes a text and a constant format")
        found = call("strptime", text, exp.Literal.string(_pattern(name, template.name)))
        return exp.cast(found, "date") if is_date else found

    return repaired


def _pattern(name: str, template: str) -> str:
    pieces = _TO_CHAR_PIECE.findall(template)
    for piece in pieces:
        if piece[:1].isalpha() and piece not in _TO_CHAR:
            raise NotYetSupportedError(
                f"sql: {name}() with {piece} in its format ({template!r}); there are {' '.join(sorted(_TO_CHAR))}"
            )
        if "9" in piece or (piece.startswith("0") and len(piece) > 1):
            raise NotYetSupportedError(f"sql: {name}() with a format of numbers ({template!r}); write CAST or round()")
    return "".join(_TO_CHAR.get(one, one.strip('"').replace("%", "%%")) for one in pieces)


def _length(node: exp.Expr) -> exp.Expr:
    """Return the length of a list: that of an empty one is null."""
    found = call("len", node.this)
    return exp.Nullif(this=found, expression=number(0)) if node.args.get("expression") is not None else found


def _joined_lists(node: exp.Expr) -> exp.Expr:
    sides = (node.this, node.expression)
    if not any(isinstance(one, exp.Array) for one in sides):
        return node
    return _both(exp.ArrayConcat(this=node.this, expressions=[node.expression]))


def _appended(node: exp.Expr) -> exp.Expr:
    """Return a list with one more element: null is a list of none."""
    name = "list_append" if isinstance(node, exp.ArrayAppend) else "list_prepend"
    whole, one = node.this, node.expression
    sides = (whole.copy(), one.copy()) if name == "list_append" else (one.copy(), whole.copy())
    alone = exp.If(this=exp.Is(this=whole, expression=exp.Null()), true=exp.Array(expressions=[one]))
    return exp.Case(ifs=[alone], default=call(name, *sides))


def _both(node: exp.Expr) -> exp.Expr:
    """Return two lists as one: null is a list of none."""
    others = node.expressions
    if len(others) != 1:
        return node
    first, second = node.this, others[0]
    ifs = [
        exp.If(this=exp.Is(this=one.copy(), expression=exp.Null()), true=other.copy())
        for one, other in ((first, second), (second, first))
    ]
    return exp.Case(ifs=ifs, default=call("list_concat", first, second))


def _columns_of(node: exp.Expr) -> exp.Expr:
    """Return rows of a function in FROM: the name of its table is the name of its column."""
    alias = node.args.get("alias")
    is_function = isinstance(node, exp.Unnest) or isinstance(node.this, exp.ExplodingGenerateSeries)
    if (
        is_function
        and alias is not None
        and alias.this is not None
        and not alias.columns
        and not node.args.get("offset")
    ):
        alias.set("columns", [alias.this.copy()])
    return node


def _without_offset(node: exp.Expr) -> exp.Expr:
    if node.args.get("offset"):
        raise NotYetSupportedError("sql: UNNEST() WITH OFFSET, which counts from 0; write UNNEST() alone")
    return _columns_of(node)


def _rows_of_numbers(node: exp.Expr) -> exp.Expr:
    """Return range() of Spark: its column is id."""
    if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "range" and node.args.get("alias") is None:
        node.set("alias", exp.TableAlias(this=exp.to_identifier("range"), columns=[exp.to_identifier("id")]))
    return node


def _with_its_year(node: exp.Expr) -> exp.Expr:
    """Return a moment read from a text: only a format without a year takes the year that others have by default."""
    if re.search("%[Yy]", node.args["format"].name):
        node.set("default_year", None)
    return node


def _by_name(names: dict[str, Repair]) -> Repair:
    """Return a repair of functions that sqlglot does not know."""
    return lambda node: names[node.name.lower()](node) if node.name.lower() in names else node


def _called(name: str) -> Repair:
    return lambda node: call(name, *node.expressions)


def _without_places(node: exp.Expr) -> exp.Expr:
    """Return a function of elements; places count from 0 in the dialect, and from 1 here."""
    for function in node.find_all(exp.Lambda):
        if function.parent is node and len(function.expressions) > 1:
            raise NotYetSupportedError("sql: places of elements count from 0 in this dialect; write the element alone")
    return node


#: functions of lists that mean something else where values are missing or repeated, and names of types
_OF_LISTS: Final[dict[type[exp.Expr], Repair]] = {
    exp.ArrayExcept: refused("array_except() has each element once in this dialect"),
    exp.ArrayRemove: refused("array_remove() treats nulls otherwise in this dialect; write a list function"),
    exp.ArrayCompact: refused("array_compact(); write a filter of the elements that are not null"),
    exp.Typeof: refused("typeof() gives names of types of this dialect"),
}
_OF_SPARK_LISTS: Final[dict[type[exp.Expr], Repair]] = {
    **_OF_LISTS,
    exp.ArrayPosition: refused("array_position() is 0 for no element in this dialect, or counts from 0"),
    exp.Transform: _without_places,
    exp.ArrayFilter: _without_places,
}
_ROUNDED: Final[dict[type[exp.Expr], Repair]] = {
    exp.Cast: to_whole("round_to_whole"),
    exp.TryCast: to_whole("round_to_whole"),
    exp.RegexpExtract: or_null,
}
#: functions of Spark and Trino
_OF_JAVA: Final[dict[type[exp.Expr], Repair]] = {
    exp.ArrayContains: is_within,
    exp.ArraySlice: part_of_list,
    exp.GenerateSeries: numbers_between,
    exp.RegexpReplace: references,
}
_BEYOND_TWO: Final = "of a population in this dialect; skewness() and kurtosis() of ours are those of a sample"
_SPARK: Final[dict[type[exp.Expr], Repair]] = {
    **_OF_SPARK_LISTS,
    **_OF_JAVA,
    exp.Table: _rows_of_numbers,
    exp.Extract: _of_spark,
    exp.DayOfWeek: _more("dayofweek", 1),
    exp.Dayname: _formatted("%a"),
    exp.Monthname: _formatted("%b"),
    exp.DateTrunc: _in_unit,
    exp.TimestampTrunc: _in_unit,
    exp.DateDiff: _whole_units("timestampdiff"),
    exp.TimestampDiff: _whole_units("timestampdiff"),
    **SPARK_FORMS,
    exp.Kurtosis: refused(f"kurtosis() is {_BEYOND_TWO}"),
    exp.Skewness: refused(f"skewness() is {_BEYOND_TWO}"),
    exp.Substring: of_no_length(from_one),
    exp.Format: _texts("null"),
    exp.Cast: _cut,
    exp.TryCast: _cut,
    **dict.fromkeys((exp.TimeToStr, exp.StrToTime, exp.StrToUnix, exp.TsOrDsToDate), in_format()),
    exp.Quantile: lambda node: call("quantile_cont", node.this, node.args["quantile"]),
    exp.UnixToStr: in_format(
        lambda node: call(
            "strftime",
            call("from_unixtime", node.this),
            exp.Literal.string(node.args["format"].name.replace("strict", "")),
        )
    ),
    exp.Any: lambda node: call("bool_or", node.this),
    exp.Initcap: refused(
        "initcap() of this dialect, where only a space begins a word and not, as here, every sign between letters,"
    ),
    exp.Anonymous: _by_name(
        {
            **SPARK_CALLS,
            "weekday": _more("isodow", -1),
            "some": _called("bool_or"),
            "regexp": _called("regexp_like"),
            "bigint": lambda node: exp.cast(node.expressions[0], "bigint"),
            "string": lambda node: exp.cast(node.expressions[0], "varchar"),
            "double": lambda node: exp.cast(node.expressions[0], "double"),
        }
    ),
}
_POSTGRES: Final[dict[type[exp.Expr], Repair]] = {
    **_OF_LISTS,
    **dict.fromkeys((exp.JSONExtract, exp.JSONExtractScalar), key_of_json),
    exp.Extract: _of_the_moment,
    exp.Format: _texts(None),
    # its digits are small letters
    exp.Hex: lambda node: call("lower", call("hex", node.this)),
    exp.SimilarTo: _similar,
    exp.Substring: before_the_text,
    exp.StringToArray: _list_of_text,
    exp.ArraySize: _length,
    exp.DPipe: _joined_lists,
    exp.ArrayAppend: _appended,
    exp.ArrayPrepend: _appended,
    exp.ArrayConcat: _both,
    exp.Unnest: _columns_of,
    exp.Table: _columns_of,
    exp.Initcap: lambda node: call("initcap", node.this),
    exp.HexString: refused("a constant in hexadecimal digits; write a decimal number, or decode('1f', 'hex')"),
    exp.Anonymous: _by_name(
        {
            "to_char": _to_char,
            "to_date": _from_text("to_date", is_date=True),
            "to_timestamp": _from_text("to_timestamp", is_date=False),
        }
    ),
}
_DUCKDB: Final[dict[type[exp.Expr], Repair]] = {
    exp.ArrayAppend: _appended,
    exp.ArrayPrepend: _appended,
    exp.ArrayConcat: _both,
    exp.Extract: lambda node: _week_day(node, 0),
    exp.Initcap: lambda node: call("initcap", node.this),
    exp.Substring: in_either_way,
}
REPAIRS: Final[dict[str, dict[type[exp.Expr], Repair]]] = {
    "duckdb": {**_DUCKDB, **FUNCTIONS_OF_DUCKDB, **ROWS_OF_DUCKDB, **PATTERNS},
    "postgres": _POSTGRES,
    "spark": _SPARK,
    "snowflake": {
        **_DUCKDB,
        exp.Select: flattened,
        **PATTERNS,
        **_OF_SPARK_LISTS,
        **_ROUNDED,
        exp.Substring: of_no_length(lambda node: node),
        exp.Dayname: _formatted("%a"),
        exp.Monthname: _formatted("%b"),
        exp.Table: _columns_of,
        exp.TableSample: of_rows,
    },
    "bigquery": {
        **_DUCKDB,
        **_OF_SPARK_LISTS,
        **_ROUNDED,
        exp.Extract: _of_bigquery,
        exp.Format: _texts(None, is_null=True),
        exp.Substring: from_one,
        exp.TimestampDiff: _whole_units("timestampdiff"),
        exp.Unnest: _without_offset,
        exp.StrToDate: _with_its_year,
        exp.StrToTime: _with_its_year,
    },
    "trino": {
        **_DUCKDB,
        **PATTERNS,
        **_OF_SPARK_LISTS,
        **_OF_JAVA,
        **_ROUNDED,
        exp.Reduce: finished,
        exp.Extract: _of_trino,
        exp.Format: _texts("null"),
        exp.Repeat: refused("repeat(), which makes a list in this dialect"),
        exp.Split: lambda node: refused("split() with a limit")(node) if node.args.get("limit") is not None else node,
        exp.Substring: of_no_length(nothing_at_zero),
        exp.DateDiff: _whole_units("datesub"),
        exp.DateTrunc: _in_unit,
        exp.TimestampTrunc: _in_unit,
        exp.Kurtosis: refused(f"kurtosis() is {_BEYOND_TWO}"),
        exp.Skewness: refused(f"skewness() is {_BEYOND_TWO}"),
    },
}
#: functions that sqlglot reads with a loss, and the repairs read themselves
KEPT: Final = {"postgres": ("TO_CHAR", "TO_DATE", "TO_TIMESTAMP")}
