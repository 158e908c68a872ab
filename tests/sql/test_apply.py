"""Queries beside rows: what each says of them is what plain Python finds among the rows that belong to a row."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from engine import DataError, DataSet, Environment, col
from engine.column_expressions.expression import Expr
from engine.graph.said_operators import Apply, ApplyUse
from engine.lowering.said_nodes import lowered

VALUES = (None, 1, 2)
#: rows (n, k, v) and rows of the query (q, w), each value with each other, some twice
ROWS = [(number, k, v) for number, (k, v) in enumerate(product(VALUES, VALUES))]
QUERY = [(1, 1), (1, 1), (1, None), (2, 2), (None, 1), (3, None)]
KEYS = {"no keys": (), "a key": (("k", "q", False),), "null equals null": (("k", "q", True),)}
CONDITIONS = {"no condition": None, "a condition": col("v") <= col("w")}


Sides = tuple[DataSet, DataSet]
Keys = tuple[tuple[str, str, bool], ...]


@pytest.fixture(scope="module")
def sides(environment: Environment) -> Sides:
    left = pa.table(dict(zip("nkv", map(pa.array, zip(*ROWS, strict=True)), strict=True)))
    right = pa.table(dict(zip("qw", map(pa.array, zip(*QUERY, strict=True)), strict=True)))
    return environment.from_arrow(left), environment.from_arrow(right)


def asked(
    sides: Sides, use: ApplyUse, keys: Keys = (), condition: Expr | None = None, **said: Any
) -> list[tuple[Any, ...]]:
    """Return the rows of an Apply, in the order of their numbers."""
    pairs = tuple((col(one).expression, col(other).expression) for one, other, _ in keys)
    flags = tuple(is_safe for _, _, is_safe in keys)
    where = None if condition is None else condition.expression
    left, right = sides
    node = lowered(Apply(use, keys=pairs, null_safe=flags, condition=where, **said), (left._node, right._node))
    return sorted(tuple(row) for row in left._with(node).collect())


def belonging(row: tuple[Any, ...], keys: Keys, condition: Expr | None) -> list[tuple[Any, Any]]:
    """Rows of the query that belong to a row."""
    _, k, v = row
    of_key = [one for one in QUERY if not keys or (one[0] == k and (keys[0][2] or k is not None))]
    return [one for one in of_key if condition is None or (v is not None and one[1] is not None and v <= one[1])]


def among(value: int | None, values: list[int | None]) -> bool | None:
    """SQL's IN."""
    if not values:
        return False
    if value is not None and value in values:
        return True
    return None if value is None or None in values else False


CASES = [pytest.param(KEYS[a], CONDITIONS[b], id=f"{a}, {b}") for a, b in product(KEYS, CONDITIONS)]


@pytest.mark.parametrize(("keys", "condition"), CASES)
def test_existence(sides: Sides, keys: Keys, condition: Expr | None) -> None:
    wanted = {row: bool(belonging(row, keys, condition)) for row in ROWS}
    assert asked(sides, ApplyUse.EXISTS, keys, condition) == [row for row in ROWS if wanted[row]]
    assert asked(sides, ApplyUse.EXISTS, keys, condition, is_not=True) == [row for row in ROWS if not wanted[row]]
    found = asked(sides, ApplyUse.EXISTS, keys, condition, column="there")
    assert found == [(*row, wanted[row]) for row in ROWS]


@pytest.mark.parametrize(("keys", "condition"), CASES)
def test_membership(sides: Sides, keys: Keys, condition: Expr | None) -> None:
    wanted = {row: among(row[2], [w for _, w in belonging(row, keys, condition)]) for row in ROWS}
    tested = ((col("v").expression, col("w").expression),)
    found = asked(sides, ApplyUse.IN, keys, condition, tested=tested)
    assert found == [row for row in ROWS if wanted[row] is True]
    found = asked(sides, ApplyUse.IN, keys, condition, tested=tested, is_not=True)
    assert found == [row for row in ROWS if wanted[row] is False]
    found = asked(sides, ApplyUse.IN, keys, condition, tested=tested, column="there")
    assert found == [(*row, wanted[row]) for row in ROWS]


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_membership_of_several_values(sides: Sides, condition: Expr | None) -> None:
    def of_row(row: tuple[Any, ...]) -> bool | None:
        each = [
            [None if one is None or other is None else one == other for one, other in zip(row[1:], pair, strict=True)]
            for pair in belonging(row, (), condition)
        ]
        known = [False if False in one else None if None in one else True for one in each]
        return True if True in known else None if None in known else False

    tested = tuple((col(one).expression, col(other).expression) for one, other in (("k", "q"), ("v", "w")))
    wanted = {row: of_row(row) for row in ROWS}
    found = asked(sides, ApplyUse.IN, (), condition, tested=tested, column="there")
    assert found == [(*row, wanted[row]) for row in ROWS]
    for is_not in (False, True):
        found = asked(sides, ApplyUse.IN, (), condition, tested=tested, is_not=is_not)
        assert found == [row for row in ROWS if wanted[row] is not is_not and wanted[row] is not None]


def test_values(sides: Sides) -> None:
    left, right = sides
    single = left, right.distinct().filter((col("q") != 1) | col("w").is_not_null())
    keys, value = KEYS["a key"], col("w").expression
    found = asked(single, ApplyUse.VALUE, keys, column="x", value=value)
    assert found == [(n, k, v, {1: 1, 2: 2}.get(k)) for n, k, v in ROWS]
    default = (col("n") * 0 - 1).expression
    found = asked(single, ApplyUse.VALUE, keys, column="x", value=value, default=default, is_single=True)
    assert found == [(n, k, v, {1: 1, 2: 2}.get(k, -1)) for n, k, v in ROWS]
    with pytest.raises(DataError, match=r"a query that stands for a value has more than one row; in a row with w="):
        asked(sides, ApplyUse.VALUE, keys, column="x", value=value, words="a query")


def test_a_plan_shows_what_is_asked_of_a_query(environment: Environment, sides: Sides) -> None:
    environment.register("rows", sides[0])
    environment.register("query", sides[1])
    query = "SELECT n, v IN (SELECT w FROM query WHERE q = k) AS x FROM rows WHERE NOT EXISTS (FROM query WHERE q > v)"
    text = environment.sql(query).explain(logical=True)
    assert "filter by not exists rows where" in text and "mark = v == col('w#2') in rows of k == col('q#2')" in text
