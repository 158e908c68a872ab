"""Random queries that look at the rows around them, at every place where a query may stand.

    CorrelatedGenerator(seed).query()      over the tables of ``Generator``

    places    SELECT list, also of groups, beside their aggregates; WHERE, HAVING, ON, CASE, arguments of aggregates and
              windows, LATERAL one behind the other, and in each other; over groups and grouping sets, whose keys and
              aggregates they read; in frames; IN and BETWEEN of rows
    queries   aggregates of all rows, with HAVING; groups, grouping sets; windows with frames; LIMIT and OFFSET in an
              order of whole rows; UNION, EXCEPT; joins; rows of several columns for IN

A query says all of its answer: what is limited is ordered by all of its columns.

Held by: tests/sql/test_correlated_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.sql.random_queries import Column, Generator

_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_FRAMES = (
    "",
    "",
    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)


class CorrelatedGenerator(Generator):
    """Makes correlated queries."""

    def query(self) -> str:
        """Return a query."""
        shapes = (self._listed, self._filtered, self._having, self._on, self._in_window, self._lateral, self._laterals)
        groups = (self._in_groups, self._beside_aggregates, self._of_groups, self._in_sets)
        others = (self._in_frame, self._lateral_numbers, self._among_rows)
        return self._random.choice((*shapes, *groups, *others))()

    # places ----------------------------------------------------------------------------------------------------

    def _listed(self) -> str:
        source, columns = self._rows()
        value = self._value_query(columns, self._kind(), 2)
        values = [value, f"({self._test(columns, 1)})", f"CASE WHEN {self._condition(columns, 0)} THEN {value} END"]
        chosen = self._random.sample(values, self._random.randint(1, 2))
        listed = ", ".join([columns[0].name, *(f"{one} AS {self._name()}" for one in chosen)])
        return f"SELECT {listed} FROM {source}{self._some_where(columns)}"

    def _filtered(self) -> str:
        source, columns = self._rows()
        test = self._test(columns, 2)
        if self._random.random() < 0.3:
            test = f"{test} {self._random.choice(('AND', 'OR'))} {self._test(columns, 1)}"
        listed = ", ".join(f"{one.name} AS {self._name()}" for one in columns)
        return f"SELECT {listed} FROM {source} WHERE {test}"

    def _having(self) -> str:
        source, columns = self._rows()
        keys = [columns[0], *self._random.sample(columns[1:], k=self._random.randint(0, min(1, len(columns) - 1)))]
        listed = ", ".join(key.name for key in keys)
        return (
            f"SELECT {listed}, count(*) AS {self._name()} FROM {source} GROUP BY {listed} HAVING {self._test(keys, 1)}"
        )

    def _on(self) -> str:
        (left, own), (right, others) = self._table(), self._table()
        keys = self._equality(own, others)
        kind = self._random.choice(("JOIN", "LEFT JOIN"))
        side = own if self._random.random() < 0.5 else others
        return (
            f"SELECT {own[0].name} AS {self._name()}, {others[0].name} AS {self._name()} FROM {left} {kind} {right}"
            f" ON {keys} AND {self._test(side, 1)}"
        )

    def _in_window(self) -> str:
        source, columns = self._rows()
        order = ", ".join(one.name for one in columns)
        value = self._value_query(columns, "int", 1)
        function = self._random.choice((f"sum({value})", f"max({value})", f"count({value})"))
        partition = self._random.choice(("", f"PARTITION BY {self._random.choice(columns).name} "))
        return f"SELECT {order}, {function} OVER ({partition}ORDER BY {order}) AS {self._name()} FROM {source}"

    def _in_groups(self) -> str:
        source, columns = self._rows()
        key = self._random.choice(columns).name
        value = self._value_query(columns, "int", 1)
        function = self._random.choice((f"CAST(sum({value}) AS BIGINT)", f"min({value})", f"count(DISTINCT {value})"))
        return f"SELECT {key}, {function} AS {self._name()} FROM {source} GROUP BY {key}"

    def _lateral(self) -> str:
        source, columns = self._rows()
        alias, kinds = self._name(), [self._kind(), self._kind()]
        inner, outputs = self._rows_query(columns, kinds, 1)
        listed = ", ".join([columns[0].name, *(f"{alias}.{one.name}" for one in outputs)])
        if self._random.random() < 0.5:
            return f"SELECT {listed} FROM {source}, LATERAL ({inner}) AS {alias}"
        return f"SELECT {listed} FROM {source} LEFT JOIN LATERAL ({inner}) AS {alias} ON TRUE"

    def _of_groups(self) -> str:
        """Return a query whose inner queries look at aggregates and keys of its groups."""
        source, columns = self._rows()
        key = self._random.choice([one for one in columns if one.kind != "bool"])
        by = self._random.choice((key.name, self._expression([key], key.kind, 1)))
        by = by if key.name in by else key.name
        inner, own = self._table()
        kind = self._random.choice([one.kind for one in own if one.kind != "bool"])
        of_groups = self._outer_aggregate(columns, kind)
        seen = self._random.choice([one.name for one in own if one.kind == kind])
        tie = f"{seen} {self._random.choice(_SIGNS)} {of_groups}"
        peers = [one.name for one in own if one.kind == key.kind]
        if peers and self._random.random() < 0.5:
            tie += f" {self._random.choice(('AND', 'OR'))} {peers[0]} {self._random.choice(_SIGNS)} {by}"
        value = f"(SELECT {self._aggregate(own, 'int')} FROM {inner} WHERE {tie})"
        if self._random.random() < 0.5:
            return f"SELECT {by} AS {self._name()}, {value} AS {self._name()} FROM {source} GROUP BY {by}"
        test = self._random.choice((f"EXISTS (SELECT 1 FROM {inner} WHERE {tie})", f"{value} > 1"))
        return f"SELECT {by} AS {self._name()}, count(*) AS {self._name()} FROM {source} GROUP BY {by} HAVING {test}"

    def _outer_aggregate(self, columns: Sequence[Column], kind: str) -> str:
        """Return an aggregate that reads columns of a query around alone."""
        own = [one.name for one in columns if one.kind == kind]
        if not own:
            return f"max(CASE WHEN {columns[0].name} IS NOT NULL THEN {self._constant(kind)} END)"
        name = self._random.choice(own)
        kept = f" FILTER (WHERE {name} > {self._constant(kind)})" if self._random.random() < 0.3 else ""
        return f"{self._random.choice(('min', 'max'))}({name}){kept}"

    def _in_sets(self) -> str:
        source, columns = self._rows()
        keys = [one.name for one in self._random.sample(columns, k=min(2, len(columns)))]
        both = ", ".join(keys)
        by = self._random.choice(("ROLLUP ({})", "CUBE ({})", f"GROUPING SETS (({{}}), ({keys[0]}), ())")).format(both)
        chosen = [one for one in columns if one.name in keys]
        usable = [one for one in chosen if one.kind != "bool"]
        value = self._value_query(usable, self._kind(), 1) if usable else "1"
        having = f" HAVING {self._test(usable, 1)}" if usable and self._random.random() < 0.4 else ""
        return f"SELECT {both}, {value} AS {self._name()}, count(*) AS n FROM {source} GROUP BY {by}{having}"

    def _in_frame(self) -> str:
        source, columns = self._rows()
        value = self._value_query(columns, "int", 1)
        number = next((one.name for one in columns if one.kind == "int"), None)
        order = ", ".join(one.name for one in columns)
        starts = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING")
        ends = ("1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING")
        begin = self._random.choice(starts)
        end = self._random.choice(ends[max(0, starts.index(begin) - 2) :])
        unit = self._random.choice(("ROWS", "GROUPS", "RANGE") if number is not None else ("ROWS", "GROUPS"))
        by = number if unit == "RANGE" else order
        function = self._random.choice(("sum", "max", "count"))
        window = f"ORDER BY {by} {unit} BETWEEN {begin} AND {end}"
        return f"SELECT {order}, {function}({value}) OVER ({window}) AS {self._name()} FROM {source}"

    def _lateral_numbers(self) -> str:
        source, columns = self._rows()
        alias, name = self._name(), self._name()
        kind = self._random.choice([one.kind for one in columns if one.kind != "bool"])
        rows = ", ".join(f"({self._expression(columns, kind, 1)})" for _ in range(self._random.randint(1, 3)))
        relation = f"(VALUES {rows})"
        whole = self._expression(columns, "int", 1)
        if self._random.random() < 0.5:
            calls = ("range(0, ({}) % 4)", "generate_series(({}) % 5, 2)", "range(({}) % 3, -2, -1)")
            relation = f"(SELECT * FROM {self._random.choice(calls).format(whole)})"
        listed = f"{', '.join(one.name for one in columns)}, {alias}.{name}"
        join = self._random.choice((", LATERAL {}", " LEFT JOIN LATERAL {} ON TRUE", " JOIN LATERAL {} ON TRUE"))
        return f"SELECT {listed} FROM {source}{join.format(f'{relation} AS {alias} ({name})')}"

    def _among_rows(self) -> str:
        source, columns = self._rows()
        usable = [one for one in columns if one.kind != "bool"]
        chosen = self._random.sample(usable, k=min(2, len(usable)))
        row = ", ".join(one.name for one in chosen)
        inner, _ = self._rows_query(columns, [one.kind for one in chosen], 1)
        # null is equal to null in rows of DuckDB
        first, second = (f"({', '.join(self._known(one.kind) for one in chosen)})" for _ in range(2))
        are_known = " AND ".join(f"{one.name} IS NOT NULL" for one in chosen)
        tests = [f"({row}) IN ({inner})"]
        if len(chosen) > 1:
            tests.append(f"({row}) IN ({first}, {second}) OR {self._test(columns, 1)}")
            tests.append(f"{are_known} AND (({row}) BETWEEN {first} AND {second} OR {self._test(columns, 1)})")
        return f"SELECT {row} FROM {source} WHERE {self._random.choice(tests)}"

    def _known(self, kind: str) -> str:
        """Return a constant that is not null."""
        return next(one for one in iter(lambda: self._constant(kind), None) if "NULL" not in one)

    def _laterals(self) -> str:
        source, columns = self._rows()
        (one, other), kinds = (self._name(), self._name()), [self._kind(), self._kind()]
        first, outputs = self._rows_query(columns, kinds, 0)
        seen = [Column(f"{one}.{each.name}", each.kind) for each in outputs]
        second, more = self._rows_query([*columns, *seen], kinds, 0)
        found = [Column(f"{other}.{each.name}", each.kind) for each in more]
        listed = ", ".join(f"{each.name} AS {self._name()}" for each in (columns[0], *seen, *found))
        on = self._random.choice(("TRUE", self._condition([*columns, *found], 0)))
        return (
            f"SELECT {listed} FROM {source}, LATERAL ({first}) AS {one} LEFT JOIN LATERAL ({second}) AS {other} ON {on}"
        )

    def _beside_aggregates(self) -> str:
        source, columns = self._rows()
        key, alias = self._random.choice(columns), self._name()
        kept = [Column(self._name(), kind) for kind in ("int", self._kind())]
        made = ", ".join(f"{self._aggregate(columns, each.kind)} AS {each.name}" for each in kept)
        groups = f"SELECT {key.name} AS {alias}k, {made} FROM {source} GROUP BY {key.name}"
        outer = [Column(f"{alias}.{alias}k", key.kind), *(Column(f"{alias}.{each.name}", each.kind) for each in kept)]
        if self._random.random() < 0.5:
            value = self._value_query(outer, self._kind(), 1)
            return f"SELECT {alias}k, {value} AS {self._name()} FROM ({groups}) AS {alias}"
        number = next((one for one in columns if one.kind == "int"), key)
        if self._random.random() < 0.5:
            # an aggregate of the rows outside within the query itself
            inner, own = self._table()
            least = next((one.name for one in own if one.kind == number.kind), "0")
            where = f"{least} {self._random.choice(_SIGNS)} {self._random.choice(('min', 'max'))}({number.name})"
            found = f"(SELECT {self._aggregate(own, 'int')} FROM {inner} WHERE {where})"
            return f"SELECT {key.name} AS {self._name()}, {found} AS {self._name()} FROM {source} GROUP BY {key.name}"
        listed = f"{number.name} AS {self._name()}, {self._aggregate(columns, 'int')} AS {self._name()}"
        value = self._value_query([number], self._kind(), 1)
        return f"SELECT {listed}, {value} AS {self._name()} FROM {source} GROUP BY {number.name}"

    # parts -----------------------------------------------------------------------------------------------------

    def _kind(self) -> str:
        return self._random.choice(("int", "int", "text", "date", "decimal"))

    def _table(self) -> tuple[str, list[Column]]:
        table, alias = self._random.choice(list(self.columns)), self._name()
        return f"{table} AS {alias}", [Column(f"{alias}.{one.name}", one.kind) for one in self.columns[table]]

    def _rows(self) -> tuple[str, list[Column]]:
        text, columns = self._table()
        if self._random.random() < 0.25:
            other, others = self._table()
            text, columns = f"{text} JOIN {other} ON {self._equality(columns, others)}", columns + others
        return text, columns

    def _equality(self, own: Sequence[Column], others: Sequence[Column]) -> str:
        return f"{own[0].name} = {others[0].name}"

    def _some_where(self, columns: Sequence[Column]) -> str:
        return f" WHERE {self._condition(columns, 1)}" if self._random.random() < 0.2 else ""

    def _tie(self, own: Sequence[Column], outer: Sequence[Column], depth: int) -> str:
        """Return a condition over columns of a query and of rows outside."""
        pairs = [(one, other) for one in own for other in outer if one.kind == other.kind and one.kind != "bool"]
        if not pairs:
            return self._condition([*own, *outer], 1)
        one, other = self._random.choice(pairs)
        sign = "=" if self._random.random() < 0.5 else self._random.choice((*_SIGNS, "IS NOT DISTINCT FROM"))
        ties = [f"{one.name} {sign} {other.name}"]
        if self._random.random() < 0.3:
            ties.append(self._condition([*own, *outer], 1))
        if depth > 0 and self._random.random() < 0.25:
            ties.append(self._test([*own, *outer], depth - 1))
        if self._random.random() < 0.2:
            ties.append(self._condition(own, 1))
        return f" {'AND' if self._random.random() < 0.85 else 'OR'} ".join(ties)

    def _rows_query(self, outer: Sequence[Column], kinds: Sequence[str], depth: int) -> tuple[str, list[Column]]:
        """Return a query of rows that depends on rows outside, and its columns."""
        outputs = [Column(self._name(), kind) for kind in kinds]
        if self._random.random() < 0.15:
            sides = [self._plain_rows(outer, outputs, depth) for _ in range(2)]
            return f" {self._random.choice(('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT'))} ".join(sides), outputs
        shapes = (self._plain_rows, self._plain_rows, self._limited_rows, self._grouped_rows, self._windowed_rows)
        return self._random.choice(shapes)(outer, outputs, depth), outputs

    def _items(self, columns: Sequence[Column], outputs: Sequence[Column]) -> str:
        return ", ".join(f"{self._expression(columns, one.kind, 1)} AS {one.name}" for one in outputs)

    def _plain_rows(self, outer: Sequence[Column], outputs: Sequence[Column], depth: int) -> str:
        source, own = self._rows()
        distinct = "DISTINCT " if self._random.random() < 0.2 else ""
        looked_at = [*own, *outer] if self._random.random() < 0.3 else own
        return f"SELECT {distinct}{self._items(looked_at, outputs)} FROM {source} WHERE {self._tie(own, outer, depth)}"

    def _limited_rows(self, outer: Sequence[Column], outputs: Sequence[Column], depth: int) -> str:
        source, own = self._rows()
        order = ", ".join(f"{one.name}{self._random.choice(('', ' DESC'))}" for one in own)
        text = f"SELECT {self._items(own, outputs)} FROM {source} WHERE {self._tie(own, outer, depth)} ORDER BY {order}"
        return f"{text} LIMIT {self._random.randint(0, 3)}{self._random.choice(('', ' OFFSET 1', ' OFFSET 2'))}"

    def _grouped_rows(self, outer: Sequence[Column], outputs: Sequence[Column], depth: int) -> str:
        source, own = self._rows()
        listed = ", ".join(f"{self._aggregate(own, one.kind)} AS {one.name}" for one in outputs)
        text = f"SELECT {listed} FROM {source} WHERE {self._tie(own, outer, depth)}"
        if self._random.random() < 0.6:
            sets = ("{0}", "{0}", "{0}, {1}", "ROLLUP ({0})", "CUBE ({0}, {1})", "GROUPING SETS (({0}), ({1}), ())")
            text += f" GROUP BY {self._random.choice(sets).format(*(one.name for one in self._random.sample(own, 2)))}"
        if self._random.random() < 0.3:
            text += f" HAVING count(*) {self._random.choice(_SIGNS)} {self._random.randint(0, 2)}"
        return text

    def _windowed_rows(self, outer: Sequence[Column], outputs: Sequence[Column], depth: int) -> str:
        source, own = self._rows()
        order = ", ".join(one.name for one in own)
        items = [self._expression(own, one.kind, 1) for one in outputs]
        for at, one in enumerate(outputs):
            if one.kind == "int":
                over = f"ORDER BY {order}{self._random.choice(_FRAMES)}"
                items[at] = self._random.choice((f"sum({items[at]}) OVER ({over})", "count(*) OVER ()"))
                items[at] = f"CAST({items[at]} AS BIGINT)"
            elif self._random.random() < 0.5:
                items[at] = f"max({items[at]}) OVER (ORDER BY {order}{self._random.choice(_FRAMES)})"
        listed = ", ".join(f"{item} AS {one.name}" for item, one in zip(items, outputs, strict=True))
        return f"SELECT {listed} FROM {source} WHERE {self._tie(own, outer, depth)}"

    def _value_query(self, outer: Sequence[Column], kind: str, depth: int) -> str:
        """Return a query of one value that depends on rows outside."""
        if self._random.random() < 0.4:
            inner, (column,) = self._rows_query(outer, [kind], depth)
            alias = self._name()
            value = self._aggregate([Column(f"{alias}.{column.name}", kind)], kind)
            return f"(SELECT {value} FROM ({inner}) AS {alias})"
        source, own = self._rows()
        looked_at = [*own, *outer] if self._random.random() < 0.2 else own
        where = f" WHERE {self._tie(own, outer, depth)}"
        if self._random.random() < 0.25:
            order = ", ".join(one.name for one in own)
            offset = self._random.choice(("", " OFFSET 1"))
            return (
                f"(SELECT {self._expression(looked_at, kind, 1)} FROM {source}{where} ORDER BY {order} LIMIT 1{offset})"
            )
        having = f" HAVING count(*) {self._random.choice(_SIGNS)} 1" if self._random.random() < 0.2 else ""
        return f"(SELECT {self._aggregate(own, kind)} FROM {source}{where}{having})"

    def _test(self, outer: Sequence[Column], depth: int) -> str:
        """Return a condition with a query that depends on rows outside."""
        of = self._random.choice([one for one in outer if one.kind != "bool"])
        negated = self._random.choice(("", "NOT "))
        chance = self._random.random()
        if chance < 0.3:
            return f"{negated}EXISTS ({self._rows_query(outer, [self._kind()], depth)[0]})"
        value = self._expression([of], of.kind, 1)
        if chance < 0.4:
            kinds = [of.kind, self._random.choice([one for one in outer if one.kind != "bool"]).kind]
            row = f"({value}, {self._expression(outer, kinds[1], 1)})"
            return f"{row} {negated}IN ({self._rows_query(outer, kinds, depth)[0]})"
        if chance < 0.6:
            return f"{value} {negated}IN ({self._rows_query(outer, [of.kind], depth)[0]})"
        if chance < 0.75:
            quantifier = self._random.choice(("ANY", "ALL"))
            inner = self._rows_query(outer, [of.kind], depth)[0]
            return f"{value} {self._random.choice(_SIGNS)} {quantifier} ({inner})"
        return f"{value} {self._random.choice(_SIGNS)} {self._value_query(outer, of.kind, depth)}"
