"""Random programs over the whole interface, each step done a second time in plain Python, row by row.

    program = WholeProgram(env, random.Random(seed), folder)      sources: every reader, every type of column
    program.grow(steps)                                           relational and functional calls, partitionings
    program.check()                                               some way of taking the result, rows compared

Numbers are small and floats are quarters, so sums are exact in any order; a mean or a deviation (``approx``) is only
carried on as a value. ``scale`` makes tables larger and keys rarer; ``trace`` says what was done.
"""

import math

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from engine import JoinHint, PlanError, col, lit, when
from tests.integration.program_groups import GroupSteps
from tests.integration.program_state import (
    KEYS,
    LONG,
    TYPES,
    VALUES,
    State,
    canonical,
    joined_rows,
    null_safe,
    ordered,
    pair_count,
    rounded,
)
from tests.integration.row_oracle import assert_same_order, assert_same_rows, plain_row, rows_of


class WholeProgram(GroupSteps):
    """One program under construction."""

    def __init__(self, env, chance, folder, scale=1):
        self.env, self.chance, self.folder, self.scale = env, chance, folder, scale
        self.trace, self.serial = [], 0
        self.pool = [self.source() for _ in range(chance.randrange(1, 4))]
        self.state = self.pool[0]

    def fresh(self, prefix="c"):
        self.serial += 1
        return f"{prefix}{self.serial}"

    # sources ---------------------------------------------------------------------------------------------------

    def source(self):
        kind = self.chance.choice(["csv", "parquet", "records", "arrow", "rows", "replicated"])
        size = self.chance.choice([0, 1, 3, 12, 12, 40]) * self.scale
        kinds = ["int", "text", *self.chance.sample(list(VALUES), self.chance.randrange(0, 4))]
        if kind == "csv":
            kinds = [one for one in kinds if one not in ("list", "bytes")]
        columns = tuple((self.fresh(), one) for one in kinds)
        nulls = self.chance.choice([0, 0.1, 0.5])

        spread = {"int": range(size), "text": [f"{number} {LONG[: number % 90]}" for number in range(size)]}

        def value(one):
            if self.chance.random() < nulls:
                return None
            is_rare = self.scale > 1 and one in spread and self.chance.random() < 0.95
            return self.chance.choice(spread[one] if is_rare else VALUES[one])

        rows = [tuple(value(one) for _, one in columns) for _ in range(size)]
        schema = pa.schema([(name, TYPES[one]) for name, one in columns])
        table = pa.table([pa.array([row[at] for row in rows], f.type) for at, f in enumerate(schema)], schema=schema)
        self.trace.append(f"source {kind} {columns} {size} rows, nulls {nulls}")
        return State(getattr(self, f"read_{kind}")(table), columns, rows)

    def parts(self, table):
        path = self.folder / self.fresh("in")
        path.mkdir()
        cut = self.chance.randrange(table.num_rows + 1)
        return path, [table.slice(0, cut), table.slice(cut)]

    def read_csv(self, table):
        path, parts = self.parts(table)
        for index, part in enumerate(parts):
            pc.write_csv(part, path / f"{index}.csv", pc.WriteOptions(include_header=False))
        return self.env.read_csv(str(path), schema=table.schema)

    def read_parquet(self, table):
        path, parts = self.parts(table)
        for index, part in enumerate(parts):
            pq.write_table(part, path / f"{index}.parquet", row_group_size=7)
        return self.env.read_parquet(str(path))

    def read_records(self, table):
        path = self.folder / self.fresh("records")
        self.env.from_arrow(table).write_records(path)
        self.env.execute()
        return self.env.read_records(path)

    def read_arrow(self, table):
        return self.env.from_arrow(table)

    def read_rows(self, table):
        return self.env.from_rows(rows_of(table), table.schema)

    def read_replicated(self, table):
        return self.read_parquet(table).replicated()

    # steps -----------------------------------------------------------------------------------------------------

    def grow(self, steps):
        kinds = [name.removeprefix("do_") for name in dir(self) if name.startswith("do_")]
        for _ in range(steps):
            kind = self.chance.choice([*kinds, "join", "join", "aggregate", "union"])
            self.trace.append(kind)
            getattr(self, f"do_{kind}")()
            self.keep_small()
            if self.chance.random() < 0.3:
                self.pool.append(self.state)
            if self.chance.random() < 0.1:
                self.state = self.chance.choice(self.pool)

    def keep_small(self):
        state = self.state
        if len(state.rows) > 120 * self.scale:
            self.keep([at for at in range(len(state.columns)) if state.columns[at][1] in KEYS][:8])
            self.sort_by(range(len(self.state.columns)), limit=30 * self.scale)

    def keep(self, positions):
        """Keep these columns and return whether there are any."""
        if not positions:
            return False
        state = self.state
        columns = tuple(state.columns[at] for at in positions)
        rows = [tuple(row[at] for at in positions) for row in state.rows]
        self.state = State(state.data.select([name for name, _ in columns]), columns, rows)
        return True

    def sort_by(self, positions, limit=None):
        state, chance = self.state, self.chance
        positions = list(positions)
        down = [chance.random() < 0.5 for _ in positions]
        last_ = [chance.random() < 0.5 for _ in positions]
        names = [state.names[at] for at in positions]
        rows = ordered(state.rows, positions, down, last_)
        if limit is None:
            data = state.data.sort(names, descending=down, nulls_last=last_)
        elif chance.random() < 0.5:
            data = state.data.top(limit, names, descending=down, nulls_last=last_)
        else:
            data = state.data.sort(names, descending=down, nulls_last=last_).limit(limit)
        self.trace.append(f"   sort {names} {down} {last_} limit {limit}")
        self.state = State(data, state.columns, rows[:limit], tuple(positions))

    def condition(self, state):
        """Return an expression and what it says about a row (true, false, None)."""
        at = self.chance.choice(state.of(*KEYS) or [None])
        if at is None:
            return lit(True), lambda row: True
        name, kind = state.columns[at]
        value = self.chance.choice(VALUES[kind])
        if kind == "float" and math.isnan(value):
            value = 1.0
        choice = self.chance.randrange(6)
        self.trace.append(f"   condition {choice} {name} {value!r}")
        if choice == 0:
            return col(name).is_null(), lambda row: row[at] is None
        if choice == 1:
            return col(name).is_not_null(), lambda row: row[at] is not None
        if choice == 2:
            return col(name) == value, lambda row: null_safe(lambda one: one == value)(row[at])
        if choice == 3 and kind != "flag":
            # NaN, which equals itself, is the largest number
            return col(name) >= value, lambda row: null_safe(lambda one: one >= value or one != one)(row[at])
        if choice == 4 and kind not in ("flag", "bytes"):
            return col(name).is_in([value]), lambda row: row[at] is not None and row[at] == value
        left, says = col(name) == value, null_safe(lambda one: one == value)
        return ~left | col(name).is_null(), lambda row: row[at] is None or not says(row[at])

    def do_filter(self):
        expression, says = self.condition(self.state)
        state = self.state
        self.state = State(
            state.data.filter(expression), state.columns, [row for row in state.rows if says(row)], state.order
        )

    def do_filter_python(self):
        state = self.state
        at = self.chance.choice(state.of("int", "text", "list") or [None])
        if at is None:
            return
        name, value = state.names[at], self.chance.choice(VALUES[state.columns[at][1]])
        rows = [row for row in state.rows if row[at] is None or row[at] != value]
        self.state = State(
            state.data.filter(lambda row: row[name] is None or row[name] != value), state.columns, rows, state.order
        )

    def do_compute(self):
        state = self.state
        name = self.fresh("x")
        numbers, texts = state.of("int", "small"), state.of("text")
        if numbers and self.chance.random() < 0.6:
            at, by = self.chance.choice(numbers), self.chance.choice([2, 3, -7])
            one = state.names[at]
            expression, kind, function = self.chance.choice(
                [
                    (col(one) // by, "int", null_safe(lambda value: value // by)),
                    (col(one) % by, "int", null_safe(lambda value: value % by)),
                    (col(one) - by, "int", null_safe(lambda value: value - by)),
                    (
                        when(col(one) > by).then(col(one) - by).otherwise(lit(0)),
                        "int",
                        lambda value: value - by if value is not None and value > by else 0,
                    ),
                    (col(one).cast(pa.string()), "text", null_safe(str)),
                    (col(one).is_in([1, 2, None]), "flag", lambda value: True if value in (1, 2) else None),
                ]
            )
        elif texts:
            at = self.chance.choice(texts)
            one = state.names[at]
            expression, kind, function = self.chance.choice(
                [
                    (col(one).str.length(), "int", null_safe(len)),
                    (col(one).str.slice(0, 1), "text", null_safe(lambda value: value[0:1])),
                    (col(one).str.contains("b"), "flag", null_safe(lambda value: "b" in value)),
                    (col(one).str.concat("-", col(one)), "text", null_safe(lambda value: f"{value}-{value}"[:2000])),
                    (col(one).str.upper(), "text", null_safe(str.upper)),
                ]
            )
            if any(row[at] is not None and len(row[at]) > 500 for row in state.rows):
                return
        else:
            return
        self.trace.append(f"   {name} = {expression!r}")
        self.state = State(
            state.data.with_columns(**{name: expression}),
            (*state.columns, (name, kind)),
            [(*row, function(row[at])) for row in state.rows],
            state.order,
        )

    def do_project(self):
        state = self.state
        positions = self.chance.sample(range(len(state.columns)), self.chance.randrange(1, len(state.columns) + 1))
        if not any(state.columns[at][1] in KEYS for at in positions):
            return
        self.keep(positions)

    def do_rename(self):
        state = self.state
        at, new = self.chance.randrange(len(state.columns)), self.fresh("r")
        columns = tuple((new if index == at else name, kind) for index, (name, kind) in enumerate(state.columns))
        self.state = State(state.data.rename({state.names[at]: new}), columns, state.rows, state.order)

    def do_distinct(self):
        if not self.keep(self.state.of(*KEYS)):
            return
        state = self.state
        seen = {canonical(row): row for row in state.rows}
        self.state = State(state.data.distinct(), state.columns, list(seen.values()))

    def do_sort(self):
        keys = self.state.of(*KEYS)
        if keys:
            self.sort_by(self.chance.sample(keys, self.chance.randrange(1, min(len(keys), 3) + 1)))

    def do_top(self):
        if self.keep(self.state.of(*KEYS)):
            self.sort_by(range(len(self.state.columns)), limit=self.chance.choice([0, 1, 5, 30, 1000]))

    def do_spread(self):
        state, chance = self.state, self.chance
        names = [state.names[at] for at in state.of(*KEYS)]
        name = chance.choice(names) if names else None
        calls = [
            lambda data: data.shuffle(),
            lambda data: data.rebalance(),
            lambda data: data.rebalance().set_parallelism(chance.choice([1, 2, 4])),
            lambda data: data.rescale(),
            lambda data: data.global_(),
            lambda data: data.forward(),
        ]
        if name:
            calls += [
                lambda data: data.partition_by_range(name),
                lambda data: data.partition_custom(lambda key, number: len(str(key)) % number, name),
                lambda data: data.with_columns(kk=col(name).is_null()).key_by("kk").drop("kk"),
            ]
        chosen = chance.randrange(len(calls))
        self.trace.append(f"   spread {chosen}")
        self.state = State(calls[chosen](state.data), state.columns, state.rows)

    def do_map(self):
        state = self.state

        def turned(row):
            return tuple(row)[::-1]

        columns = state.columns[::-1]
        schema = State(None, columns, []).schema
        self.state = State(state.data.map(turned, schema), columns, [tuple(row)[::-1] for row in state.rows])

    def do_flat_map(self):
        state = self.state
        repeats = self.chance.choice([0, 1, 2])

        def repeated(row):
            for _ in range(repeats if row[0] is not None else 1):
                yield row

        rows = [row for row in state.rows for _ in range(repeats if row[0] is not None else 1)]
        self.state = State(state.data.flat_map(repeated, state.schema), state.columns, rows)

    def do_map_batches(self):
        state = self.state

        def same(batch):
            return [batch.slice(0, batch.num_rows // 2), batch.slice(batch.num_rows // 2)]

        self.state = State(state.data.map_batches(same, state.schema), state.columns, state.rows)

    def do_map_partition(self):
        state = self.state

        def same(rows):
            yield from (row for row in rows)

        self.state = State(state.data.map_partition(same, state.schema), state.columns, state.rows)

    # joins and unions ------------------------------------------------------------------------------------------

    def do_union(self):
        state = self.state
        other, pairs = self.pair()
        used = dict(pairs)
        if not self.keep(list(used)):
            return
        state = self.state
        right = other.data.select([col(other.names[at]).alias(state.names[i]) for i, at in enumerate(used.values())])
        kinds = [other.columns[at][1] for at in used.values()]
        columns = tuple(
            (name, "int" if {kind, two} == {"int", "small"} else kind)
            for (name, kind), two in zip(state.columns, kinds, strict=True)
        )
        rows_right = [tuple(row[at] for at in used.values()) for row in other.rows]
        self.state = State(state.data.union(right), columns, state.rows + rows_right)

    def do_join(self):
        state, chance = self.state, self.chance
        other, pairs = self.pair()
        how = chance.choice(["inner", "left", "right", "full", "semi", "anti", "not in", "cross"])
        hint = chance.choice([None, None, *JoinHint])
        if how == "cross" or not pairs:
            how, pairs = "cross", []
        if how == "not in":
            pairs = pairs[:1]
        if pair_count(state, other, pairs) > 1000 * self.scale + 2000:
            return
        condition, says = None, lambda row: True
        if chance.random() < 0.3 and how != "not in":
            both = State(None, (*state.columns, *other.columns), [])
            condition, says = self.condition(both)
        self.trace.append(f"   {how} {hint} {[(state.names[a], other.names[b]) for a, b in pairs]} {condition!r}")
        is_on = bool(pairs) and chance.random() < 0.4 and condition is None
        right, keywords = other.data, {}
        if is_on:
            renames = {other.names[two]: state.names[one] for one, two in pairs}
            right, keywords = right.rename(renames), {"on": [state.names[one] for one, _ in pairs]}
        elif pairs:
            keywords = {
                "left_on": [state.names[one] for one, _ in pairs],
                "right_on": [other.names[two] for _, two in pairs],
            }
        if condition is not None:
            keywords["condition"] = condition
        if how == "not in":
            keywords["null_aware"] = True
        data = state.data.join(right, how={"not in": "anti"}.get(how, how), hint=hint, **keywords)
        rows = joined_rows(state, other, pairs, how, says, is_on)
        columns = list(state.columns)
        for one, two in pairs if is_on else []:
            name, kind = columns[one]
            kinds = {"right": other.columns[two][1], "full": kind if kind == other.columns[two][1] else "int"}
            columns[one] = (name, kinds.get(how, kind))
        if how not in ("semi", "anti", "not in"):
            rights = {two for _, two in pairs}
            columns += [column for at, column in enumerate(other.columns) if not (is_on and at in rights)]
        self.state = State(data, tuple(columns), rows)

    # results ---------------------------------------------------------------------------------------------------

    def check(self):
        """Take the result some way and compare; a hint that would make a join wrong may be refused."""
        how = self.chance.choice(["collect", "collect", "count", "parquet", "records", "csv", "two sinks", "limit"])
        self.trace.append(f"check {how}")
        try:
            getattr(self, f"check_{how.replace(' ', '_')}")(self.state)
        except PlanError as error:
            if "join wrong" not in str(error):
                raise

    def check_collect(self, state):
        table = state.data.to_arrow()
        assert table.schema.names == state.names, (table.schema.names, state.names)
        assert table.schema.types == state.schema.types, (table.schema, state.schema)
        self.compare(rows_of(table), state)

    def compare(self, actual, state):
        actual, expected = rounded(actual, state), rounded(state.rows, state)
        assert_same_rows(actual, expected)
        if state.order is not None:
            keys = [[row[at] for at in state.order] for row in actual]
            assert_same_order(keys, [[row[at] for at in state.order] for row in expected])

    def check_count(self, state):
        assert state.data.count() == len(state.rows)

    def check_limit(self, state):
        limit = self.chance.choice([0, 1, 7, 500])
        table = state.data.limit(limit).to_arrow()
        actual = [plain_row(row) for row in rounded(rows_of(table), state)]
        left = [plain_row(row) for row in rounded(state.rows, state)]
        assert len(actual) == min(limit, len(left)), (len(actual), limit, len(left))
        for row in actual:
            left.remove(row)

    def written(self, state, write, read):
        path = self.folder / self.fresh("out")
        write(path)
        self.env.execute()
        self.compare(rows_of(read(path).to_arrow()), state)

    def check_parquet(self, state):
        self.written(state, state.data.write_parquet, self.env.read_parquet)

    def check_records(self, state):
        self.written(state, state.data.write_records, self.env.read_records)

    def check_csv(self, state):
        if state.of("list", "bytes", "approx", "float"):
            self.check_collect(state)
            return
        self.written(state, state.data.write_csv, lambda path: self.env.read_csv(path, schema=state.schema))

    def check_two_sinks(self, state):
        other = self.chance.choice(self.pool)
        path = self.folder / self.fresh("other")
        other.data.write_parquet(path)
        self.written(state, state.data.write_parquet, self.env.read_parquet)
        self.compare(rows_of(self.env.read_parquet(path).to_arrow()), State(other.data, other.columns, other.rows))
