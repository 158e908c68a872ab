"""Queries under a name that are used for several values of a key: computed once, with the answers of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.optimizer.rules import shared_groups
from tests.tpch.answers import difference

_SALES = "SELECT shop, year, sum(price) AS total, count(*) AS n FROM sales JOIN days ON day = id GROUP BY shop, year"
_BOTH = (
    "SELECT shop, year, sum(price) AS total FROM sales JOIN days ON day = id GROUP BY shop, year"
    " UNION ALL SELECT shop, year, sum(price) AS total FROM returns JOIN days ON day = id GROUP BY shop, year"
)
_ALL = (
    "SELECT shop, year, sum(price) AS total FROM (SELECT shop, year, price FROM sales JOIN days ON day = id"
    " UNION SELECT shop, year, price FROM returns JOIN days ON day = id) AS rows GROUP BY shop, year"
)
_LEFT = (
    "SELECT sales.shop, year, count(returns.price) AS total FROM sales JOIN days ON sales.day = id"
    " LEFT JOIN returns ON returns.shop = sales.shop AND returns.price = sales.price GROUP BY sales.shop, year"
)
SHARED = {
    "two": f"WITH x AS ({_SALES}) SELECT a.shop, a.total, b.total AS later FROM x AS a JOIN x AS b ON a.shop = b.shop"
    " WHERE a.year = 2001 AND b.year = 2002",
    "three": f"WITH x AS ({_SALES}) SELECT a.shop, a.n, b.n AS m, c.n AS o FROM x AS a, x AS b, x AS c"
    " WHERE a.shop = b.shop AND b.shop = c.shop AND a.year = 2001 AND b.year = 2002 AND c.year IN (2003, 2004)",
    "ranges": f"WITH x AS ({_SALES}) SELECT a.shop, a.n, b.n AS m FROM x AS a LEFT JOIN x AS b ON a.shop = b.shop"
    " AND b.year > 2003 WHERE a.year < 2002",
    "one above": f"WITH x AS ({_SALES}) SELECT a.shop, a.total FROM x AS a JOIN x AS b ON a.shop = b.shop"
    " AND a.year = 2001 AND b.year = 2002 WHERE a.total > b.total",
    "branches": f"WITH x AS ({_ALL}) SELECT a.shop, a.total, b.total AS later FROM x AS a JOIN x AS b"
    " ON a.shop = b.shop WHERE a.year = 2001 AND b.year = 2002",
    "outer": f"WITH x AS ({_LEFT}) SELECT a.shop, a.total, b.total AS later FROM x AS a JOIN x AS b"
    " ON a.shop = b.shop WHERE a.year = 2001 AND b.year = 2002",
    "by text": f"WITH x AS ({_SALES}) SELECT a.year, a.total, b.total AS other FROM x AS a JOIN x AS b"
    " ON a.year = b.year WHERE a.shop = 'a' AND b.shop = 'b'",
}
APART = {
    "no key": "SELECT a.shop, a.total, b.total AS later FROM (SELECT shop, sum(price) AS total FROM sales JOIN days"
    " ON day = id WHERE year = 2001 GROUP BY shop) AS a JOIN (SELECT shop, sum(price) AS total FROM sales JOIN days"
    " ON day = id WHERE year = 2002 GROUP BY shop) AS b ON a.shop = b.shop",
    "other aggregates": "SELECT a.shop, a.total, b.total AS later FROM (SELECT shop, year, sum(price) AS total"
    " FROM sales JOIN days ON day = id WHERE year = 2001 GROUP BY shop, year) AS a"
    " JOIN (SELECT shop, year, max(price) AS total FROM sales JOIN days ON day = id WHERE year = 2002"
    " GROUP BY shop, year) AS b ON a.shop = b.shop",
    "what may raise": f"WITH x AS ({_SALES}) SELECT a.shop, a.total, b.n FROM x AS a JOIN x AS b ON a.shop = b.shop"
    " WHERE 10 / (a.year - 1999) = 5 AND b.year = 2002",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, chance = tmp_path_factory.mktemp("shared"), np.random.default_rng(7)
    for name, rows in (("sales", 4000), ("returns", 900)):
        shops = [["a", "b", "c", "d", None][at] for at in chance.integers(0, 5, rows)]
        columns = {"shop": shops, "day": chance.integers(0, 2000, rows), "price": chance.integers(0, 40, rows)}
        pq.write_table(pa.table(columns), path / f"{name}.parquet")
    years = [None if at % 97 == 0 else 2000 + at // 400 for at in range(2000)]
    pq.write_table(pa.table({"id": range(2000), "year": pa.array(years, pa.int64())}), path / "days.parquet")
    return path


@pytest.fixture(scope="module", params=[1, 3])
def runner(
    request: pytest.FixtureRequest, folder: Path, nothing_is_left_by_the_module: None
) -> Iterator[tuple[Environment, duckdb.DuckDBPyConnection]]:
    with Environment(config={"parallelism.default": request.param}) as environment, duckdb.connect() as connection:
        for path in folder.glob("*.parquet"):
            environment.register(path.stem, environment.read_parquet(path))
            connection.execute(f"CREATE VIEW {path.stem} AS FROM '{path}'")
        yield environment, connection


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many aggregates were put together, each time; it pays always."""
    found: list[int] = []
    share = shared_groups._share

    def counted(plan, first, family):
        found.append(1 + len(family))
        share(plan, first, family)

    monkeypatch.setattr(shared_groups, "_share", counted)
    monkeypatch.setattr(shared_groups, "_pays", lambda *_: True)
    monkeypatch.setattr(shared_groups, "SOURCE_ROWS_MIN", 0)
    return found


