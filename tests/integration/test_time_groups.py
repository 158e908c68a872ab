"""Groups by time: the windows and spans of Polars, over types, ends, keys, times before 1970 and clocks that change."""

import collections
import datetime
import random
import zoneinfo

import polars as pl
import pyarrow as pa
import pytest

from engine import (
    Environment,
    JobExecutionError,
    NotYetSupportedError,
    SchemaError,
    avg,
    col,
    count,
    max_,
    mode,
    sum_,
)

ROWS = 80
CLOSED = ("left", "right", "both", "none")
rng = random.Random(4)
TIMES = sorted(datetime.datetime(1969, 12, 30) + datetime.timedelta(minutes=rng.randrange(7_000)) for _ in range(ROWS))
TABLE = pa.table(
    {
        "k": [rng.choice([None, "a", "b"]) for _ in range(ROWS)],
        "t": pa.array(TIMES, pa.timestamp("us")),
        "n": pa.array(sorted(rng.randrange(-50, 50) for _ in range(ROWS)), pa.int64()),
        "d": pa.array([time.date() for time in TIMES], pa.date32()),
        "x": pa.array([rng.choice([None, 1, 2, 3]) for _ in range(ROWS)], pa.int64()),
    }
)
#: column, every and period here, every and period in Polars
WINDOWS = (
    ("t", "1 hour", None, "1h", None),
    ("t", "90 min", None, "90m", None),
    ("t", "1h30m", None, "90m", None),
    ("t", "2 weeks", None, "2w", None),
    ("t", "1 day", None, "1d", None),
    ("t", "1 week", None, "1w", None),
    ("t", "1 month", None, "1mo", None),
    ("t", "1 quarter", None, "1q", None),
    ("t", "1 year", None, "1y", None),
    ("t", "1 hour", "3 hours", "1h", "3h"),
    ("t", "2 hours", "3 hours", "2h", "3h"),
    ("t", "3 hours", "1 hour", "3h", "1h"),
    ("n", 10, None, "10i", None),
    ("n", 10, 25, "10i", "25i"),
    ("d", "1 day", None, "1d", None),
    ("d", "1 day", "3 days", "1d", "3d"),
    ("d", "1 month", None, "1mo", None),
)


@pytest.fixture(
    scope="module", params=[{"parallelism.default": 1}, {"parallelism.default": 3, "debug.force-spill": True}]
)
def env(request):
    with Environment(config=request.param) as made:
        yield made


@pytest.fixture
def data(env):
    return env.from_arrow(TABLE)


def rows_of(rows):
    return sorted((tuple(row.items()) for row in rows), key=repr)


@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_windows_of_time_are_those_of_polars(data, number):
    column, every, period, their_every, their_period = WINDOWS[number]
    for place, closed in enumerate(CLOSED):
        ends = {"closed": closed, "label": "left" if number % 2 else "right"}
        by = None if (number + place) % 3 == 0 else "k"
        groups = data.group_by_dynamic(column, every, period, by=by, **ends)
        found = groups.agg(x=sum_("x"), rows=count()).with_columns(x=col("x").fill_null(0)).to_dicts()
        theirs = pl.from_arrow(TABLE).group_by_dynamic(
            column, every=their_every, period=their_period, group_by=by, **ends
        )
        wanted = theirs.agg(x=pl.col("x").sum(), rows=pl.len().cast(pl.Int64)).to_dicts()
        found, wanted = set(rows_of(found)), set(rows_of(wanted))
        assert wanted <= found
        # Polars has no window that begins before the one in which the first row of a key begins
        begins = {}
        for row in map(dict, wanted):
            begins[row.get("k")] = min(row[column], begins.get(row.get("k"), row[column]))
        assert all(row[column] < begins[row.get("k")] for row in map(dict, found - wanted))
        assert found == wanted or period is not None or closed != "left"


def test_each_row_is_in_every_window_that_has_it(data):
    found = data.group_by_dynamic("n", 10, 25).agg(total=count()).sort("n").to_dicts()
    numbers = TABLE["n"].to_pylist()
    wanted = [{"n": start, "total": sum(start <= n < start + 25 for n in numbers)} for start in range(-80, 60, 10)]
    assert found == [row for row in wanted if row["total"]]


