"""The examples run, and what they compute is what plain Python computes."""

import re
from collections import Counter, defaultdict
from datetime import date

import pytest

from engine import Environment
from engine.examples import (
    access_log,
    funnel,
    history,
    latest_state,
    page_rank,
    scores,
    sessions,
    tf_idf,
    top_products,
    trades_and_quotes,
    word_count,
)

pytestmark = pytest.mark.integration

EXAMPLES = (
    access_log, funnel, history, latest_state, page_rank, scores, sessions, tf_idf, top_products, trades_and_quotes,
    word_count,
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__.rpartition(".")[2])
def test_an_example_runs_as_it_stands(example, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["example"])
    example.main()
    assert re.search(r" rows?\)", capsys.readouterr().out)


@pytest.fixture
def env():
    with Environment() as environment:
        yield environment


def test_sessions_end_after_half_an_hour(env):
    found = [
        (row.user, row.session, row.minutes, row.visits)
        for row in sessions.sessions(env.from_arrow(sessions.visits())).collect()
    ]
    assert found == [("ann", 1, 25, 3), ("ann", 2, 5, 2), ("ben", 1, 2, 3), ("cem", 1, 58, 3), ("cem", 2, 0, 1)]


def test_the_best_products_are_those_that_earned_most(env):
    sold = top_products.sales()
    earned = defaultdict(float)
    for row in sold.to_pylist():
        earned[row["category"], row["product"]] += row["price"]
    best = sorted(earned, key=lambda key: (key[0], -earned[key]))
    expected = [key for category in top_products.CATEGORIES for key in [k for k in best if k[0] == category][:3]]
    found = top_products.top_products(env.from_arrow(sold)).collect()
    assert [(row.category, row.product) for row in found] == expected


def test_trades_are_priced_by_the_last_quote_of_their_second(env):
    trades, quotes = trades_and_quotes.trades(), trades_and_quotes.quotes()
    quoted = Counter()
    by_symbol = defaultdict(list)
    for row in quotes.to_pylist():
        by_symbol[row["symbol"]].append(row["at"])
    for row in trades.to_pylist():
        near = [at for at in by_symbol[row["symbol"]] if 0 <= (row["at"] - at).total_seconds() <= 1]
        quoted[row["symbol"]] += bool(near)
    found = trades_and_quotes.slippage(env.from_arrow(trades), env.from_arrow(quotes)).collect()
    assert {row.symbol: row.quoted for row in found} == dict(quoted)
    assert sum(row.trades for row in found) == trades.num_rows


def test_the_last_version_of_each_row_counts(env):
    found = latest_state.latest(env.from_rows(latest_state.CHANGES)).collect()
    assert [(row.customer, row.version, row.city) for row in found] == [(1, 2, "Bergen"), (3, 2, "Cusco")]


def test_orders_meet_the_price_of_their_day(env):
    versions = history.history(env.from_arrow(history.PRICES)).sort(["product", "since"]).collect()
    assert [(row.product, row.price, row.until) for row in versions] == [
        ("ink", 7.0, date(2026, 2, 15)),
        ("ink", 6.5, history.FOREVER),
        ("pen", 2.0, date(2026, 3, 1)),
        ("pen", 2.5, history.FOREVER),
    ]
    found = history.priced(env.from_arrow(history.ORDERS), env.from_arrow(history.PRICES)).collect()
    assert [(row.order, row.price) for row in found] == [(1, 2.0), (2, 7.0), (3, 2.5), (4, 6.5)]


def test_a_funnel_counts_users_that_came_by_all_steps(env):
    events = funnel.events()
    steps = defaultdict(set)
    for row in events.to_pylist():
        steps[row["step"]].add(row["user"])
    (found,) = funnel.funnel(env.from_arrow(events)).collect()
    # a user whose steps are at one moment has not come to the second
    assert found.visit == len(steps["visit"])
    assert found.basket <= len(steps["basket"])
    assert found.payment <= len(steps["payment"])


def test_words_that_one_document_has_weigh_most(env):
    found = tf_idf.tf_idf(env.from_arrow(tf_idf.DOCUMENTS)).collect()
    assert [(row.word, row.weight) for row in found if row.name == "sea"][:2] == [("is", 2.197), ("sea", 2.197)]


def test_scores_are_of_customers_and_the_highest(env):
    found = scores.scores(env.from_arrow(scores.customers())).collect()
    assert [row.score for row in found] == sorted((row.score for row in found), reverse=True)
    assert len({row.customer for row in found}) == 5


def test_lines_of_a_log_are_all_counted(env, tmp_path):
    access_log.write_log(tmp_path / "access.log")
    found = access_log.paths(env.read_text(tmp_path)).collect()
    assert sum(row.requests for row in found) == 2_000
    assert [row.requests for row in found if row.path is None] == [20]


def test_words_are_counted(env):
    found = word_count.word_count(env.from_rows([{"line": line} for line in word_count.LINES])).collect()
    assert [(row.word, row.times) for row in found] == [("to", 4), ("be", 2)]


def test_ranks_add_up_to_the_number_of_pages(env):
    found = page_rank.page_rank(env.from_arrow(page_rank.LINKS)).collect()
    assert next(row.page for row in found) == "home"
    assert sum(row.rank for row in found) == pytest.approx(5, abs=0.01)
