"""Operations of Ibis, held against DuckDB's backend; what there is not is refused by its name."""

import datetime as dt
import math
import uuid
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

pytest.importorskip("ibis")
import ibis
import ibis.common.exceptions as com

ROWS = pa.table(
    {
        "n": pa.array(range(8), pa.int64()),
        "i": pa.array([7, -7, 3, 0, None, 2**40, -5, 8], pa.int64()),
        "j": pa.array([2, 2, -2, 5, 1, 3, 3, 4], pa.int64()),
        "f": [1.5, -2.5, None, 0.0, 1e10, 2.0, 0.1, 3.5],
        "s": ["abc", "", None, "Äbc def", "a,b", "zz", "b", "abc"],
        "g": ["x", "y", "x", "y", "x", "z", "y", "x"],
        "b": [True, False, None, True, False, True, None, True],
        "d": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None, *[dt.date(2000, 1, day) for day in range(1, 6)]],
        "t": pa.array(
            [dt.datetime(2024, 2, 29, 13, 14, 15, 678901), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None]
            + [dt.datetime(2000, 1, 1, hour, 5, 6) for hour in range(5)],
            pa.timestamp("us"),
        ),
        "x": pa.array([[1, 2, 3], [], None, [4], [None, 5], [6, 7], [8, 8], [9, 1]], pa.list_(pa.int64())),
        "m": pa.array([[("a", 1)], [], None, [("b", 2)], [("a", 3)], [], [], []], pa.map_(pa.string(), pa.int64())),
        "o": pa.array(
            [dt.time(1, 59, 30, 5), dt.time(23, 0), None, dt.time(0), *[dt.time(4, 5, 6, k * 1000) for k in range(4)]],
            pa.time64("us"),
        ),
        "l": pa.array(
            [[("a", 5), ("c", 6)], [], [("a", 1)], None, [("a", 2)], [("b", 7)], [], []],
            pa.map_(pa.string(), pa.int64()),
        ),
        "p": pa.array([Decimal("1.25"), Decimal("-3.50"), None, *map(Decimal, range(5))], pa.decimal128(9, 2)),
    }
)  # fmt: skip

