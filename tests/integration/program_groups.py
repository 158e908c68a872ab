"""The steps of a random program over groups: aggregates, reduce and co_group."""

import statistics

from engine import avg, count, count_distinct, first, last, max_, min_, stddev, sum_, variance
from tests.integration.program_state import KEYS, State
from tests.integration.row_oracle import order_key, plain


class GroupSteps:
    """Base of WholeProgram with what it does by keys."""

    def groups(self, rows, keys):
        found = {}
        for row in rows:
            found.setdefault(tuple(plain(row[at]) for at in keys), []).append(row)
        return found

    def group_keys(self):
        keys = self.state.of(*KEYS)
        return self.chance.sample(keys, min(len(keys), self.chance.choice([1, 1, 1, 2, 3])))

    def do_aggregate(self):
        state, chance = self.state, self.chance
        keys = self.group_keys() if chance.random() < 0.8 else []
        calls, outcomes, columns = {}, [], [state.columns[at] for at in keys]
        for _ in range(chance.randrange(1, 5)):
            name = self.fresh("a")
            calls[name], kind, function = self.aggregate(state, chance.randrange(len(state.columns)))
            outcomes.append(function)
            columns.append((name, kind))
        self.trace.append(f"   by {[state.names[at] for at in keys]}: {calls}")
        groups = self.groups(state.rows, keys)
        if not keys and not groups:
            groups = {(): []}
        rows = [
            (*(group[0][at] for at in keys), *(function(group) for function in outcomes)) for group in groups.values()
        ]
        data = state.data.group_by(*[state.names[at] for at in keys]).agg(**calls)
        self.state = State(data, tuple(columns), rows)

    def aggregate(self, state, at):
        """Return an aggregate of a column, the kind of its result, and what makes it of a group; None for none."""
        name, kind = state.columns[at]
        whole = [count(), "int", len]
        choices = [whole, [count(name), "int", lambda rows: sum(row[at] is not None for row in rows)]]

        def present(rows):
            return [row[at] for row in rows if row[at] is not None]

        if kind in KEYS:
            choices += [
                [min_(name), kind, lambda rows: min(present(rows), key=order_key, default=None)],
                [max_(name), kind, lambda rows: max(present(rows), key=order_key, default=None)],
                [count_distinct(name), "int", lambda rows: len({plain(value) for value in present(rows)})],
            ]
        values = {plain(row[at]) for row in state.rows}
        if len(values) == 1 and kind in KEYS:
            choices += [[which(name), kind, lambda rows: rows[0][at] if rows else None] for which in (first, last)]
        if kind in ("int", "small"):
            choices += [
                [sum_(name), "int", lambda rows: sum(present(rows)) if present(rows) else None],
                [avg(name), "approx", lambda rows: statistics.fmean(present(rows)) if present(rows) else None],
            ]
        if kind in ("int", "small", "float") and not any(value == "NaN" for value in values):
            choices += [
                [
                    stddev(name),
                    "approx",
                    lambda rows: statistics.stdev(present(rows)) if len(present(rows)) > 1 else None,
                ],
                [
                    variance(name),
                    "approx",
                    lambda rows: statistics.variance(present(rows)) if len(present(rows)) > 1 else None,
                ],
            ]
        if kind == "float":
            choices.append([sum_(name), "approx", lambda rows: sum(present(rows)) if present(rows) else None])
        return self.chance.choice(choices)

    def do_reduce(self):
        state = self.state
        keys = self.group_keys()
        if not keys:
            return

        def counted(rows):
            number, head = 0, None
            for row in rows:
                head = head or tuple(row)
                number += 1
            yield (*[head[at] for at in keys], number)

        columns = (*(state.columns[at] for at in keys), (self.fresh("g"), "int"))
        rows = [(*[group[0][at] for at in keys], len(group)) for group in self.groups(state.rows, keys).values()]
        data = state.data.group_by(*[state.names[at] for at in keys]).reduce(counted, State(None, columns, []).schema)
        self.state = State(data, columns, rows)

    def pair(self):
        """Return another state, its columns renamed so that no name is there twice, and pairs of key columns."""
        other = self.chance.choice([*self.pool, self.state])
        names = {name: self.fresh("o") for name in other.names}
        other = State(other.data.rename(names), tuple((names[name], kind) for name, kind in other.columns), other.rows)
        pairs = [
            (left, right)
            for left, (_, one) in enumerate(self.state.columns)
            for right, (_, two) in enumerate(other.columns)
            if one in KEYS and (one == two or {one, two} == {"int", "small"})
        ]
        chosen = self.chance.sample(pairs, min(len(pairs), self.chance.choice([1, 1, 2])))
        lefts, rights = [left for left, _ in chosen], [right for _, right in chosen]
        if len(set(lefts)) < len(lefts) or len(set(rights)) < len(rights):
            chosen = chosen[:1]
        return other, chosen

    def do_co_group(self):
        state = self.state
        other, pairs = self.pair()
        if not pairs:
            return
        keys = [self.fresh("k") for _ in pairs]
        left = state.data.rename({state.names[one]: key for key, (one, _) in zip(keys, pairs, strict=True)})
        right = other.data.rename({other.names[two]: key for key, (_, two) in zip(keys, pairs, strict=True)})

        def sizes(left_rows, right_rows):
            key, here, there = None, 0, 0
            for row in left_rows:
                key, here = tuple(row[name] for name in keys), here + 1
            for row in right_rows:
                key, there = tuple(row[name] for name in keys), there + 1
            return [(*key, here, there)]

        kinds = ["int" if state.columns[one][1] == "small" else state.columns[one][1] for one, _ in pairs]
        columns = (*zip(keys, kinds, strict=True), (self.fresh("h"), "int"), (self.fresh("t"), "int"))
        mine = self.groups(state.rows, [one for one, _ in pairs])
        theirs = self.groups(other.rows, [two for _, two in pairs])
        rows = []
        for key in {**mine, **theirs}:
            values = (
                [mine[key][0][one] for one, _ in pairs] if key in mine else [theirs[key][0][two] for _, two in pairs]
            )
            rows.append((*values, len(mine.get(key, ())), len(theirs.get(key, ()))))
        self.state = State(left.co_group(right, keys, sizes, State(None, columns, []).schema), columns, rows)
