"""Random queries over random tables, for a seed always the same ones.

    Generator(seed).tables     three tables of random columns: few different values, nulls in all of them
    Generator(seed).query()    SELECT over joins of them, subqueries, groups, windows, sets, and these in each other

A query says all of its answer: it has no LIMIT, and windows are ordered by whole rows where it matters.

Held by: tests/sql/test_random_queries.py
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

import pyarrow as pa

_TYPES: Final = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "bool": pa.bool_(),
    "decimal": pa.decimal128(9, 2),
}
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


class Column(NamedTuple):
    """A column that a query may name, and what kind of value it has."""

    name: str
    kind: str


class Generator:
    """Makes tables and queries."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0
        self.columns: dict[str, list[Column]] = {}
        self.tables = {f"t{number}": self._table_of(f"t{number}") for number in range(3)}

    def query(self) -> str:
        """Return a query."""
        return self._select(depth=2)[0]

    # tables ----------------------------------------------------------------------------------------------------

    def _table_of(self, name: str) -> pa.Table:
        kinds = ["int", *self._random.choices(list(_TYPES), k=self._random.randint(1, 4))]
        self.columns[name] = [Column(f"{name}_c{number}", kind) for number, kind in enumerate(kinds)]
        rows = self._random.choice((0, 1, 7, 30))
        values = {
            column.name: pa.array([self._value(column.kind) for _ in range(rows)], _TYPES[column.kind])
            for column in self.columns[name]
        }
        return pa.table(values)

    def _value(self, kind: str) -> object:
        number = self._random.randint(-2, 4)
        if self._random.random() < 0.2:
            return None
        makers: dict[str, Callable[[], object]] = {
            "int": lambda: number,
            "float": lambda: number / 4,
            "text": lambda: "abcab"[: max(number, 0)],
            "date": lambda: date(2024, 2, 28) + timedelta(days=number),
            "bool": lambda: number > 0,
            "decimal": lambda: Decimal(number * 25) / 100,
        }
        return makers[kind]()

    def _constant(self, kind: str) -> str:
        value = self._value(kind)
        if value is None:
            return f"CAST(NULL AS {self._sql_type(kind)})"
        match kind:
            case "text":
                return f"'{value}'"
            case "date":
                return f"DATE '{value}'"
            case "float" | "decimal":
                return f"CAST({value} AS {self._sql_type(kind)})"
            case _:
                return str(value).upper()

    @staticmethod
    def _sql_type(kind: str) -> str:
        names = {"int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "date": "DATE", "bool": "BOOLEAN"}
        return names.get(kind, "DECIMAL(9, 2)")

    # expressions -----------------------------------------------------------------------------------------------

    def _expression(self, columns: Sequence[Column], kind: str, depth: int = 2) -> str:
        own = [column.name for column in columns if column.kind == kind]
        if depth == 0 or self._random.random() < 0.3:
            return self._random.choice(own) if own and self._random.random() < 0.9 else self._constant(kind)
        one, other = (self._expression(columns, kind, depth - 1) for _ in range(2))
        choices = [
            f"CASE WHEN {self._condition(columns, depth - 1)} THEN {one} ELSE {other} END",
            f"CASE WHEN {self._condition(columns, depth - 1)} THEN {one} END",
            f"coalesce({one}, {other})",
            f"nullif({one}, {other})",
        ]
        if kind == "int":
            choices += [f"({one} + {other})", f"({one} - {other})", f"({one} * {other})", f"abs({one})", f"(- {one})"]
            choices += [f"length({self._expression(columns, 'text', depth - 1)})"]
            choices += [f"extract(day FROM {self._expression(columns, 'date', depth - 1)})"]
        elif kind == "float":
            choices += [f"({one} + {other})", f"({one} * {other})", f"floor({one})"]
        elif kind == "text":
            choices += [f"({one} || {other})", f"upper({one})", f"substring({one}, 2, 1)", f"concat({one}, {other})"]
            start, length = (f"CAST({self._expression(columns, 'int', 0)} AS INTEGER)" for _ in range(2))
            choices += [
                f"substring({one}, {start})",
                f"substring({one}, {start}, abs({length}))",
                f"left({one}, {length})",
            ]
            choices += [f"lpad({one}, abs({length}), {other} || 'x')", f"replace({one}, {other}, 'b')"]
            choices += [
                f"split_part({one}, {other} || 'b', 1)",
                f"trim({one}, {other})",
                f"concat_ws({other}, {one}, 'a')",
            ]
        elif kind == "bool":
            return f"({self._condition(columns, depth - 1)})"
        return self._random.choice(choices)

    def _condition(self, columns: Sequence[Column], depth: int) -> str:
        kind = self._random.choice([column.kind for column in columns])
        one, other = (self._expression(columns, kind, min(depth, 1)) for _ in range(2))
        simple = [
            f"({one} {self._random.choice(_COMPARISONS)} {other})",
            f"{one} IS {self._random.choice(('', 'NOT '))}NULL",
            f"{one} {self._random.choice(('', 'NOT '))}IN ({self._constant(kind)}, {self._constant(kind)})",
            f"{one} {self._random.choice(('', 'NOT '))}BETWEEN {other} AND {self._constant(kind)}",
        ]
        if kind == "text":
            simple.append(f"{one} {self._random.choice(('', 'NOT '))}LIKE '{self._random.choice(('a%', '_b', '%c%'))}'")
            simple.append(f"{one} {self._random.choice(('', 'NOT '))}LIKE {other} || '%'")
            simple.append(f"{self._random.choice(('starts_with', 'contains'))}({one}, {other})")
        if depth <= 0 or self._random.random() < 0.5:
            return self._random.choice(simple)
        left, right = (self._condition(columns, depth - 1) for _ in range(2))
        return self._random.choice((f"({left} AND {right})", f"({left} OR {right})", f"(NOT ({left}))"))

    # queries ---------------------------------------------------------------------------------------------------

    def _select(self, depth: int, kinds: Sequence[str] | None = None) -> tuple[str, list[Column]]:
        """Return a query and its columns; ``kinds``: of these kinds."""
        shapes = [self._plain, self._plain, self._grouped]
        if kinds is None:
            shapes.append(self._windowed)
            if depth > 0:
                shapes.append(self._of_sets)
        return self._random.choice(shapes)(depth, kinds)

    def _plain(self, depth: int, kinds: Sequence[str] | None) -> tuple[str, list[Column]]:
        source, columns = self._source(depth)
        wanted = kinds or self._some_kinds()
        outputs = [Column(self._name(), kind) for kind in wanted]
        listed = ", ".join(f"{self._expression(columns, kind)} AS {name}" for name, kind in outputs)
        distinct = "DISTINCT " if self._random.random() < 0.2 else ""
        return f"SELECT {distinct}{listed} FROM {source}{self._where(columns, depth)}", outputs

    def _grouped(self, depth: int, kinds: Sequence[str] | None) -> tuple[str, list[Column]]:
        source, columns = self._source(depth)
        keys = self._random.sample(columns, k=min(len(columns), self._random.randint(0, 2)))
        outputs, listed = [], []
        for kind in kinds or self._some_kinds():
            outputs.append(Column(self._name(), kind))
            own = [key.name for key in keys if key.kind == kind]
            text = self._random.choice(own) if own and self._random.random() < 0.5 else self._aggregate(columns, kind)
            listed.append(f"{text} AS {outputs[-1].name}")
        text = f"SELECT {', '.join(listed)} FROM {source}{self._where(columns, depth)}"
        if keys:
            by = self._random.choice(("{}", "{}", "ROLLUP ({})", "CUBE ({})"))
            text += f" GROUP BY {by.format(', '.join(key.name for key in keys))}"
            if self._random.random() < 0.3:
                text += f" HAVING {self._aggregate(columns, 'int')} {self._random.choice(_COMPARISONS)} 1"
        elif not any("(" in one for one in listed):
            text += " GROUP BY ()"
        return text, outputs

    def _windowed(self, depth: int, _kinds: Sequence[str] | None) -> tuple[str, list[Column]]:
        source, columns = self._source(depth)
        order = ", ".join(column.name for column in columns)
        partition = f"PARTITION BY {self._random.choice(columns).name} " if self._random.random() < 0.6 else ""
        value = self._expression(columns, "int", 1)
        function = self._random.choice(
            (
                f"CAST(rank() OVER ({partition}ORDER BY {order}) AS BIGINT)",
                f"sum({value}) OVER ({partition}ORDER BY {order})",
                f"count({value}) OVER ({partition})",
                f"max({value}) OVER ({partition}ORDER BY {order} RANGE UNBOUNDED PRECEDING)",
                f"last_value({value} IGNORE NULLS) OVER ({partition}ORDER BY {order})",
                f"first_value({value} IGNORE NULLS) OVER ({partition}ORDER BY {order})",
            )
        )
        listed = ", ".join(f"{column.name} AS {self._name()}" for column in columns)
        output = self._name()
        return f"SELECT {listed}, {function} AS {output} FROM {source}{self._where(columns, depth)}", [
            Column(output, "int")
        ]

    def _of_sets(self, depth: int, _kinds: Sequence[str] | None) -> tuple[str, list[Column]]:
        kinds = self._some_kinds()
        left, columns = self._select(depth - 1, kinds)
        right, _ = self._select(depth - 1, kinds)
        operation = self._random.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        return (
            f"SELECT * FROM ({left}) AS {self._name()} {operation} SELECT * FROM ({right}) AS {self._name()}",
            columns,
        )

    def _aggregate(self, columns: Sequence[Column], kind: str) -> str:
        distinct = "DISTINCT " if self._random.random() < 0.2 else ""
        kept = f" FILTER (WHERE {self._condition(columns, 1)})" if self._random.random() < 0.2 else ""
        if kind == "int":
            value = self._expression(columns, self._random.choice(list(_TYPES)), 1)
            whole = self._expression(columns, "int", 1)
            choices = [
                f"count({distinct}{value})",
                f"CAST(sum({distinct}{whole}) AS BIGINT)",
                f"min({whole})",
                "count(*)",
            ]
            return f"{self._with_filter(self._random.choice(choices), kept)}"
        value = self._expression(columns, kind, 1)
        if kind == "bool":
            return f"bool_or({value}){kept}"
        return f"{self._random.choice(('min', 'max'))}({value}){kept}"

    @staticmethod
    def _with_filter(text: str, kept: str) -> str:
        return text if not kept or text.startswith("CAST") else f"{text}{kept}"

    def _source(self, depth: int) -> tuple[str, list[Column]]:
        """Return what stands behind FROM, and its columns."""
        text, columns = self._table_or_query(depth)
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            other, others = self._table_or_query(depth)
            kind = self._random.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
            shared = [
                f"{one.name} = {another.name}" for one in columns for another in others if one.kind == another.kind
            ]
            if not shared:
                text, columns = f"{text} CROSS JOIN {other}", columns + others
                continue
            on = self._random.choice(shared)
            if kind != "FULL JOIN" and self._random.random() < 0.2:
                on += f" AND {self._condition(columns + others, 1)}"
            text, columns = f"{text} {kind} {other} ON {on}", columns + others
        return text, columns

    def _unnested(self) -> tuple[str, list[Column]]:
        """Return a relation of the elements of lists."""
        table, alias = self._random.choice(list(self.columns)), self._name()
        own = self.columns[table]
        column = self._random.choice(own)
        parts = [column.name, self._constant(column.kind), column.name]
        values = f"[{', '.join(parts[: self._random.randint(1, 3)])}]"
        listed = ", ".join(one.name for one in own)
        text = (
            f"(SELECT {listed}, unnest({values}) AS element FROM {table}) AS {alias}"
            if self._random.random() < 0.5
            else f"(SELECT {listed}, element FROM {table}, unnest({values}) AS q(element)) AS {alias}"
        )
        columns = [*own, Column("element", column.kind)]
        return text, [Column(f"{alias}.{one.name}", one.kind) for one in columns]

    def _merged(self) -> tuple[str, list[Column]]:
        """Return a relation of two tables that are joined USING the one column that both have."""
        (left, right), alias = self._random.sample(list(self.columns), 2), self._name()
        kind = self._random.choice(("LEFT", "RIGHT", "FULL"))
        sides = [
            f"(SELECT {', '.join([f'{name}_c0 AS shared', *others])} FROM {name}) AS {name}"
            for name, others in ((one, [column.name for column in self.columns[one][1:]]) for one in (left, right))
        ]
        columns = [Column("shared", "int"), *self.columns[left][1:], *self.columns[right][1:]]
        listed = "*" if self._random.random() < 0.3 else ", ".join(one.name for one in columns)
        text = f"(SELECT {listed} FROM {sides[0]} {kind} JOIN {sides[1]} USING (shared)) AS {alias}"
        return text, [Column(f"{alias}.{one.name}", one.kind) for one in columns]

    def _table_or_query(self, depth: int) -> tuple[str, list[Column]]:
        if depth > 0 and self._random.random() < 0.4:
            text, columns = self._select(depth - 1)
            alias = self._name()
            return f"({text}) AS {alias}", [Column(f"{alias}.{column.name}", column.kind) for column in columns]
        if self._random.random() < 0.1:
            return self._unnested() if self._random.random() < 0.5 else self._merged()
        table, alias = self._random.choice(list(self.columns)), self._name()
        return f"{table} AS {alias}", [Column(f"{alias}.{column.name}", column.kind) for column in self.columns[table]]

    def _where(self, columns: Sequence[Column], depth: int) -> str:
        chance = self._random.random()
        if chance < 0.4:
            return ""
        if chance < 0.7 or depth == 0:
            return f" WHERE {self._condition(columns, 2)}"
        outer = self._random.choice(columns)
        negated = self._random.choice(("", "NOT "))
        inner, (column,) = self._select(0, [outer.kind])
        shapes = [
            f"{outer.name} {negated}IN ({inner})",
            f"{negated}EXISTS (SELECT 1 FROM ({inner}) AS x WHERE x.{column.name} = {outer.name})",
            f"{outer.name} >= (SELECT max(x.{column.name}) FROM ({inner}) AS x)" if outer.kind != "bool" else "TRUE",
        ]
        return f" WHERE {self._random.choice(shapes)}"

    def _some_kinds(self) -> list[str]:
        return self._random.choices(list(_TYPES), k=self._random.randint(1, 3))

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"
