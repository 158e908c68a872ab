"""As-of joins as whole jobs, beside DuckDB's ASOF JOIN and Polars' join_asof: types, nulls, skew, memory, subtasks."""

import datetime
import random

import polars as pl
import pyarrow as pa
import pytest

from engine import col
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

ENVIRONMENTS = {
    "one": {"parallelism.default": 1},
    "three": {"parallelism.default": 3},
    "two, batch, spilling": {"parallelism.default": 2, "execution.mode": "BATCH", "debug.force-spill": True},
    "two, small": {"parallelism.default": 2, "taskmanager.memory.managed.size": "1mb"},
}
BEGIN = datetime.datetime(2021, 3, 28, tzinfo=datetime.UTC)


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def env(request, open_environment):
    return open_environment(**ENVIRONMENTS[request.param])


def events(seed, count, tag, *, unique=False, null_share=0.1):
    """Rows of (group with a heavy "a", time with nulls, number); times of the right are unique where it must be."""
    chance = random.Random(seed)
    moments = chance.sample(range(4 * count), count) if unique else [chance.randrange(count) for _ in range(count)]
    groups = ["a" if chance.random() < 0.6 else chance.choice("bcdef") for _ in range(count)]
    times = [None if chance.random() < null_share else BEGIN + datetime.timedelta(seconds=each) for each in moments]
    groups = [None if chance.random() < null_share else each for each in groups]
    schema = pa.schema([("g", pa.string()), ("t", pa.timestamp("us", "Europe/Zurich")), (tag, pa.int64())])
    return pa.table({"g": groups, "t": times, tag: list(range(count))}, schema)


TRADES = events(1, 400, "trade")
QUOTES = events(2, 600, "quote", unique=True)
WITHOUT_NULLS = {"trades": events(3, 300, "trade", null_share=0), "quotes": events(4, 300, "quote", null_share=0)}


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize(
    ("direction", "strict", "operator"),
    [("backward", False, ">="), ("backward", True, ">"), ("forward", False, "<="), ("forward", True, "<")],
)
def test_rows_are_those_of_duckdb(env, direction, strict, operator):
    trades, quotes = env.from_arrow(TRADES), env.from_arrow(QUOTES)
    for by, equal in (("g", "l.g = r.g AND"), (None, "")):
        other = quotes if by else quotes.drop("g")
        joined = trades.asof_join(other, on="t", by=by, direction=direction, allow_exact_matches=not strict)
        assert joined.columns == ["g", "t", "trade", "quote"]
        sql = f"SELECT l.*, quote FROM l ASOF LEFT JOIN r ON {equal} l.t {operator} r.t"
        assert_same_rows(rows_of(joined.to_arrow()), duck(sql, l=TRADES, r=QUOTES))


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("tolerance", [None, datetime.timedelta(seconds=2), "1500 ms"])
def test_distances_are_those_of_polars(env, direction, tolerance):
    trades, quotes = WITHOUT_NULLS["trades"], WITHOUT_NULLS["quotes"]
    # several at one time: the last one is taken backward; with nearest the engines differ, so times are unique
    if direction != "backward":
        quotes = pa.table(pl.from_arrow(quotes).unique(["g", "t"], keep="first", maintain_order=True).to_arrow())
    joined = env.from_arrow(trades).asof_join(
        env.from_arrow(quotes), on="t", by="g", direction=direction, tolerance=tolerance
    )
    near = datetime.timedelta(seconds=1.5) if isinstance(tolerance, str) else tolerance
    lefts, rights = (pl.from_arrow(table).sort("t", maintain_order=True) for table in (trades, quotes))
    expected = lefts.join_asof(rights, on="t", by="g", strategy=direction, tolerance=near).to_arrow()
    found = joined.to_arrow()
    if direction == "nearest":
        # where both are as near, ours is the earlier one
        times = dict(zip(quotes["quote"].to_pylist(), quotes["t"].to_pylist(), strict=True))
        assert_same_rows(with_distance(found, times), with_distance(expected, times))
    else:
        assert_same_rows(with_time(found, quotes), with_time(expected, quotes))


def with_distance(table, times):
    """Rows with how far away the quote is instead of which it is."""
    return [
        (trade, None if quote is None else abs(time - times[quote]))
        for time, trade, quote in zip(*(table[name].to_pylist() for name in ("t", "trade", "quote")), strict=True)
    ]


def with_time(table, quotes):
    """Rows with the time of the quote instead of which of several at that time it is."""
    times = dict(zip(quotes["quote"].to_pylist(), quotes["t"].to_pylist(), strict=True))
    return [
        (trade, None if quote is None else times[quote])
        for trade, quote in zip(*(table[name].to_pylist() for name in ("trade", "quote")), strict=True)
    ]


def test_of_several_at_one_time_the_last_is_taken_backward_and_the_first_forward(open_environment):
    env = open_environment(**ENVIRONMENTS["one"])
    left = env.from_arrow(pa.table({"t": [1, 5]}))
    right = env.from_arrow(pa.table({"t": [3, 3, 3, 1, 1], "n": [1, 2, 3, 4, 5]}))
    assert rows_of(left.asof_join(right, on="t").sort("t").to_arrow()) == [(1, 5), (5, 3)]
    forward = left.asof_join(right, on="t", direction="forward").sort("t")
    assert rows_of(forward.to_arrow()) == [(1, 4), (5, None)]


def test_both_times_are_kept_and_keys_may_be_expressions(env):
    left, right = env.from_arrow(TRADES.slice(0, 50)), env.from_arrow(QUOTES.slice(0, 50))
    joined = left.asof_join(right, left_on="t", right_on="t", by=col("g").fill_null("none"), suffix="_quote")
    assert joined.columns == ["g", "t", "trade", "g_quote", "t_quote", "quote"]
    sql = "SELECT l.*, r.* FROM l ASOF LEFT JOIN r ON coalesce(l.g, 'none') = coalesce(r.g, 'none') AND l.t >= r.t"
    assert_same_rows(rows_of(joined.to_arrow()), duck(sql, l=TRADES.slice(0, 50), r=QUOTES.slice(0, 50)))


def test_filters_pass_and_a_join_whose_right_nobody_needs_is_none(env):
    joined = env.from_arrow(TRADES).asof_join(env.from_arrow(QUOTES), on="t", by="g")
    assert joined.count() == TRADES.num_rows
    assert "as-of" not in joined.select("trade").explain()
    found = joined.filter((col("g") == "b") & (col("trade") > 100)).select("trade", "quote")
    sql = "SELECT trade, quote FROM l ASOF LEFT JOIN r ON l.g = r.g AND l.t >= r.t WHERE l.g = 'b' AND trade > 100"
    assert_same_rows(rows_of(found.to_arrow()), duck(sql, l=TRADES, r=QUOTES))


def test_a_group_larger_than_the_memory(open_environment):
    env = open_environment(**ENVIRONMENTS["two, small"])
    count = 60_000
    left = pa.table({"t": [(7 * n) % count for n in range(count)], "n": range(count)})
    right = pa.table(
        {"t": [(11 * n) % count for n in range(count)], "text": [f"{n} " + "x" * 40 for n in range(count)]}
    )
    joined = env.from_arrow(left).asof_join(env.from_arrow(right), on="t").sort("n").to_arrow()
    texts = dict(zip(right["t"].to_pylist(), right["text"].to_pylist(), strict=True))
    assert joined["text"].to_pylist() == [texts[each] for each in left["t"].to_pylist()]