def test_windows_begin_with_an_offset(data):
    found = data.group_by_dynamic("t", "1 hour", offset="20 min").agg(rows=count())
    wanted = pl.from_arrow(TABLE).group_by_dynamic("t", every="1h", offset="20m").agg(rows=pl.len().cast(pl.Int64))
    assert rows_of(found.to_dicts()) == rows_of(wanted.to_dicts())


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("label", ["left", "right"])
@pytest.mark.parametrize(
    ("every", "theirs"),
    [("1 day", "1d"), ("30m", "30m"), ("1 hour", "1h"), ("1 week", "1w"), ("2 days", "2d"), ("2 weeks", "2w")],
)
def test_windows_follow_the_clocks_of_a_zone(env, every, theirs, closed, label):
    begins = [datetime.datetime(2026, month, 28, 20, tzinfo=datetime.UTC) for month in (3, 10)]
    times = [begin + datetime.timedelta(minutes=20 * step) for begin in begins for step in range(-400, 200)]
    table = pa.table({"t": pa.array(times, pa.timestamp("ms", "Europe/Berlin"))})
    found = env.from_arrow(table).group_by_dynamic("t", every, closed=closed, label=label).agg(rows=count())
    groups = pl.from_arrow(table).group_by_dynamic("t", every=theirs, closed=closed, label=label)
    wanted = groups.agg(rows=pl.len().cast(pl.Int64))
    found, wanted = set(rows_of(found.to_dicts())), set(rows_of(wanted.to_dicts()))
    assert wanted <= found
    assert len(found - wanted) <= (1 if closed in ("right", "both") else 0)  # one that begins before the first row


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"])
@pytest.mark.parametrize(("every", "theirs"), [("6h", "6h"), ("90 min", "90m"), ("2 hours", "2h"), ("12h", "12h")])
def test_parts_of_a_day_follow_the_clocks_of_a_zone(env, zone, every, theirs):
    begins = [datetime.datetime(2018, month, 1, tzinfo=datetime.UTC) for month in (2, 3, 4, 10, 11)]
    times = [begin + datetime.timedelta(minutes=20 * step) for begin in begins for step in range(72 * 31)]
    table = pa.table({"t": pa.array(times, pa.timestamp("ms", zone))})
    found = env.from_arrow(table).group_by_dynamic("t", every).agg(rows=count())
    wanted = pl.from_arrow(table).group_by(pl.col("t").dt.truncate(theirs)).agg(rows=pl.len().cast(pl.Int64))
    assert collections.Counter(rows_of(found.to_dicts())) == collections.Counter(rows_of(wanted.to_dicts()))


def test_windows_of_an_hour_may_have_days_of_a_zone(env):
    begin = datetime.datetime(2026, 10, 24, tzinfo=datetime.UTC)
    times = [begin + datetime.timedelta(minutes=20 * step) for step in range(200)]
    table = pa.table({"t": pa.array(times, pa.timestamp("ms", "Europe/Berlin"))})
    found = env.from_arrow(table).group_by_dynamic("t", "1 hour", "1 day").agg(rows=count())
    wanted = pl.from_arrow(table).group_by_dynamic("t", every="1h", period="1d").agg(rows=pl.len().cast(pl.Int64))
    assert set(rows_of(wanted.to_dicts())) <= set(rows_of(found.to_dicts()))


@pytest.mark.parametrize("label", ["left", "right"])
def test_days_begin_at_one_where_clocks_skip_midnight(env, label):
    zone = zoneinfo.ZoneInfo("America/Sao_Paulo")
    begin = datetime.datetime(2018, 11, 2, 3, tzinfo=datetime.UTC)
    times = [begin + datetime.timedelta(minutes=7 * step + 1) for step in range(800)]
    table = pa.table({"t": pa.array(times, pa.timestamp("s", zone.key))})
    found = env.from_arrow(table).group_by_dynamic("t", "1 day", closed="right", label=label).agg(rows=count())
    wanted = collections.Counter(time.astimezone(zone).date() for time in times)
    days = {day + datetime.timedelta(days=label == "right"): rows for day, rows in wanted.items()}
    starts = {day: datetime.datetime(2018, 11, day.day, int(day.day == 4), tzinfo=zone) for day in days}
    assert found.sort("t").to_dicts() == [{"t": starts[day], "rows": days[day]} for day in sorted(days)]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    ("column", "period", "theirs"), [("t", "5 hours", "5h"), ("n", 7, "7i"), ("d", "2 days", "2d")]
)
def test_spans_that_end_at_each_row_are_those_of_polars(data, column, period, theirs, closed):
    for by in (None, "k"):
        groups = data.rolling(column, period, by=by, closed=closed)
        found = groups.agg(x=sum_("x"), rows=count(), most=max_("x")).with_columns(x=col("x").fill_null(0))
        wanted = (
            pl.from_arrow(TABLE)
            .rolling(column, period=theirs, group_by=by, closed=closed)
            .agg(x=pl.col("x").sum(), rows=pl.len().cast(pl.Int64), most=pl.col("x").max())
        )
        assert rows_of(found.to_dicts()) == rows_of(wanted.to_dicts())


def test_spans_begin_at_an_offset(data):
    found = data.rolling("n", 5, offset=2, closed="left").agg(rows=count())
    wanted = (
        pl.from_arrow(TABLE).rolling("n", period="5i", offset="2i", closed="left").agg(rows=pl.len().cast(pl.Int64))
    )
    assert rows_of(found.to_dicts()) == rows_of(wanted.to_dicts())


