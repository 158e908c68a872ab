"""Random programs over everything that has a type: zones, decimals, nested values, windows, functions, SQL.

    WideProgram(env, chance).run() -> DataSet        the same calls for the same chance, wherever env runs

What a program gives must not depend on the order of its input: ``id`` is unique and orders what needs an order.
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa

from engine import (
    avg,
    coalesce,
    col,
    collect_list,
    corr,
    count,
    count_distinct,
    count_if,
    dense_rank,
    first_value,
    greatest,
    hash64,
    lag,
    last_value,
    lead,
    least,
    lit,
    max_,
    max_by,
    median,
    min_,
    min_by,
    ntile,
    quantile,
    rank,
    row_number,
    stddev,
    string_agg,
    struct,
    sum_,
    udf,
    variance,
    when,
)
from tests.dataframes.wide_queries import QUERIES

NAN = float("nan")
START = datetime(2024, 3, 30, tzinfo=UTC)
_PART = pa.struct([("a", pa.int32()), ("b", pa.string())])
TYPES = {
    "g": pa.int32(),
    "s": pa.string(),
    "x": pa.float64(),
    "d": pa.decimal128(12, 2),
    "w": pa.decimal128(30, 10),
    "at": pa.timestamp("ns", "Europe/Zurich"),
    "at2": pa.timestamp("us"),
    "day": pa.date32(),
    "u": pa.uint64(),
    "n": pa.int64(),
    "f": pa.float32(),
    "yes": pa.bool_(),
    "t": pa.time64("us"),
    "l": pa.list_(pa.int64()),
    "st": _PART,
    "dur": pa.duration("us"),
    "bin": pa.binary(),
    "lt": pa.list_(pa.duration("s")),
    "m": pa.map_(pa.string(), pa.int32()),
}


def _value(name, chance):
    number = chance.choice([0, 0, 1, 1, 2, 3, -1, -2, 7, 40])
    return {
        "g": lambda: number % 5,
        "s": lambda: chance.choice(["", "a", "Ab c", "k1", "k2", "straße", "İx", "12", "2024-02-29", "a,b,c", " pad "]),
        "x": lambda: chance.choice([0.0, -0.0, NAN, float("inf"), -2.25, 0.5, 1.75, 3.0, 1e300]),
        "d": lambda: Decimal(number * 125) / 100,
        "w": lambda: Decimal(number * 10**15 + 1) / 10**10,
        "at": lambda: START + timedelta(minutes=number * 47),
        "at2": lambda: datetime(1969, 12, 31, 23) + timedelta(minutes=number * 53),
        "day": lambda: date(2024, 2, 27) + timedelta(days=number),
        "u": lambda: abs(number) * (2**63 if chance.random() < 0.1 and abs(number) < 2 else 1),
        "n": lambda: number * (2**40 if chance.random() < 0.1 else 1),
        "f": lambda: number / 4,
        "yes": lambda: number > 1,
        "t": lambda: time(abs(number) % 24, 30, 1, 5),
        "l": lambda: [None if chance.random() < 0.2 else each for each in range(number % 4)],
        "st": lambda: {"a": number, "b": chance.choice(["x", None])},
        "dur": lambda: timedelta(seconds=number),
        "bin": lambda: bytes([abs(number)]),
        "lt": lambda: [timedelta(seconds=number)],
        "m": lambda: [("a", number)],
    }[name]()


def make_table(chance, rows):
    """Return rows of all types, with nulls."""
    nulls = chance.choice([0.0, 0.1, 0.4])
    columns = {"id": pa.array(range(rows), pa.int64())}
    for name, data_type in TYPES.items():
        values = [None if chance.random() < nulls else _value(name, chance) for _ in range(rows)]
        columns[name] = pa.array(values, data_type)
    return pa.table(columns)


@udf(pa.int64())
def _twice(value):
    return None if value is None else 2 * value


EXPRESSIONS = [
    col("n") + col("g"),
    col("n") * 3 - col("id"),
    col("g") // 2,
    col("n") % 3,
    col("d") + col("w"),
    col("d") * col("d"),
    col("d") / 3,
    col("n") / col("g"),
    col("x") / col("d"),
    col("d") * col("g"),
    col("d").round(1),
    col("x").round(1),
    col("x").floor(),
    col("d").cast(pa.float64()),
    col("w").cast(pa.float64()),
    col("n").cast(pa.float64()),
    col("g").cast(pa.int64()),
    col("d").cast(pa.string()),
    col("x").cast(pa.string()),
    col("s").try_cast(pa.int64()),
    col("s").str.upper(),
    col("s").str.length(),
    col("s").str.slice(1, 3),
    col("s").str.split(","),
    col("s").str.contains("a|k", regex=True),
    col("s").str.like("%b_c%"),
    col("s").str.extract("([a-z])([0-9])", 1),
    col("s").str.to_date("%Y-%m-%d"),
    col("at").dt.hour(),
    col("at").dt.truncate("day"),
    col("at").dt.add(days=1),
    col("at").dt.to_timezone("Asia/Kathmandu").dt.strftime("%d %H:%M"),
    col("at2").dt.truncate("month"),
    col("at2").dt.epoch("s"),
    col("day").dt.year(),
    col("day").dt.weekday(),
    col("day").dt.last_day(),
    col("day") + timedelta(days=3),
    col("at") - col("dur"),
    col("dur") + col("dur"),
    col("t").cast(pa.string()),
    col("l").list.length(),
    col("l").list.sum(),
    col("l").list.sort(),
    col("lt").list.get(0),
    col("st").field("a"),
    struct(p=col("d"), q=col("at")),
    col("m").map.get("a"),
    coalesce(col("g"), col("n"), lit(7)),
    greatest(col("d"), col("w")),
    least(col("day"), lit(date(2024, 2, 28))),
    when(col("g") > 1).then(col("d")).otherwise(col("w")),
    when(col("yes")).then(col("s")).otherwise(lit("no")),
    col("u") + lit(1, pa.uint64()),
    hash64(col("s"), col("n"), col("d")),
    _twice(col("g")),
    col("x").eq_null_safe(lit(NAN)),
    col("f") * 2,
    col("f") + col("g"),
    col("id").shift_left(2).bit_xor(col("g")),
    col("bin").is_null() | col("yes"),
    col("x").fill_null(0.5).is_nan(),
]
CONDITIONS = [
    col("g") > 1,
    col("x") < 1.0,
    col("x") > 2.5,
    col("x").is_in(0.0, NAN),
    col("d").between(Decimal("0"), Decimal("2.50")),
    col("d") == col("g"),
    col("w") >= col("x"),
    col("s").is_in("a", "k1", ""),
    ~(col("s") == "a"),
    col("at") > datetime(2024, 3, 31, 1, 30, tzinfo=ZoneInfo("Europe/Zurich")),
    col("at2") <= datetime(1970, 1, 1),
    col("day") != date(2024, 2, 28),
    col("u") < 3,
    col("u") > col("n"),
    col("yes") | col("g").is_null(),
    col("t") > time(1),
    col("dur") >= timedelta(0),
    col("f") > 0.25,
    col("bin") == b"\x01",
    col("l").list.contains(1),
    (col("g") == 1) & (col("s").str.starts_with("k") | col("d").is_null()),
]
AGGREGATES = [
    count(),
    count("x"),
    count("s", distinct=True),
    count_distinct("x"),
    count_distinct("d"),
    sum_("d"),
    sum_("w"),
    sum_("g"),
    sum_("n"),
    sum_("u"),
    sum_("f"),
    sum_("dur"),
    avg("d"),
    avg("n"),
    avg("g"),
    avg("u"),
    min_("x"),
    max_("x"),
    max_("f"),
    min_("at"),
    max_("day"),
    max_("s"),
    min_("bin"),
    max_("u"),
    max_("t"),
    min_("dur"),
    max_("yes"),
    median("d"),
    median("g"),
    quantile("n", 0.3),
    stddev("g"),
    variance("g"),
    corr("g", "id"),
    count_if(col("g") > 1),
    collect_list("s", order_by="id"),
    collect_list("at", order_by="id"),
    collect_list("d", order_by="id"),
    string_agg("s", ";", order_by="id"),
    min_by("s", "id"),
    max_by("st", "id"),
    sum_("d", filter=col("yes")),
]
KEYS = ["g", "s", "x", "d", "at", "day", "u", "yes", "t", "f", "bin", "dur", "w", "at2"]
WINDOWS = [
    lambda over: row_number().over(**over),
    lambda over: rank().over(**over),
    lambda over: dense_rank().over(**over),
    lambda over: ntile(3).over(**over),
    lambda over: lag("s", 2).over(**over),
    lambda over: lead("at").over(**over),
    lambda over: first_value("d").over(**over),
    lambda over: last_value("day").over(**over),
    lambda over: sum_("n").over(**over),
    lambda over: sum_("d").over(**over, rows=(-2, 0)),
    lambda over: max_("x").over(**over, rows=(-1, 1)),
    lambda over: avg("g").over(**over, rows=(None, 0)),
    lambda over: count("s").over(**over),
]
_PAIRS = pa.schema([("id", pa.int64()), ("at", TYPES["at"]), ("d", TYPES["d"]), ("l", TYPES["l"])])


class WideProgram:
    """A data set with all columns of the table, until one of the last steps."""

    def __init__(self, env, chance):
        self.env, self.chance, self.trace = env, chance, []
        rows = chance.choice([0, 1, 30, 80])
        tables = [make_table(chance, rows), make_table(chance, chance.choice([0, 5, 20]))]
        self.data, self.other = (env.from_arrow(table) for table in tables)
        self.made = 0

    def run(self):
        """Return the data set of a few steps and a last one."""
        for _ in range(self.chance.randrange(4)):
            self._say(self.chance.choice([self.compute, self.compute, self.keep, self.window, self.union, self.spread]))
        self._say(self.chance.choice(LAST))
        return self.data

    def _say(self, step):
        name = getattr(step, "__name__", "")
        self.trace.append(name)
        self.data = step() if hasattr(step, "__self__") else step(self)

    def _picked(self, choices):
        at = self.chance.randrange(len(choices))
        self.trace.append(f"  {at}")
        return choices[at]

    def _name(self):
        self.made += 1
        return f"m{self.made}"

    def compute(self):
        made = {self._name(): self._picked(EXPRESSIONS) for _ in range(self.chance.randrange(1, 4))}
        return self.data.with_columns(**made)

    def keep(self):
        return self.data.filter(self._picked(CONDITIONS))

    def spread(self):
        calls = [
            lambda data: data.rebalance(),
            lambda data: data.partition_by_range("x", "id"),
            lambda data: data.partition_custom(lambda d, count: 0 if d is None else int(d) % count, "d"),
            lambda data: data.global_(),
            lambda data: data.key_by("id"),
        ]
        return self._picked(calls)(self.data)

    def union(self):
        names = ["id", *TYPES]
        other = self.other.with_columns(id=col("id") + 1000 * self.data_number())
        return self.data.select(*names).union(other.select(*names))

    def data_number(self):
        """Return another number for each time: id stays unique."""
        self.made += 1
        return self.made

    def _over(self):
        by = self.chance.choice([None, "g", "s", "d", "day", "x"])
        first = self.chance.choice(["at", "x", "d", "day", "s"])
        self.trace.append(f"  over {by} {first}")
        over = {"order_by": [first, "id"], "descending": self.chance.random() < 0.4}
        return over if by is None else {**over, "partition_by": by}

    def window(self):
        return self.data.with_columns(**{self._name(): self._picked(WINDOWS)(self._over())})


def _aggregate(program):
    keys = program.chance.sample(KEYS, program.chance.randrange(3))
    program.trace.append(f"  by {keys}")
    calls = {f"a{place}": program._picked(AGGREGATES) for place in range(program.chance.randrange(1, 5))}
    if len(keys) == 2 and program.chance.random() < 0.3:
        return program.data.group_by(*keys).rollup().agg(**calls)
    return program.data.group_by(*keys).agg(**calls)


def _join(program):
    keys = program.chance.sample(KEYS, program.chance.choice([1, 1, 2]))
    how = program.chance.choice(["inner", "left", "right", "full", "semi", "anti"])
    program.trace.append(f"  on {keys} {how}")
    value = program.chance.choice(["st", "l", "d", "at", "lt"])
    right = program.other.select(*keys, col(value).alias("theirs"), col("id").alias("their_id"))
    condition = program.chance.choice(
        [None, None, col("their_id") > col("id"), col("s").str.length() > col("their_id")]
    )
    return program.data.join(right, on=keys, how=how, condition=condition)


def _as_of(program):
    right = program.other.select("at", "g", col("id").alias("their_id"), col("lt").alias("theirs"))
    right = right.drop_nulls("at").drop_duplicates(["at", "g"], keep="first", order_by="their_id")
    by = program.chance.choice([None, "g"])
    direction = program.chance.choice(["backward", "forward"])
    tolerance = program.chance.choice([None, timedelta(hours=2)])
    program.trace.append(f"  by {by} {direction} {tolerance}")
    if by is None:
        right = right.drop("g").drop_duplicates(["at"], keep="first", order_by="their_id")
    return program.data.drop_nulls("at").asof_join(right, on="at", by=by, direction=direction, tolerance=tolerance)


def _functions(program):
    data = program.data.select("id", "at", "d", "l")
    calls = [
        lambda: data.map(lambda row: (row.id + 1, row.at, row.d, row.l), _PAIRS),
        lambda: data.flat_map(lambda row: [row, row] if row.id % 2 else [], _PAIRS),
        lambda: data.filter(lambda row: row.d is not None and row.d > 1),
        lambda: data.map_batches(lambda batch: batch, _PAIRS),
        lambda: data.map_partition(lambda rows: (row for row in rows if row.l), _PAIRS),
        lambda: data.map_batches(lambda frame: frame[frame["id"] % 2 == 0], _PAIRS, format="pandas"),
        lambda: data.map(_Numbered(), _PAIRS).with_broadcast(others=program.other.select("id", "d")),
        lambda: data.group_by("d").reduce(_first_of_group, _PAIRS),
        lambda: data.co_group(
            program.other.select("id", "at", "d", "l"),
            on="at",
            fn=lambda left, right: _first_of_group(left),
            schema=_PAIRS,
        ),
    ]
    return program._picked(calls)()


class _Numbered:
    """A function with a life of its own: opened with the rows of another data set."""

    def open(self, context):
        self.found = {row.d: row.id for row in sorted(context.broadcast("others"), key=lambda row: row.id)}

    def __call__(self, row):
        return row.id + 100 * self.found.get(row.d, 0), row.at, row.d, row.l

    def close(self):
        self.found.clear()


def _first_of_group(rows):
    rows = sorted(rows, key=lambda row: row.id)
    return [(len(rows), row.at, row.d, row.l) for row in rows[:1]]


def _shape(program):
    data = program.data.select("id", *TYPES)
    calls = [
        lambda: data.select("id", "l").explode("l", position="p"),
        lambda: data.select("id", "lt").explode("lt", keep_empty=False),
        lambda: data.select("id", "st").unnest("st"),
        lambda: data.select("g", "s", "d").distinct(),
        lambda: data.select("x", "at", "u").distinct(),
        lambda: data.select("s", "d").intersect(program.other.select("s", "d")),
        lambda: data.select("g", "at").except_(program.other.select("g", "at"), all=True),
        lambda: data.drop_duplicates(["g"], keep="last", order_by="id"),
        lambda: data.sort(["x", "id"], descending=[True, False], nulls_last=True).limit(9),
        lambda: data.top(7, ["at", "id"]),
        lambda: data.top(5, ["d", "id"]).select("st", "m", "lt"),
        lambda: data.unpivot(["n", "id"], index=["s"]),
        lambda: data.group_by("g").head(2, by="id"),
        lambda: data.filter(row_number().over(partition_by="s", order_by=["x", "id"]) <= 2),
        lambda: data.join(program.other.select(col("g").alias("h")).limit(3), how="cross").select("id", "h"),
        lambda: data.filter(~col("g").is_in(program.other.select("g"))),
    ]
    return program._picked(calls)()


def _sql(program):
    program.env.register("mine", program.data)
    program.env.register("theirs", program.other)
    return program.env.sql(program._picked(QUERIES))


LAST = [
    _aggregate,
    _aggregate,
    _aggregate,
    _join,
    _join,
    _as_of,
    _functions,
    _functions,
    _shape,
    _shape,
    _sql,
    _sql,
    WideProgram.keep,
]
