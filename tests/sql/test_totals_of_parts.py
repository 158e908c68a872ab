"""Totals of parts of the same rows: computed at once, each under its condition, with the answers of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.optimizer.rules import shared_groups, totals_of_parts
from tests.tpch.answers import difference

_ROWS = "FROM sales JOIN hours ON hour = id WHERE shop = 'a'"
SHARED = {
    "two": f"SELECT * FROM (SELECT count(*) AS n {_ROWS} AND name = 'one') AS a,"
    f" (SELECT count(*) AS m {_ROWS} AND name = 'two') AS b",
    "other aggregates": f"SELECT * FROM (SELECT sum(price) AS s, min(price) AS l {_ROWS} AND name = 'one') AS a,"
    f" (SELECT avg(price) AS v, count(price) AS c, stddev(price) AS d {_ROWS} AND name = 'two') AS b",
    "no rows": f"SELECT * FROM (SELECT sum(price) AS s, count(*) AS n {_ROWS} AND name = 'four') AS a,"
    f" (SELECT max(price) AS v, count(*) AS c {_ROWS} AND name = 'two') AS b",
    "rows of both": f"SELECT * FROM (SELECT sum(price) AS s {_ROWS} AND half < 3) AS a,"
    f" (SELECT sum(price) AS t {_ROWS} AND half > 1) AS b",
    "values": f"SELECT (SELECT count(*) {_ROWS} AND name = 'one') AS a,"
    f" (SELECT count(*) {_ROWS} AND name = 'two') AS b",
    # what the first has in common with one of them is no condition that all have
    "three": f"SELECT * FROM (SELECT count(*) AS a {_ROWS} AND name = 'one' AND half >= 2) AS a,"
    f" (SELECT count(*) AS b {_ROWS} AND name = 'two' AND half < 2) AS b,"
    f" (SELECT count(*) AS c {_ROWS} AND name = 'two' AND half >= 2) AS c",
}
APART = {
    "other tables": f"SELECT * FROM (SELECT count(*) AS n {_ROWS} AND name = 'one') AS a,"
    " (SELECT count(*) AS m FROM sales WHERE shop = 'a' AND hour = 2) AS b",
    "two differences": f"SELECT * FROM (SELECT count(*) AS n {_ROWS} AND name = 'one' AND price > 5) AS a,"
    f" (SELECT count(*) AS m {_ROWS} AND name = 'two' AND price > 7) AS b",
    "a value that may raise": f"SELECT * FROM (SELECT sum(100 // half) AS n {_ROWS} AND half > 2) AS a,"
    f" (SELECT count(*) AS m {_ROWS} AND half = 0) AS b",
    "a condition that may raise": f"SELECT * FROM (SELECT count(*) AS n {_ROWS} AND 6 // (half + 1) = 2) AS a,"
    f" (SELECT count(*) AS m {_ROWS} AND half = 1) AS b",
    # the rows of each part are read for its different values, too
    "rows that are read otherwise": f"SELECT * FROM (SELECT sum(price) AS s, count(DISTINCT price) AS n {_ROWS}"
    f" AND name = 'one') AS a, (SELECT sum(price) AS t, count(DISTINCT price) AS m {_ROWS} AND name = 'two') AS b",
    "all rows": f"SELECT * FROM (SELECT count(*) AS n {_ROWS}) AS a, (SELECT count(*) AS m {_ROWS} AND half = 1) AS b",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, chance = tmp_path_factory.mktemp("parts"), np.random.default_rng(11)
    shops = [["a", "b", None][at] for at in chance.integers(0, 3, 3000)]
    prices = [None if at % 11 == 0 else int(at) for at in chance.integers(0, 50, 3000)]
    sales = {"shop": shops, "hour": chance.integers(0, 26, 3000), "price": pa.array(prices, pa.int64())}
    pq.write_table(pa.table(sales), path / "sales.parquet")
    names = [None if at % 7 == 0 else ["one", "two", "three"][at % 3] for at in range(24)]
    halves = [None if at % 5 == 4 else at % 4 for at in range(24)]
    # hours of the name four have no sales, hours after 23 no name
    hours = {"id": [*range(24), 40, 41], "name": [*names, "four", "four"], "half": [*halves, 1, 3]}
    pq.write_table(pa.table(hours), path / "hours.parquet")
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
    share = totals_of_parts._share

    def counted(plan, family):
        found.append(len(family.parts))
        share(plan, family)

    monkeypatch.setattr(totals_of_parts, "_share", counted)
    monkeypatch.setattr(totals_of_parts, "_pays", lambda *_: True)
    monkeypatch.setattr(shared_groups, "SOURCE_ROWS_MIN", 0)
    return found


@pytest.mark.parametrize("name", SHARED)
def test_totals_of_parts_of_the_same_rows_are_computed_at_once(runner, shared, name: str) -> None:
    environment, connection = runner
    found = environment.sql(SHARED[name])
    assert difference(found.to_arrow(), connection.sql(SHARED[name]).to_arrow_table()) == ""
    assert set(shared) == {3 if name == "three" else 2}
    assert found.explain().count("source sales.parquet") == 1


@pytest.mark.parametrize("name", APART)
def test_what_differs_otherwise_stays_apart(runner, shared, name: str) -> None:
    environment, connection = runner
    assert difference(environment.sql(APART[name]).to_arrow(), connection.sql(APART[name]).to_arrow_table()) == ""
    assert shared == []


def test_many_rows_of_each_part_are_read_again(runner, monkeypatch) -> None:
    """A condition asked of nearly all rows for each of many totals costs more than a column that is read again."""
    monkeypatch.setattr(shared_groups, "SOURCE_ROWS_MIN", 0)
    environment, _ = runner
    totals = "count(*) AS a{0}, sum(price) AS b{0}, min(price) AS c{0}, max(price) AS d{0} FROM sales WHERE hour"
    text = f"SELECT * FROM (SELECT {totals.format(1)} > 1) AS x, (SELECT {totals.format(2)} < 20) AS y"
    assert environment.sql(text).explain().count("source sales.parquet") == 2


def test_few_rows_of_each_part_are_asked_at_once(runner, monkeypatch) -> None:
    monkeypatch.setattr(shared_groups, "SOURCE_ROWS_MIN", 0)
    environment, _ = runner
    text = "SELECT * FROM (SELECT count(*) AS a FROM sales WHERE hour = 1 AND shop = 'a') AS x,"
    text += " (SELECT count(*) AS b FROM sales WHERE hour = 2 AND shop = 'a') AS y"
    assert environment.sql(text).explain().count("source sales.parquet") == 1