@pytest.mark.parametrize("name", SHARED)
def test_what_differs_in_a_key_is_computed_at_once(runner, shared, name: str) -> None:
    environment, connection = runner
    assert difference(environment.sql(SHARED[name]).to_arrow(), connection.sql(SHARED[name]).to_arrow_table()) == ""
    assert shared
    assert set(shared) == {3 if name == "three" else 2}


@pytest.mark.parametrize("name", APART)
def test_what_differs_otherwise_stays_apart(runner, shared, name: str) -> None:
    environment, connection = runner
    query = APART[name].replace("10 / (", "10 // (")
    assert difference(environment.sql(APART[name]).to_arrow(), connection.sql(query).to_arrow_table()) == ""
    assert shared == []


def test_one_scan_is_left_of_two(runner, shared) -> None:
    environment, _ = runner
    assert environment.sql(SHARED["two"]).explain().count("source sales.parquet") == 1


def test_what_both_ask_for_is_asked_once(runner, shared) -> None:
    environment, _ = runner
    (line,) = [line for line in environment.sql(SHARED["two"]).explain().splitlines() if " filter (year ==" in line]
    assert line.endswith("filter (year == 2001) | (year == 2002)") or line.endswith("(year == 2002) | (year == 2001)")


_TWICE = (
    "SELECT a.shop, a.total, b.mean FROM (SELECT shop, year, {} AS total FROM sales JOIN days ON day = id"
    " GROUP BY shop, year) AS a JOIN (SELECT shop, avg(t) AS mean FROM (SELECT shop, year, {} AS t"
    " FROM sales JOIN days ON day = id GROUP BY shop, year) AS c GROUP BY shop) AS b ON a.shop = b.shop"
)


def test_a_query_that_is_written_twice_is_computed_once(runner, shared) -> None:
    environment, connection = runner
    text = _TWICE.format("sum(price)", "sum(price)") + " WHERE a.total <= 1.1 * b.mean"
    assert difference(environment.sql(text).to_arrow(), connection.sql(text).to_arrow_table()) == ""
    assert environment.sql(text).explain().count("source sales.parquet") == 1
