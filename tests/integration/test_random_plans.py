"""Random programs: every operator on top of every other, as a plan and as SQL side by side, the rows compared.

``TORTURE=1``: hundreds of them in each mode.
"""

import random

import pyarrow as pa
import pytest

from engine import JoinHint, PlanError, col, count, lit, max_, min_, sum_, when
from tests.integration.conftest import MODES
from tests.integration.row_oracle import assert_same_rows, duck
from tests.property.matrix import IS_TORTURE

PROGRAMS_PER_MODE = 400 if IS_TORTURE else 12
STEPS = 7
TEXTS = ["", "a", "b", "ab", "long text that does not fit into a prefix", "ä", None]
#: what parts of a plan in one subtask read (tables have some hundred bytes): nothing, some of them, all
SMALL_PART_SIZES = ["0b", "400b", "1kb", "1mb"]
HINTS = list(JoinHint)
#: (condition, SQL) over i, s, j of the left and k of the right
CONDITIONS = [
    (None, ""),
    (None, ""),
    (col("k") > 0, " AND k > 0"),
    (col("j") < col("k"), " AND a.j < k"),
    (col("j").is_null() | (col("s") == "a"), " AND (a.j IS NULL OR a.s = 'a')"),
]


def make_tables(chance):
    def table(row_count):
        def number():
            return None if chance.random() < 0.1 else 1 if chance.random() < 0.5 else chance.randrange(-5, 6)

        return pa.table(
            {
                "i": pa.array([number() for _ in range(row_count)], pa.int64()),
                "s": pa.array([chance.choice(TEXTS) for _ in range(row_count)], pa.string()),
                "j": pa.array([number() for _ in range(row_count)], pa.int64()),
            }
        )

    return {"t0": table(40), "t1": table(12), "t2": table(0)}


