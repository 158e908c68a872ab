"""unnest(list) as a join with a table of all positions, which the planner moves about as any other.

    FROM t, unnest(l) AS q(x)        FROM t JOIN unnest_table_0 AS q(x) ON q.x <= CAST(array_length(l) AS BIGINT)
    x, q.x, *                        array_element(l, q.x), the same, * REPLACE (array_element(l, q.x) AS x)
    SELECT k, unnest(l) FROM t       SELECT k, array_element(l, ...) FROM t JOIN unnest_table_0 AS ...
    FROM unnest([1, 2])              FROM (SELECT [1, 2] AS using_key_list_0) AS ... JOIN unnest_table_0 ...

The table is never there: its join is ``explode`` (``Unnested.exploded``), and the element at the position of a row is
the column that it has made of the list.

Held by: tests/sql/test_unnested.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from engine.api.data_set import DataSet
from engine.api.expression import Expr
from engine.api.expressions import col
from engine.errors import NotYetSupportedError
from engine.graph.expression import Call, Cast, ColumnRef, Expression, columns_of, conjuncts
from engine.sql.column_names import ColumnNames, Relation
from engine.sql.merged_keys import write_values
from engine.sql.tokens import Token, after, before, closing, opening, outside, raw, text_of, tokens, words_from

TABLE: Final = "unnest_table_"
#: prefix of hidden columns (``using_joins``)
_HIDDEN: Final = "using_key_"
_WORD: Final = re.compile(r"\bUNNEST\s*\(", re.IGNORECASE)
_CALL: Final = re.compile(rf"\b{TABLE}\d+\b")
_NO_COLUMNS: Final = frozenset(("NULL", "TRUE", "FALSE", "AS", "ARRAY", "INTERVAL"))
_ENDS_TEXT: Final = "WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH WINDOW QUALIFY UNION INTERSECT EXCEPT ; )"
_ENDS: Final = frozenset(_ENDS_TEXT.split())
_JOINS: Final = frozenset(("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "ON", "USING", ","))
#: words before an unnest() behind FROM
_BEFORE_RELATION: Final = frozenset(("LATERAL", "JOIN", "LEFT", "CROSS", "INNER", "OUTER", ","))
_OF_GROUPS: Final = frozenset(("GROUP", "HAVING", "OVER", "QUALIFY"))
_EXPLODED: Final = {"inner": False, "left": True}


def with_unnested(text: str) -> str:
    """Return a query in which the elements of lists come from joins."""
    if not _WORD.search(text):
        return text
    found, at, number = tokens(text), 0, 0
    while at < len(found):
        if found[at].word == "UNNEST" and words_from(found, after(found, at), 1) == ["("]:
            select = _select_of(found, at)
            _write(found, at, select, number)
            number, at = number + 1, select
        at += 1
    return text_of(found)


def _select_of(found: Sequence[Token], at: int) -> int:
    """Return the SELECT whose list or FROM clause contains a place."""
    place = at
    while place >= 0 and found[place].word != "SELECT":
        place = before(found, opening(found, place) if found[place].word == ")" else place)
    if place < 0:
        raise NotYetSupportedError("sql: unnest() outside of SELECT and FROM")
    return place


def _write(found: list[Token], at: int, select: int, number: int) -> None:
    """Write one unnest(), that of a list of SELECT or that of a FROM."""
    places = [select + 1 + one for one in outside(found[select + 1 : _closed(found, select)])]
    end = next((place for place in places if found[place].word in _ENDS), _closed(found, select))
    begin = next((place for place in places if place < end and found[place].word == "FROM"), end)
    if at > end:
        raise NotYetSupportedError("sql: unnest() in WHERE, GROUP BY or ORDER BY; write it in a query of FROM")
    if at < begin:
        _write_item(found, at, begin, end, number)
    elif not write_values(found, found[select], *_write_relation(found, at, begin, number)):
        raise NotYetSupportedError("sql: * with EXCLUDE beside unnest(); write the columns")


def _closed(found: Sequence[Token], select: int) -> int:
    """Return the closing parenthesis around a SELECT; the length where it is in none."""
    depth = 0
    for place in range(select, len(found)):
        depth += (found[place].word == "(") - (found[place].word == ")")
        if depth < 0:
            return place
    return len(found)


class _List(NamedTuple):
    """A list that is taken apart."""

    text: str
    number: int

    @property
    def values(self) -> str:
        """The list as an expression: a column where it is a constant, which is none without its elements."""
        return f"{_HIDDEN}list_{self.number}" if self.is_constant else self.text

    @property
    def is_constant(self) -> bool:
        """Whether it reads no column."""
        found = tokens(self.text)
        return not any(_may_be_column(found, place) for place in range(len(found)))

    def element(self, place: str) -> str:
        """Return the expression of the element at a position."""
        return f"array_element({self.values}, {place})"

    def joined(self, relation: str, place: str, kind: str = "") -> str:
        """Return the join behind a relation; ``kind``: LEFT."""
        rows = f"CROSS JOIN {self.row} " if self.is_constant else ""
        return f"{rows}{kind}JOIN {relation} ON {place} <= CAST(array_length({self.values}) AS BIGINT)"

    @property
    def row(self) -> str:
        """One row, in which a constant list is a column."""
        return f"(SELECT {self.text} AS {_HIDDEN}list_{self.number}) AS {_HIDDEN}row_{self.number}"

    def alone(self, relation: str, place: str) -> str:
        """Return the relation behind FROM when it is the only one."""
        joined = self._replace(text=f"{_HIDDEN}list_{self.number}").joined(relation, place)
        return f"{self.row} {joined}"


def _may_be_column(found: Sequence[Token], place: int) -> bool:
    """Return whether a word may name a column: none of a call, a type or a constant does."""
    word = found[place].word
    if not (word[:1].isalpha() or word[:1] in ("_", '"')) or word in _NO_COLUMNS:
        return False
    following = words_from(found, after(found, place), 1)
    is_typed = following[:1] == ["("] or (following[:1] and following[0].startswith("'"))
    return not is_typed and words_from(found, before(found, place), 1) != ["AS"]


def _write_item(found: list[Token], at: int, begin: int, end: int, number: int) -> None:
    """Write one that stands in a list of SELECT."""
    select_end = _closed(found, begin)
    if "UNNEST" in (token.word for token in found[after(found, at) : begin]):
        raise NotYetSupportedError("sql: several unnest() in a list of SELECT; write them in FROM, each in a query")
    if _OF_GROUPS.intersection(token.word for token in found[at:select_end]):
        raise NotYetSupportedError("sql: unnest() beside GROUP BY or a window; write it in a query of FROM")
    opened = after(found, at)
    closed = closing(found, opened)
    values, place = _List(text_of(found[opened + 1 : closed]).strip(), number), f"{_HIDDEN}unnested_{number}"
    relation = f"{TABLE}{number} AS {_HIDDEN}positions_{number}({place})"
    if begin == end:
        found[end:end] = [raw(f" FROM {values.alone(relation, place)} ")]
    else:
        found[end:end] = [raw(f" {values.joined(relation, place)} ")]
        _without_commas(found, begin, end)
    found[at : closed + 1] = [raw(values.element(place))]


def _without_commas(found: list[Token], begin: int, end: int) -> None:
    """Write the commas of a FROM as joins, so that conditions may look at all that is before them."""
    for one in outside(found[begin:end]):
        if found[begin + one].word == ",":
            found[begin + one] = raw(" CROSS JOIN ")


def _write_relation(found: list[Token], at: int, first: int, number: int) -> tuple[dict[str, str], dict[str, str]]:
    """Write one that stands behind the FROM at a place; return what the query calls its elements, and their values."""
    opened = after(found, at)
    closed = closing(found, opened)
    values = _List(text_of(found[opened + 1 : closed]).strip(), number)
    if words_from(found, after(found, closed), 1) == ["WITH"]:
        raise NotYetSupportedError("sql: unnest() WITH ORDINALITY; write data.explode(column, position=...)")
    alias, column, last = _named(found, closed)
    relation, place = f"{TABLE}{number} AS {alias}({column})", f"{alias}.{column}"
    begin, words = _join_before(found, at)
    condition = words_from(found, after(found, last), 2)
    if condition[:1] == ["ON"]:
        if condition != ["ON", "TRUE"]:
            raise NotYetSupportedError("sql: unnest() joined ON a condition; write ON TRUE, and the condition in WHERE")
        last = after(found, after(found, last))
    if "FROM" in words:
        found[begin : last + 1] = [raw(f" {values.alone(relation, place)}")]
    else:
        found[begin : last + 1] = [raw(f" {values.joined(relation, place, 'LEFT ' if 'LEFT' in words else '')}")]
        _without_commas(found, first, begin)
    element = values.element(place)
    return {column.upper(): element}, {place.upper(): element}


def _join_before(found: Sequence[Token], at: int) -> tuple[int, set[str]]:
    """Return the begin and the words of the join of a relation with those before it, without FROM."""
    begin, words = at, set()
    while (earlier := before(found, begin)) >= 0 and found[earlier].word in _BEFORE_RELATION:
        words.add(found[earlier].word)
        begin = earlier
    if found[earlier].word == "FROM":
        words.add("FROM")
    return begin, words


def _named(found: Sequence[Token], closed: int) -> tuple[str, str, int]:
    """Return the aliases of a relation and its column, and where they end."""
    place = after(found, closed)
    if place < len(found) and found[place].word == "AS":
        place = after(found, place)
    if place == len(found) or found[place].word in _ENDS | _JOINS or not re.match(r"\w", found[place].text):
        return "unnest", "unnest", closed
    alias, opened = found[place].text, after(found, place)
    if opened == len(found) or found[opened].word != "(":
        return alias, "unnest", place
    return alias, found[after(found, opened)].text, closing(found, opened)


def register_positions(session: Any, text: str) -> None:
    """Register the tables of positions that a text names with a session."""
    for name in sorted(set(_CALL.findall(text))):
        session.register_record_batches(f'"{name}"', [[pa.record_batch({"place": pa.array([], pa.int64())})]])


class Unnested:
    """The lists that one query takes apart."""

    def __init__(self, names: ColumnNames, from_arrow: Callable[[pa.Table], DataSet]) -> None:
        self._names = names
        self._from_arrow = from_arrow
        self._places: set[str] = set()
        #: columns of elements, by list and position
        self._elements: list[tuple[Expression, str, str]] = []

    def positions(self) -> Relation:
        """Return a placeholder for a table of positions until it is joined."""
        place = self._names.unique("place")
        self._places.add(place)
        return Relation(self._from_arrow(pa.schema([(place, pa.int64())]).empty_table()), (place,))

    def is_of(self, relation: Relation) -> bool:
        """Return whether a relation is a table of positions."""
        return bool(self._places.intersection(relation.columns))

    def element(self, values: Expr, place: Expr) -> Expr | None:
        """Return the column of the element at a position, None where no list was taken apart there."""
        known = (
            name for one, at, name in self._elements if place.expression == ColumnRef(at) and values.expression == one
        )
        name = next(known, None)
        return None if name is None else col(name)

    def exploded(self, left: Relation, right: Relation, how: str, condition: Callable[..., Expr | None]) -> Relation:
        """Return the rows of the left side, one for each element of a list.

        Args: condition: reads that of the join over some data; once the list is known its elements are a column.
        """
        found = condition(left.data, right.data)
        (place,) = right.columns if len(right.columns) == 1 else ("",)
        values = next((one for part in _parts(found) if (one := _list_of(part, place)) is not None), None)
        if values is None or how not in _EXPLODED:
            raise NotYetSupportedError(
                "sql: unnest() of this form; write list_contains(l, x), or unnest in a query of FROM"
            )
        name, position = self._names.unique("element"), self._names.unique("position")
        self._elements.append((values, place, name))
        data = left.data.with_columns(**{name: Expr(values)}).explode(name, position, keep_empty=_EXPLODED[how])
        data = data.with_columns(**{place: col(position) + 1})
        rest = [part for part in _parts(condition(data)) if _list_of(part, place) is None]
        if rest and how != "inner":
            raise NotYetSupportedError("sql: unnest() joined ON a condition; write ON TRUE, and the condition in WHERE")
        for part in rest:
            data = data.filter(Expr(part))
        return Relation(data, left.columns + right.columns)


def _parts(condition: Expr | None) -> Sequence[Expression]:
    return () if condition is None else tuple(conjuncts(condition.expression))


def _list_of(part: Expression, place: str) -> Expression | None:
    """Return the list whose length a condition compares a position with; None for another condition."""
    if not isinstance(part, Call) or part.function not in ("less_equal", "greater_equal"):
        return None
    one, other = part.arguments if part.function == "less_equal" else part.arguments[::-1]
    length = other.operand if isinstance(other, Cast) else other
    if one != ColumnRef(place) or not isinstance(length, Call) or length.function != "list_length":
        return None
    return length.arguments[0] if place not in columns_of(length) else None
