"""Forms that several dialects share, as the text of ours has them: texts, lists, formats of moments.

    slice(l, 2, 3) ──► list_slice(l, 2, 4)          contains(l, x) ──► x = ANY(l)

A repair takes a node of the dialect's tree and returns the node that means the same here. NotYetSupportedError names a
form that has no equal.

Held by: tests/sql/dialects/test_documented.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from sqlglot import exp

from engine.errors import NotYetSupportedError

Repair = Callable[[Any], exp.Expr]


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return the call of a function of ours."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def number(value: int) -> exp.Expr:
    """Return a constant."""
    return exp.Literal.number(value)


def refused(said: str) -> Repair:
    """Return the repair of a form that has no equal."""

    def refuse(node: exp.Expr) -> exp.Expr:
        raise NotYetSupportedError(f"sql: {said}")

    return refuse


def refuse_names(statement: exp.Expr) -> None:
    """Refuse names of arguments: the places that they stand for are not known. Raises: NotYetSupportedError."""
    for node in statement.find_all(exp.Kwarg, exp.PropertyEQ):
        if not isinstance(node.parent, exp.Struct | exp.Explode):  # element_forms.py has the names of FLATTEN
            raise NotYetSupportedError(f"sql: the argument {node.name} by its name; write the argument at its place")


def refuse_questions_of_json(statement: exp.Expr) -> None:
    """Refuse functions that answer otherwise than DuckDB's for other values. Raises: NotYetSupportedError."""
    for node in statement.find_all(exp.Anonymous, exp.JSONType, exp.JSONKeys, exp.JSONKeysAtDepth):
        name = node.name.lower() if isinstance(node, exp.Anonymous) else "json_type() and json_keys"
        if name.startswith(("json_array_length", "json_type")):
            raise NotYetSupportedError(f"sql: {name}() of another dialect than DuckDB's")


def key_of_json(node: exp.Expr) -> exp.Expr:
    """Return a part of a JSON text by the name of a field, whatever signs the name has."""
    steps = node.expression.expressions if isinstance(node.expression, exp.JSONPath) else []
    if len(steps) == 2 and isinstance(steps[1], exp.JSONPathKey) and '"' not in steps[1].name:
        node.set("expression", exp.Literal.string(f'$."{steps[1].name}"'))
    return node


def whole(node: Any) -> int | None:
    """Return the integer that a node is, if it is a constant one."""
    if isinstance(node, exp.Neg):
        found = whole(node.this)
        return None if found is None else -found
    is_whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return int(node.name) if is_whole else None


def to_whole(name: str) -> Repair:
    """Return the repair of a cast: a function makes numbers whole before it makes integers of them."""

    def repaired(node: exp.Expr) -> exp.Expr:
        is_whole = node.args["to"].this in exp.DataType.INTEGER_TYPES
        if is_whole and not isinstance(node.this, exp.Literal):
            node.set("this", call(name, node.this))
        return node

    return repaired


def or_null(node: exp.Expr) -> exp.Expr:
    """Return the match of a regular expression: without one it is null."""
    is_there = call("regexp_matches", node.this.copy(), node.expression.copy())
    return exp.Case(ifs=[exp.If(this=is_there, true=node)])


def references(node: exp.Expr) -> exp.Expr:
    """Return a replacement whose groups are written with a backslash, as those of Java are with a dollar."""
    given = node.args.get("replacement")
    if not isinstance(given, exp.Literal):
        return node

    def written(found: re.Match[str]) -> str:
        sign, group = found.groups()
        if sign is None and group is None:
            raise NotYetSupportedError(f"sql: the replacement {given.name!r}; write groups as $1 to $9")
        return f"\\{group}" if group else sign.replace("\\", "\\\\")

    node.set("replacement", exp.Literal.string(re.sub(r"\\(.)|\$(\d)(?!\d)|[\\$]", written, given.name, flags=re.S)))
    return node


def part_of_list(node: exp.Expr) -> exp.Expr:
    """Return the elements of a list from a place on, up to a number of them."""
    start, length = whole(node.args["start"]), whole(node.args.get("end"))
    if not start or length is None or length < 0:
        raise NotYetSupportedError("sql: slice() takes a constant start, which is not 0, and a constant length")
    end = start + length - 1
    found = call("list_slice", node.this, number(start), number(-1 if start < 0 <= end else end))
    if start > 0:
        return found
    # a list that is shorter has nothing there
    is_long = exp.GTE(this=call("len", node.this.copy()), expression=number(-start))
    nothing = call("list_slice", node.this.copy(), number(2), number(1))
    return exp.Case(ifs=[exp.If(this=is_long, true=found)], default=nothing)


def is_within(node: exp.Expr) -> exp.Expr:
    """Return whether a value is in a list: that is not known where the list has a null and not the value."""
    found = exp.EQ(this=node.expression, expression=exp.Any(this=node.this))
    if isinstance(node.expression, exp.Literal):
        return exp.Paren(this=found)
    is_known = exp.Not(this=exp.Is(this=node.expression.copy(), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=is_known, true=found)])


def numbers_between(node: exp.Expr) -> exp.Expr:
    """Return the numbers from one to another: without a step, they go down to a smaller one."""
    start, end = whole(node.args["start"]), whole(node.args["end"])
    if node.args.get("step") is None and start is not None and end is not None and start > end:
        node.set("step", number(-1))
    return node