class Program:
    """A data set, the same as SQL, and the columns: i and j are int64, s is a string; names stay these three."""

    def __init__(self, env, tables, chance):
        self.env, self.tables, self.chance = env, tables, chance
        self.sources = {name: env.from_arrow(table) for name, table in tables.items()}
        self.sources["t1"] = self.sources["t1"].replicated()
        self.reset()

    def reset(self):
        name = self.chance.choice(["t0", "t0", "t1", "t2"])
        self.data, self.sql = self.sources[name], f"SELECT i, s, j FROM {name}"

    def wrap(self, text):
        self.sql = text.format(f"({self.sql})")

    def other(self):
        """Return another program of a few steps, sometimes this very one (a diamond)."""
        if self.chance.random() < 0.3:
            return self.data, self.sql
        mine = self.data, self.sql
        self.reset()
        for _ in range(self.chance.randrange(3)):
            self.step(self.chance.choice(["filter", "compute", "distinct", "group", "python", "top"]))
        theirs = self.data, self.sql
        self.data, self.sql = mine
        return theirs

    def step(self, kind):
        getattr(self, kind)()

    def filter(self):
        bound = self.chance.randrange(-4, 5)
        condition, text = self.chance.choice(
            [
                (col("i") > bound, f"i > {bound}"),
                (col("i").is_null() | (col("j") <= bound), f"i IS NULL OR j <= {bound}"),
                (~(col("s") == "a"), "NOT (s = 'a')"),
                (col("s").is_in(["a", "ab", "ä"]) & col("j").is_not_null(), "s IN ('a', 'ab', 'ä') AND j IS NOT NULL"),
                (col("i") == col("j"), "i = j"),
            ]
        )
        self.data = self.data.filter(condition)
        self.wrap(f"SELECT * FROM {{}} WHERE {text}")

    def compute(self):
        number = self.chance.randrange(1, 4)
        expression = when(col("i") > number).then(col("j") - number).otherwise(col("i"))
        self.data = self.data.with_columns(i=expression, j=col("i") + col("j") * number)
        self.wrap(
            f"SELECT CASE WHEN i > {number} THEN j - {number} ELSE i END AS i, s, i + j * {number} AS j FROM {{}}"
        )

    def swap(self):
        self.data = self.data.select(col("j").alias("i"), "s", col("i").alias("j"))
        self.wrap("SELECT j AS i, s, i AS j FROM {}")

    def python(self):
        schema = pa.schema([("i", pa.int64()), ("s", pa.string()), ("j", pa.int64())])
        self.data = self.data.map(lambda row: (row.i, row.s, None if row.j is None else -row.j), schema)
        self.wrap("SELECT i, s, -j AS j FROM {}")

    def spread(self):
        """Say where rows go: it changes nothing."""
        calls = [
            lambda data: data.shuffle(),
            lambda data: data.rebalance().set_parallelism(2),
            lambda data: data.rescale(),
            lambda data: data.global_(),
            lambda data: data.forward(),
            lambda data: data.partition_by_range("s", "i"),
            lambda data: data.partition_custom(lambda i, s, count: (i or len(s or "")) % count, "i", "s"),
            # key_by refuses nulls
            lambda data: data.with_columns(k=col("s").is_null()).key_by("k").drop("k"),
        ]
        self.data = self.chance.choice(calls)(self.data)

    def distinct(self):
        self.data = self.data.distinct()
        self.wrap("SELECT DISTINCT * FROM {}")

    def union(self):
        data, sql = self.other()
        self.data = self.data.union(data.select("j", "s", "i"))
        self.wrap(f"SELECT * FROM {{}} UNION ALL SELECT i, s, j FROM ({sql})")

    def group(self):
        key = self.chance.choice(["i", "s"])
        if key == "i":
            grouped = self.data.group_by("i").agg(s=max_(col("s")), j=sum_(col("j")))
            self.wrap("SELECT i, max(s) AS s, sum(j)::BIGINT AS j FROM {} GROUP BY i")
        else:
            grouped = self.data.group_by("s").agg(i=count(), j=min_(col("j"))).select("i", "s", "j")
            self.wrap("SELECT count(*) AS i, s, min(j) AS j FROM {} GROUP BY s")
        self.data = grouped

    def total(self):
        self.data = self.data.group_by().agg(i=count(col("i")), s=min_(col("s")), j=sum_(col("j") + lit(1)))
        self.wrap("SELECT count(i) AS i, min(s) AS s, sum(j + 1)::BIGINT AS j FROM {}")

    def top(self):
        limit = self.chance.randrange(12)
        self.data = self.data.sort(["s", "j", "i"], descending=[True, False, True], nulls_last=True).limit(limit)
        order = "s DESC NULLS LAST, j ASC NULLS LAST, i DESC NULLS LAST"
        self.wrap(f"SELECT * FROM {{}} ORDER BY {order} LIMIT {limit}")

    def join(self):
        data, sql = self.other()
        kind = self.chance.choice(["on", "left_on", "filtering", "cross"])
        getattr(self, f"join_{kind}")(data, sql, self.chance.choice(HINTS), *self.chance.choice(CONDITIONS))
        # joins of joins multiply: keep what follows small
        self.top()

    def coalesce(self, joined, text):
        value = when(col("j").is_null()).then(col("k")).otherwise(col("j"))
        self.data = joined.select("i", "s", value.alias("j"))
        self.wrap(f"SELECT {text}")

    def join_on(self, data, sql, hint, condition, text):
        how = self.chance.choice(["inner", "left", "right", "full"])
        other = data.select("i", col("j").alias("k"))
        joined = self.data.join(other, on="i", how=how, hint=hint, condition=condition)
        right = f"(SELECT i, j AS k FROM ({sql}))"
        columns = "coalesce(a.i, b.i) AS i, s, coalesce(j, k) AS j"
        self.coalesce(joined, f"{columns} FROM {{}} a {how} JOIN {right} b ON a.i = b.i{text}")

    def join_left_on(self, data, sql, hint, condition, text):
        how = self.chance.choice(["inner", "left", "right", "full"])
        other = data.select(col("s").alias("t"), col("i").alias("k"))
        joined = self.data.join(other, left_on=["s", "j"], right_on=["t", "k"], how=how, hint=hint, condition=condition)
        right = f"(SELECT s AS t, i AS k FROM ({sql}))"
        on = f"a.s = b.t AND a.j = b.k{text}"
        self.coalesce(joined, f"i, s, coalesce(j, k) AS j FROM {{}} a {how} JOIN {right} b ON {on}")

    def join_filtering(self, data, sql, hint, condition, text):
        how = self.chance.choice(["semi", "anti", "not in"])
        other = data.select("i", col("j").alias("k"))
        if how == "not in":
            self.data = self.data.join(other, on="i", how="anti", null_aware=True, hint=hint)
            self.wrap(f"SELECT * FROM {{}} WHERE i NOT IN (SELECT i FROM ({sql}))")
            return
        self.data = self.data.join(other, on="i", how=how, hint=hint, condition=condition)
        self.wrap(f"SELECT * FROM {{}} a {how} JOIN (SELECT i, j AS k FROM ({sql})) b ON a.i = b.i{text}")

    def join_cross(self, data, sql, hint, condition, text):
        other = data.select(col("j").alias("k")).top(5, "k")
        joined = self.data.join(other, how="cross", hint=hint, condition=condition)
        right = f"(SELECT j AS k FROM ({sql}) ORDER BY j DESC NULLS LAST LIMIT 5)"
        self.coalesce(joined, f"i, s, coalesce(j, k) AS j FROM {{}} a JOIN {right} b ON true{text}")


STEP_KINDS = [
    "filter",
    "spread",
    "compute",
    "swap",
    "python",
    "distinct",
    "union",
    "group",
    "total",
    "top",
    "join",
    "join",
    "union",
]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(PROGRAMS_PER_MODE))
@pytest.mark.parametrize("mode", MODES)
def test_a_random_program_gives_the_rows_of_duckdb(open_environment, mode, seed):
    chance = random.Random(f"{mode} {seed}")
    size = chance.choice(SMALL_PART_SIZES)
    env = open_environment(**MODES[mode], **{"python.execution-mode": "thread", "debug.small-part-size": size})
    program = Program(env, make_tables(chance), chance)
    kinds = [chance.choice(STEP_KINDS) for _ in range(chance.randrange(2, STEPS))]
    for kind in kinds:
        program.step(kind)
    try:
        actual = program.data.collect()
    except PlanError as error:
        assert "join wrong" in str(error), "only a hint that would be wrong may be refused"
        return
    assert_same_rows(actual, duck(program.sql, **program.tables))