T = ibis.table(ibis.schema(ROWS.schema), name="t")
VALUES = {
    "quotient": lambda t: t.i / t.j,
    "below": lambda t: t.i // t.j,
    "below_of_fractions": lambda t: t.f // 2,
    "rest": lambda t: t.i % t.j,
    "fraction": lambda t: t.n * 1.5 + 0.1,
    "decimal": lambda t: t.p * 2,
    "rounded": lambda t: t.f.round(1),
    "clipped": lambda t: t.i.clip(0, 5),
    "seconds": lambda t: t.t.truncate("s").epoch_seconds(),
    "day_of_year": lambda t: t.d.day_of_year(),
    "weekday": lambda t: t.d.day_of_week.full_name(),
    "hours": lambda t: t.t.truncate("h"),
    "bucket": lambda t: t.t.bucket(hours=5),
    "bucket_behind": lambda t: t.t.bucket(minutes=15, offset=ibis.interval(minutes=2)),
    "moment": lambda t: ibis.timestamp(t.j + 2003, 1, 2, t.n, 4, 5),
    "of_seconds": lambda t: t.n.as_timestamp("s"),
    "of_milliseconds": lambda t: t.n.as_timestamp("ms"),
    "time": lambda t: ibis.time(t.n, 4, 5),
    "later": lambda t: t.t + ibis.interval(days=3),
    "constants": lambda t: ibis.array([ibis.literal(1.5), ibis.literal(2.0)]),
    "no_time": lambda t: ibis.literal(dt.datetime(2020, 1, 2, 3, 4, 5, 6)),
    "of_day": lambda t: ibis.literal(dt.time(3, 4, 5)),
    "bytes": lambda t: ibis.literal(b"a\x00\xff"),
    "part": lambda t: t.s[1:2],
    "begin": lambda t: t.s[:2],
    "found": lambda t: t.s.find("b"),
    "split": lambda t: t.s.split(","),
    "padded": lambda t: t.s.lpad(4, "-"),
    "replaced": lambda t: t.s.re_replace("[a-b]", "_"),
    "first_of_list": lambda t: t.x[0],
    "last_of_list": lambda t: t.x[-1],
    "behind": lambda t: t.x[1:],
    "before_last": lambda t: t.x[:-1],
    "middle": lambda t: t.x[1:2],
    "more": lambda t: t.x.map(lambda value: value + 1),
    "large": lambda t: t.x.filter(lambda value: value > 2),
    "place": lambda t: t.x.index(8),
    "a": lambda t: t.m["a"],
    "a_or": lambda t: t.m.get("a", 0),
    "has_a": lambda t: t.m.contains("a"),
    "merged": lambda t: t.m + t.l,
    "zipped": lambda t: t.x.zip(t.x[1:]),
    "most_frequent": lambda t: t.x.filter(lambda value: value.notnull()).modes(),
    "joined": lambda t: t.s.split(",").join("|"),
    "of_day_later": lambda t: t.o + ibis.interval(hours=3),
    "of_day_earlier": lambda t: t.o - ibis.interval(minutes=90),
    "minutes_of_day": lambda t: t.o.delta(ibis.time(12, 30, 1), unit="minute"),
    "text_of_day": lambda t: t.o.cast("string"),
    "later_by_a_sum": lambda t: t.t + (ibis.interval(days=3) + ibis.interval(hours=1)),
    "later_by_a_part": lambda t: t.t + (ibis.interval(days=3) - ibis.interval(hours=1)),
    "later_by_several": lambda t: t.t + ibis.interval(hours=2) * t.n,
    "ranked": lambda t: ibis.rank().over(group_by=t.g, order_by=t.i.desc()),
    "sum_before": lambda t: t.j.sum().over(ibis.window(group_by=t.g, order_by=t.n, preceding=1, following=0)),
    "descending": lambda t: ibis.row_number().over(order_by=[t.f.desc(), t.n]),
    "nulls_first": lambda t: ibis.row_number().over(order_by=[t.f.asc(nulls_first=True), t.n]),
}
METRICS = {
    "lowest": lambda t: t.s.argmin(t.f),
    "highest": lambda t: t.s.argmax(t.i),
    "highest_of": lambda t: t.s.argmax(t.i, where=t.b),
    "listed": lambda t: t.s.collect(order_by=t.n),
    "all_listed": lambda t: t.s.collect(order_by=t.f.desc(), include_null=True),
    "joined": lambda t: t.s.group_concat("|", order_by=t.n),
    "first": lambda t: t.s.first(order_by=t.n),
    "quantiles": lambda t: t.j.quantile([0.25, 0.5]),
    "middle": lambda t: t.f.median(),
    "spread": lambda t: t.j.std(),
    "related": lambda t: t.j.corr(t.n, how="pop"),
    "different": lambda t: t.s.nunique(),
    "counted": lambda t: t.count(where=t.b),
    "any": lambda t: t.b.any(),
    "mean_of_decimals": lambda t: t.p.cast("float64").mean(),
}


@pytest.fixture
def ours():
    con = ibis.drey.connect(config={"parallelism.default": 1})
    con.create_table("t", ROWS)
    yield con
    con.disconnect()


@pytest.fixture
def theirs():
    with duckdb.connect() as con:
        con.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
        con.register("t", ROWS)
        yield con


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def both(ours, theirs, expr):
    """Return the rows of an expression, ours and DuckDB's."""
    schema = expr.schema().to_pyarrow()
    found = theirs.sql(str(ibis.to_sql(expr, dialect="duckdb"))).to_arrow_table().cast(schema)
    return ours.to_pyarrow(expr).to_pylist(), found.to_pylist()


def assert_same(ours, theirs, expr):
    for one, other in zip(*both(ours, theirs, expr), strict=True):
        wrong = {name: (one[name], other[name]) for name in one if not same(one[name], other[name])}
        assert wrong == {}


def test_values_are_those_of_duckdb(ours, theirs):
    assert_same(ours, theirs, T.select("n", **{name: one(T) for name, one in VALUES.items()}).order_by("n"))


def test_metrics_are_those_of_duckdb(ours, theirs):
    made = {name: one(T) for name, one in METRICS.items()}
    assert_same(ours, theirs, T.group_by("g").agg(**made).order_by("g"))