def _plain_backslashes(node: exp.Expr) -> exp.Expr:
    """Return LIKE without ESCAPE, where no sign of the pattern is an escape."""
    pattern = node.expression
    node.meta["pattern"] = pattern
    if isinstance(pattern, exp.Literal):
        node.set("expression", exp.Literal.string(pattern.name.replace("\\", "\\\\")))
    elif not isinstance(pattern, exp.Any | exp.All):
        node.set("expression", call("replace", pattern, exp.Literal.string("\\"), exp.Literal.string("\\\\")))
    return node


def _with_its_escape(node: exp.Expr) -> exp.Expr:
    """Return LIKE with ESCAPE, with the pattern as it was written."""
    node.this.set("expression", node.this.meta.pop("pattern"))
    return node


#: repairs of dialects whose patterns have an escape only where ESCAPE names one; here it is the backslash
PATTERNS: Final[dict[type[exp.Expr], Repair]] = {
    exp.Like: _plain_backslashes,
    exp.ILike: _plain_backslashes,
    exp.Escape: _with_its_escape,
}


def of_rows(node: exp.Expr) -> exp.Expr:
    """SAMPLE (50 ROWS) of Snowflake: a number of rows, and no share."""
    if node.args.get("size") is not None:
        node.set("method", exp.var("RESERVOIR"))
    return node


def from_one(node: exp.Expr) -> exp.Expr:
    """Return a part of a text: place 0 is place 1."""
    start = node.args.get("start")
    if isinstance(start, exp.Literal):
        node.set("start", number(1) if start.name == "0" else start)
    elif start is not None and not (isinstance(start, exp.Neg) and isinstance(start.this, exp.Literal)):
        zero = exp.EQ(this=start.copy(), expression=number(0))
        node.set("start", exp.If(this=zero, true=number(1), false=start.copy()))
    return node


def nothing_at_zero(node: exp.Expr) -> exp.Expr:
    """Return a part of a text: there is nothing from place 0 on."""
    start = node.args.get("start")
    if start is None or whole(start):
        return node
    nothing = exp.Substring(this=node.this.copy(), start=number(1), length=number(0))
    if whole(start) == 0:
        return nothing
    is_zero = exp.EQ(this=start.copy(), expression=number(0))
    return exp.Case(ifs=[exp.If(this=is_zero, true=nothing)], default=node)


def in_either_way(node: exp.Expr) -> exp.Expr:
    """Return a part of a text that ends at its place where its length is negative."""
    length = node.args.get("length")
    if length is None or isinstance(length, exp.Literal):
        return node
    return call("substring_in_either_way", node.this, node.args["start"], length)


def of_no_length(repair: Repair) -> Repair:
    """Return a repair of parts of texts after which a negative length is none."""

    def repaired(node: exp.Expr) -> exp.Expr:
        length = node.args.get("length")
        if length is not None and not isinstance(length, exp.Literal):
            is_less = exp.LT(this=length.copy(), expression=number(0))
            node.set("length", exp.Case(ifs=[exp.If(this=is_less, true=number(0))], default=length.copy()))
        return repair(node)

    return repaired


def before_the_text(node: exp.Expr) -> exp.Expr:
    """Return a part of a text: places that are constants up to 0 lie before it, and count."""
    start, length = whole(node.args.get("start")), node.args.get("length")
    if start is None or start > 0 or (whole(length) or 0) < 0:
        return node
    node.set("start", number(1))
    if length is not None:
        if whole(length) is None:
            raise NotYetSupportedError("sql: substr() from a place before the text takes a constant length")
        node.set("length", number(max(0, start + (whole(length) or 0) - 1)))
    return node


#: directives of formats, as sqlglot writes them for those of Java
_DIRECTIVE: Final = re.compile(r"%-?[A-Za-z](strict)?")


def in_format(repair: Repair | None = None) -> Repair:
    """Return the repair of a function with a format of Java: letters that sqlglot leaves as they are have no equal."""

    def repaired(node: exp.Expr) -> exp.Expr:
        given = node.args.get("format")
        if given is not None and not isinstance(given, exp.Literal):
            raise NotYetSupportedError("sql: a format of moments that is no constant")
        left = re.findall(r"[A-Za-z']+", _DIRECTIVE.sub("", given.name if given is not None else ""))
        if left:
            raise NotYetSupportedError(f"sql: a format of moments with {left[0]}")
        return repair(node) if repair is not None else node

    return repaired


def _with_nulls_last(node: exp.Expr) -> exp.Expr:
    """Return a sorted list with nulls at its end in both directions, unless the call says otherwise."""
    order, nulls = node.args.get("asc"), node.args.get("nulls_first")
    if isinstance(order, exp.Boolean):
        order = exp.Literal.string("ASC" if order.this else "DESC")
    return call("list_sort", node.this, order or exp.Literal.string("ASC"), nulls or exp.Literal.string("NULLS LAST"))


def _parts_of_duckdb(node: exp.Expr) -> exp.Expr:
    """Return a part of a text, which an empty separator parts into its characters."""
    text, separator, place = node.this, node.args["delimiter"], node.args["part_index"]
    if isinstance(separator, exp.Literal) and separator.name:
        return node
    is_empty = exp.EQ(this=separator.copy(), expression=exp.Literal.string(""))
    character = exp.Substring(this=text.copy(), start=place.copy(), length=number(1))
    return exp.Case(ifs=[exp.If(this=is_empty, true=character)], default=node)


#: functions with another answer in DuckDB for nulls and empty texts
FUNCTIONS_OF_DUCKDB: Final[dict[type[exp.Expr], Repair]] = {
    exp.ArrayDistinct: lambda node: call("array_compact", call("list_distinct", node.this)),
    exp.SortArray: _with_nulls_last,
    exp.SplitPart: _parts_of_duckdb,
}