@pytest.mark.parametrize("by", [None, "k"])
def test_gaps_are_filled_with_rows_as_in_polars(env, by):
    frame = pl.from_arrow(TABLE).with_columns(pl.col("t").dt.truncate("1h"), pl.col("k").fill_null("c"))
    frame = frame.unique(["k", "t"] if by else ["t"]).sort(*(["k"] if by else []), "t")
    found = env.from_arrow(frame.to_arrow()).upsample("t", "1 hour", by=by)
    wanted = frame.upsample("t", every="1h", group_by=by, maintain_order=True)
    if by:
        wanted = wanted.with_columns(pl.col("k").forward_fill())
    assert rows_of(found.to_dicts()) == rows_of(wanted.select(found.columns).to_dicts())


@pytest.mark.parametrize(
    ("every", "in_polars"),
    [("1 day", "1d"), ("2 days", "2d"), ("1 week", "1w"), ("1 month", "1mo"), ("12 hours", "12h"), ("24 hours", "24h")],
)
@pytest.mark.parametrize("hour", [0, 12])
def test_days_and_months_are_filled_by_the_clocks_of_the_zone(env, every, in_polars, hour):
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    days = [(3, 1), (3, 28), (3, 30), (4, 1), (10, 1), (10, 24), (10, 26), (11, 1)]
    times = [datetime.datetime(2026, month, day, hour, tzinfo=zone) for month, day in days]
    table = pa.table({"at": pa.array(times, pa.timestamp("us", "Europe/Berlin")), "v": range(len(times))})
    found = env.from_arrow(table).upsample("at", every).sort("at").to_arrow()
    wanted = pl.from_arrow(table).upsample("at", every=in_polars).to_arrow()
    assert found.to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("data_type", [pa.int8(), pa.int64(), pa.uint32(), pa.date32()])
def test_numbers_and_dates_are_filled_in_their_type(env, data_type):
    table = pa.table({"k": ["a", "a", "b"], "n": pa.array([1, 5, 7], pa.int32()).cast(data_type)})
    every = "2 days" if data_type == pa.date32() else 2
    found = env.from_arrow(table).upsample("n", every, by="k").to_arrow()
    assert found.schema.field("n").type == data_type
    assert sorted(found["n"].cast(pa.int32()).cast(pa.int64()).to_pylist()) == [1, 3, 5, 7]


def test_nothing_gives_nothing(env):
    data = env.from_arrow(TABLE.slice(0, 0))
    assert data.group_by_dynamic("t", "1 hour").agg(n=count()).to_dicts() == []
    assert data.rolling("t", "1 hour").agg(m=avg("x")).to_dicts() == []
    assert data.upsample("t", "1 hour").to_dicts() == []


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda data: data.group_by_dynamic("k", "1 hour"), SchemaError, "'k' is string"),
        (lambda data: data.group_by_dynamic("t", 10), SchemaError, "say which unit"),
        (lambda data: data.group_by_dynamic("t", "-1 hour"), SchemaError, "above zero"),
        (lambda data: data.group_by_dynamic("t", "1 hour", closed="lefty"), SchemaError, "choose one of left, right"),
        (lambda data: data.group_by_dynamic("t", "1 month", "1 day"), SchemaError, "or neither"),
        (lambda data: data.group_by_dynamic("t", "5 months").agg(n=count()), NotYetSupportedError, "of 5 months"),
        (lambda data: data.rolling("t", "1 month"), SchemaError, "no one length"),
        (lambda data: data.rolling("n", 1, closed="none"), SchemaError, "no time lies within"),
        (lambda data: data.rolling("t", "1 h").agg(m=mode("x")), NotYetSupportedError, "over frames"),
    ],
)
def test_what_is_wrong_is_said(data, call, error, text):
    with pytest.raises(error, match=text):
        call(data)


def test_a_time_that_is_null_has_no_window(env):
    data = env.from_dict({"n": [1, None]})
    with pytest.raises(JobExecutionError, match="'n' is null in a row; drop_nulls first"):
        data.group_by_dynamic("n", 5).agg(rows=count()).collect()
    with pytest.raises(JobExecutionError, match="upsample: 'n' is null in a row; drop_nulls first"):
        data.upsample("n", 1).collect()


@pytest.mark.parametrize(
    "options",
    [{"period": "12h"}, {"offset": "1h"}, {"closed": "right"}, {"label": "right"}, {"every": "5h"}],
)
def test_other_windows_of_hours_in_a_zone_are_refused(env, options):
    data = env.from_arrow(pa.table({"t": pa.array([0], pa.timestamp("s", "Europe/Berlin"))}))
    given = {"every": "6 hours"} | options
    with pytest.raises(NotYetSupportedError, match="clocks change in the zone Europe/Berlin"):
        data.group_by_dynamic("t", **given).agg(n=count())
