"""How as-of joins run: where rows go, what passes below them, and what explain says."""

import pyarrow as pa
import pytest

from engine import Environment, col, rank

TRADES = pa.table({"g": ["a", "b"] * 50, "t": list(range(100)), "n": range(100)})
QUOTES = pa.table({"g": ["a", "b"] * 500, "t": list(range(1000)), "bid": [1.5] * 1000, "ask": [1.5] * 1000})


@pytest.fixture
def env():
    return Environment(config={"parallelism.default": 3})


@pytest.fixture
def trades(env):
    return env.from_arrow(TRADES)


@pytest.fixture
def quotes(env):
    return env.from_arrow(QUOTES)


def test_rows_of_equal_columns_meet_where_both_sides_are_large(trades, quotes):
    text = trades.asof_join(quotes, on="t", by="g").set_parallelism(3).explain()
    assert text.count("PARTITION_HASH(g)") == 2
    assert "as-of join by g on t" in text
    assert "direction backward" in text
    assert "ASOF_PARTITIONED (REPARTITION_ASOF), parallelism 3" in text


def test_a_small_right_goes_to_all_subtasks(trades, quotes):
    text = (
        quotes.rename(bid="n").asof_join(trades.drop("g").limit(3).rename(n="m"), on="t").set_parallelism(3).explain()
    )
    assert "BROADCAST" in text
    assert "ASOF_MERGE (BROADCAST_ASOF), parallelism 3" in text


def test_one_subtask_needs_no_exchange(quotes):
    env = Environment(config={"parallelism.default": 1})
    text = env.from_arrow(TRADES).asof_join(env.from_arrow(QUOTES), on="t", tolerance=3, allow_exact_matches=False,
                                            by="g").explain()  # fmt: skip
    assert "PARTITION_HASH" not in text
    assert "direction backward, not at the very time, at most 3 away" in text


def test_filters_pass_to_the_side_that_they_are_about(trades, quotes):
    joined = trades.asof_join(quotes, on="t", by="g")
    below = joined.filter((col("g") == "a") & (col("n") > 5)).explain()
    assert below.index("as-of join") < below.index("n > 5")
    assert below.count("filter") == 2
    above = joined.filter(col("bid") > 1.0).explain()
    assert above.index("as-of join") > above.index("filter bid > 1")


def test_columns_that_nobody_needs_are_not_read(trades, quotes):
    text = trades.asof_join(quotes, on="t", by="g").select("n", "bid").explain()
    assert "3 of 4 columns" in text
    assert "as-of" not in trades.asof_join(quotes, on="t", by="g").select("n").explain()


def test_a_merge_gives_rows_in_order_where_a_window_wants_all_of_them(trades, quotes):
    joined = quotes.asof_join(trades, on="t", by="g").set_parallelism(1)
    text = joined.with_columns(r=rank().over("g", order_by="t")).explain()
    assert "ASOF_MERGE" in text
    assert "sort for window" not in text
    assert "ASOF_PARTITIONED" in joined.explain()


def test_a_window_sorts_the_few_rows_that_a_large_right_gives(trades, quotes):
    joined = trades.asof_join(quotes, on="t", by="g").set_parallelism(1)
    text = joined.with_columns(r=rank().over("g", order_by="t")).explain()
    assert "ASOF_PARTITIONED" in text
    assert "sort for window" in text


def test_without_columns_that_are_equal_everything_is_merged(trades, quotes):
    assert "ASOF_MERGE" in trades.drop("g").asof_join(quotes.drop("g"), on="t").explain()
