"""Random expressions, each as text over values that are columns or constants; for a seed always the same ones.

    Generator(seed).expression() -> Expression("CAST({0} AS INT) = {1}", [Value("decimal", 10.49), Value("int", 10)])

Left out is what DuckDB means otherwise: / of integers, and places of substring that count from the end.

Held by: tests/sql/test_random_expressions.py
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

import pyarrow as pa

SQL_TYPES: Final = {
    "int": "BIGINT",
    "small": "INTEGER",
    "float": "DOUBLE",
    "decimal": "DECIMAL(8, 2)",
    "long": "DECIMAL(12, 4)",
    "date": "DATE",
    "time": "TIMESTAMP",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
}
ARROW_TYPES: Final = {
    "int": pa.int64(),
    "small": pa.int32(),
    "float": pa.float64(),
    "decimal": pa.decimal128(8, 2),
    "long": pa.decimal128(12, 4),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "text": pa.string(),
    "bool": pa.bool_(),
}
_NUMBERS: Final = ("int", "small", "float", "decimal", "long")
_DAY: Final = date(2024, 2, 29)
_VALUES: Final[dict[str, Sequence[object]]] = {
    "int": (0, 1, -1, 2, 7, 10, 100, 2**40, 2**53 + 1),
    "small": (0, 1, -1, 5, 12, -7),
    "float": (0.5, -0.5, 1.5, 2.5, 0.1, 1e15, 1.23456789012345e-12, 3.0),
    "decimal": tuple(map(Decimal, ("0.50", "1.50", "2.50", "-0.50", "10.49", "11.00", "-2.51"))),
    "long": tuple(map(Decimal, ("0.5000", "1.2345", "-2.5050", "100.0001"))),
    "date": tuple(_DAY + timedelta(days=days) for days in (0, 1, -1, -400, 305)),
    "time": tuple(datetime(2024, 2, 29, 6, 30) + timedelta(seconds=seconds) for seconds in (0, 86400, -3600, 0.5, 1)),
    "text": ("", "a", "ab", "abc", "a%b", "Ab c", "12", " x ", "a.b,c"),
    "bool": (True, False),
}
_INTERVALS: Final = ("1 day", "1 month", "36 hours", "90 minutes", "1 year 2 months", "1.5 seconds")


class Value(NamedTuple):
    """A value of an expression, and what kind it is of."""

    kind: str
    value: object

    def constant(self) -> str:
        """Return it as SQL writes it."""
        name = SQL_TYPES[self.kind]
        if self.value is None or self.kind in ("int", "small", "float", "decimal", "long"):
            return f"CAST({'NULL' if self.value is None else self.value} AS {name})"
        if self.kind == "bool":
            return str(self.value).upper()
        return f"'{self.value}'" if self.kind == "text" else f"{name} '{self.value}'"


class Expression(NamedTuple):
    """An expression with a place for each value."""

    text: str
    values: Sequence[Value]


class Generator:
    """Makes expressions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._values: list[Value] = []

    def expression(self) -> Expression:
        """Return an expression of some type."""
        self._values = []
        makers = (self._number, self._condition, self._condition, self._text, self._time)
        text = self._random.choice(makers)(2)
        return Expression(text, self._values)

    def _leaf(self, *kinds: str) -> str:
        kind = self._random.choice(kinds)
        value = None if self._random.random() < 0.08 else self._random.choice(_VALUES[kind])
        self._values.append(Value(kind, value))
        return f"{{{len(self._values) - 1}}}"

    def _one(self, *makers: Callable[[], str]) -> str:
        return self._random.choice(makers)()

    def _number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.25:
            return self._leaf(*_NUMBERS)
        part = self._random.choice(("year", "month", "day", "dow", "doy"))
        wanted = self._random.choice(("INT", "BIGINT", "DOUBLE", "DECIMAL(10, 1)", "DECIMAL(20, 5)"))
        function = self._random.choice(("abs", "round", "floor", "ceil", "-"))

        def below() -> str:
            return self._number(depth - 1)

        return self._one(
            lambda: f"({below()} {self._random.choice('+-*')} {below()})",
            lambda: f"({self._leaf('decimal', 'long', 'float')} / nullif({self._leaf(*_NUMBERS)}, 0))",
            lambda: f"CAST({below()} AS {wanted})",
            lambda: f"CAST({self._leaf('decimal', 'long')} AS {wanted})",
            lambda: f"{function}({below()})",
            lambda: f"{self._random.choice(('coalesce', 'nullif', 'greatest', 'least'))}({below()}, {below()})",
            lambda: f"CASE WHEN {self._condition(depth - 1)} THEN {below()} ELSE {below()} END",
            lambda: f"length({self._text(depth - 1)})",
            lambda: f"strpos({self._leaf('text')}, 'b')",
            lambda: f"extract({part} FROM {self._time(depth - 1)})",
            lambda: f"({self._leaf('date')} - {self._leaf('date')})",
        )

    def _text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.3:
            return self._leaf("text")
        sought, written = self._random.choice(("", "a", "b", "ab")), self._random.choice(("", "x", "yy"))
        start, length = self._random.choice((0, 1, 2)), self._random.choice((0, 1, 2))

        def below() -> str:
            return self._text(depth - 1)

        return self._one(
            lambda: f"({below()} || {below()})",
            lambda: f"{self._random.choice(('upper', 'trim', 'reverse'))}({below()})",
            lambda: f"replace({below()}, '{sought}', '{written}')",
            lambda: f"substring({below()}, {start}, {length})",
            lambda: f"{self._random.choice(('left', 'right'))}({below()}, {self._random.choice((0, 1, 2, -1))})",
            lambda: f"split_part({below()}, '{self._random.choice(',.a')}', {length or 1})",
            lambda: f"CAST({self._leaf('int', 'small', 'bool', 'decimal', 'date', 'time')} AS VARCHAR)",
            lambda: f"lpad({below()}, 3, 'x')",
            lambda: f"{self._random.choice(('coalesce', 'concat'))}({below()}, {below()})",
            lambda: f"CASE WHEN {self._condition(depth - 1)} THEN {below()} ELSE {below()} END",
        )

    def _time(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return self._leaf("date", "time")
        unit = self._random.choice(("month", "day", "hour", "year", "week"))
        interval = f"INTERVAL '{self._random.choice(_INTERVALS)}'"
        return self._one(
            lambda: f"({self._leaf('date', 'time')} {self._random.choice('+-')} {interval})",
            lambda: f"date_trunc('{unit}', {self._leaf('time')})",
            lambda: f"CAST({self._leaf('time')} AS DATE)",
            lambda: f"CAST({self._leaf('date')} AS TIMESTAMP)",
            lambda: f"({self._leaf('date')} + {self._random.choice((1, 3, 30))})",
        )

    def _condition(self, depth: int) -> str:
        operator = self._random.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"))
        negated = self._random.choice(("", "NOT "))
        return self._one(
            lambda: f"({self._number(depth)} {operator} {self._number(depth)})",
            lambda: f"({self._text(depth)} {operator} {self._text(depth)})",
            lambda: f"({self._time(depth)} {operator} {self._time(depth)})",
            lambda: f"({self._number(depth)} {negated}IN ({self._number(0)}, {self._number(0)}))",
            lambda: f"({self._number(depth)} {negated}BETWEEN {self._number(0)} AND {self._number(0)})",
            lambda: f"({self._number(depth)} IS NULL)",
            lambda: f"({self._text(depth)} LIKE '{self._random.choice(('a%', '_b', '%c%', ''))}')",
            lambda: f"({self._leaf('bool')} AND ({self._number(0)} > {self._number(0)}))",
        )
