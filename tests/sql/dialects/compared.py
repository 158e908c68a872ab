"""Expressions of a dialect beside the engine that has it: the same values, or a refusal that the table names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pytest

from engine import EngineError, Environment
from tests.sql.test_function_calls import plain

#: expressions of one query
_TOGETHER = 20
Answer = Callable[[str], Iterable[Sequence[Any]]]


def groups_of(expressions: Iterable[str], refused: frozenset[str]) -> list[list[str]]:
    """Return the expressions that are answered, some of them for each query."""
    answered = [one for one in expressions if one not in refused]
    return [answered[begin : begin + _TOGETHER] for begin in range(0, len(answered), _TOGETHER)]


def query_of(expressions: Sequence[str], order: str) -> str:
    """Return the query of some expressions."""
    return f"SELECT {', '.join(f'{one} AS c{place}' for place, one in enumerate(expressions))} FROM x{order}"


def assert_same(environment: Environment, dialect: str, answer: Answer, expressions: Sequence[str], order: str) -> None:
    """Assert that all expressions have the values that an engine answers."""
    query = query_of(expressions, order)
    found = list(_rows(environment, query, dialect))
    wanted = [[_plain(one) for one in row] for row in answer(query)]
    assert len(found) == len(wanted), query
    different = {
        one: ([row[place] for row in found], [row[place] for row in wanted])
        for place, one in enumerate(expressions)
        if [row[place] for row in found] != [row[place] for row in wanted]
    }
    assert different == {}


def assert_same_query(environment: Environment, dialect: str, answer: Answer, query: str) -> None:
    """Assert that a query has the rows that an engine answers."""
    assert list(_rows(environment, query, dialect)) == [[_plain(one) for one in row] for row in answer(query)]


def assert_refused(environment: Environment, dialect: str, query: str) -> None:
    """Assert that a query ends in an error of one line, before it runs."""
    with pytest.raises(EngineError) as failure:
        environment.sql(query, dialect=dialect)
    assert str(failure.value), query


def _rows(environment: Environment, query: str, dialect: str) -> Iterator[list[Any]]:
    found = environment.sql(query, dialect=dialect).to_arrow()
    for row in zip(*(column.to_pylist() for column in found.columns), strict=True):
        yield [_plain(one) for one in row]


def _plain(value: Any) -> Any:
    """Return a value without what the types of drivers make of it: exact numbers may come as texts."""
    if isinstance(value, str):
        try:
            return float(f"{float(Decimal(value)):.11g}") if value.isascii() and value[-1:].isdigit() else value
        except InvalidOperation:
            return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return plain(value)