RELATIONS = [
    lambda t: t.select("n", "x").unnest("x", offset="place", keep_empty=True),
    lambda t: t.select("n", "x").unnest("x"),
    lambda t: t.join(t.view().select("n", other="s"), "n").select("n", "other"),
    lambda t: t.anti_join(t.filter(t.b), "n").select("n"),
    lambda t: t.select("n", "i", "j").pivot_longer(["i", "j"]),
    lambda t: t.filter(t.j == t.j.max()).select("n"),
    lambda t: t.select("n").union(t.select("n"), distinct=True).order_by("n").limit(3, offset=2),
    lambda t: t.asof_join(t.filter(t.b).select("n", late="g").view(), on="n").select("n", "late"),
]


def test_relations_are_those_of_duckdb(ours, theirs):
    for made in RELATIONS:
        one, other = both(ours, theirs, made(T))
        assert sorted(map(repr, one)) == sorted(map(repr, other))


def test_counts_of_different_rows_have_those_with_null(ours):
    table = ours.table("t").drop("x", "m", "l")
    assert ours.execute(table.nunique()) == 8
    assert ours.execute(table.union(table).nunique()) == 8
    named = table.select("g", "b")
    assert ours.execute(named.nunique()) == len({(row["g"], row["b"]) for row in ROWS.to_pylist()})
    assert ours.execute(named.nunique(where=named.g != "y")) == 4


def test_durations_are_those_of_python(ours):
    table, rows = ours.table("t"), ROWS.to_pylist()
    day, noon = dt.date(2000, 1, 3), dt.time(12)
    found = table.select(
        "n",
        days=table.d - ibis.literal(day),
        since=table.o - ibis.literal(noon),
        hour=table.o.truncate("h"),
        twice=(table.d - ibis.literal(day)) * 2 + ibis.interval(hours=1),
    )
    for one, row in zip(ours.to_pyarrow(found.order_by("n")).to_pylist(), rows, strict=True):
        days = None if row["d"] is None else row["d"] - day
        o = row["o"]
        since = None if o is None else dt.datetime.combine(day, o) - dt.datetime.combine(day, noon)
        twice = None if days is None else 2 * days + dt.timedelta(hours=1)
        hour = o and o.replace(minute=0, second=0, microsecond=0)
        assert (one["days"], one["since"], one["twice"], one["hour"]) == (days, since, twice, hour)
    with pytest.raises(com.UnsupportedOperationError, match="intervals of months"):
        ours.to_pyarrow(table.select(late=table.t + ibis.interval(months=1) * table.n))


def test_hashes_and_random_names_are_values_of_their_types(ours):
    table = ours.table("t")
    found = ours.to_pyarrow(table.select(one=table.s.hash(), again=table.s.hash(), name=ibis.uuid()))
    assert found["one"].type == pa.int64() and found["one"].equals(found["again"])
    assert len(set(found["one"].to_pylist())) == len({row["s"] for row in ROWS.to_pylist()})
    assert len({uuid.UUID(one) for one in found["name"].to_pylist()}) == 8


def test_seconds_of_a_division_do_not_pass_through_fractions(ours):
    large = ibis.literal(2**62 + 1, type="int64")
    assert ours.execute(large // ibis.literal(-3, type="int64")) == (2**62 + 1) // -3


REFUSED = [
    (lambda t: t.rowid(), "RowID"),
    (lambda t: t.s.hashbytes(), "HashBytes"),
    (lambda t: t.s.median(), "Median of string"),
    (lambda t: t.f.kurtosis(how="pop"), "kurtosis"),
    (lambda t: t.nunique(), "CountDistinctStar of x"),
    (lambda t: t.any_inner_join(t.view(), "n"), "any_inner"),
    (lambda t: t.limit(t.count()), "Limit"),
    (lambda t: t.s.cast("json").str, "UnwrapJSONString"),
    (lambda t: t.s.host(), "ExtractHost"),
]


def test_what_there_is_not_is_refused_by_its_name(ours):
    for made, says in REFUSED:
        with pytest.raises(com.OperationNotDefinedError, match=says):
            ours.to_pyarrow(made(ours.table("t")))


def test_a_query_by_hand_is_ours(ours):
    found = ours.table("t").alias("q").sql("SELECT n, list_extract(x, 1) AS v, x[1] AS w FROM q WHERE j > 4")
    assert ours.to_pyarrow(found).to_pylist() == [{"n": 3, "v": 4, "w": 4}]


def test_operations_are_known_before_they_run(ours):
    assert ours.has_operation(ibis.expr.operations.Sum)
    assert not ours.has_operation(ibis.expr.operations.GeoArea)
    assert not ours.has_operation(ibis.expr.operations.RowID)
