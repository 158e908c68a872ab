"""Sums under conditions on the other side of a join: taken before the join where they may be, with DuckDB's answers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.optimizer.rules import aggregate_pushdown
from tests.tpch.answers import difference

_JOINED = "FROM sales JOIN days ON day = id"


def by_week(*values: str, rest: str = "") -> str:
    listed = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
    return f"SELECT week, {listed} {_JOINED}{rest} GROUP BY week"


BEFORE = {
    "null": by_week("sum(CASE WHEN name = 'Mon' THEN price END)", "sum(CASE WHEN name = 'Tue' THEN price END)"),
    "said null": by_week("sum(CASE WHEN name = 'Mon' THEN price ELSE NULL END)"),
    "zero": by_week(
        "sum(CASE WHEN name = 'Mon' THEN count ELSE 0 END)", "sum(CASE WHEN name = 'Sun' THEN weight ELSE 0 END)"
    ),
    "bounds": by_week("min(CASE WHEN name = 'Mon' THEN price END)", "max(CASE WHEN name <> 'Mon' THEN count END)"),
    "and all": by_week("sum(CASE WHEN name = 'Mon' THEN price END)", "sum(price)", "max(price)"),
    "a key": by_week("sum(CASE WHEN day % 2 = 0 AND name = 'Mon' THEN price END)"),
    "both": by_week("sum(CASE WHEN shop = 'a' AND name = 'Mon' THEN price END)"),
    "kept": by_week("sum(CASE WHEN name = 'Mon' THEN price END)", rest=" AND shop < name"),
    "named": f"SELECT week + 1 AS name, sum(CASE WHEN day > 9 THEN price END) AS s {_JOINED} GROUP BY week + 1",
    "twice": f"SELECT a.week, v0, v1 FROM ({by_week('sum(CASE WHEN shop = 1::TEXT THEN price END)')}) AS a JOIN"
    f" (SELECT week, sum(CASE WHEN name = 'Mon' THEN count END) AS v1 {_JOINED} GROUP BY week) AS b ON a.week = b.week",
}
BEHIND = {
    "zero of a decimal": by_week("sum(CASE WHEN name = 'Mon' THEN price ELSE 0 END)"),
    "zero as a bound": by_week("max(CASE WHEN name = 'Mon' THEN count ELSE 0 END)"),
    "one": by_week("sum(CASE WHEN name = 'Mon' THEN count ELSE 1 END)"),
    "an average": by_week("avg(CASE WHEN name = 'Mon' THEN price END)"),
    "computed": by_week("sum(CASE WHEN name = 'Mon' THEN price * 2 END)"),
    "what may overflow": by_week("sum(CASE WHEN name = 'Mon' THEN large END)"),
    "two values": by_week("sum(CASE WHEN name = 'Mon' THEN count WHEN name = 'Tue' THEN day END)"),
    "a key as a value": by_week("sum(CASE WHEN name = 'Mon' THEN day::INT END)"),
    "outer": "SELECT week, sum(CASE WHEN name = 'Mon' THEN price END) AS s FROM days LEFT JOIN sales ON day = id"
    " GROUP BY week",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, chance, rows = tmp_path_factory.mktemp("conditional"), np.random.default_rng(5), 3000
    some = chance.integers(0, 9, rows)
    sales = {
        "day": pa.array([None if at % 50 == 0 else int(at) % 60 for at in chance.integers(0, 600, rows)], pa.int32()),
        "shop": [["a", "b", None][at % 3] for at in some],
        "price": pa.array([None if at == 0 else Decimal(int(at) * 7) / 4 for at in some], pa.decimal128(7, 2)),
        "count": pa.array([None if at == 1 else int(at) for at in some], pa.int32()),
        "weight": [None if at == 2 else at / 2 for at in some.tolist()],
        "large": pa.array(some, pa.int64()),
    }
    pq.write_table(pa.table(sales), path / "sales.parquet")
    days = {
        "id": pa.array([*range(50), 3, 4], pa.int32()),
        "week": [at // 7 for at in range(52)],
        "name": [["Mon", "Tue", "Sun", None][at % 4] for at in range(52)],
    }
    pq.write_table(pa.table(days), path / "days.parquet")
    return path


@pytest.fixture(params=[1, 3])
def runner(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Environment, duckdb.DuckDBPyConnection]]:
    monkeypatch.setattr(aggregate_pushdown, "ROWS_MIN", 0.0)
    monkeypatch.setattr(aggregate_pushdown, "WORTHWHILE", 1e9)
    with Environment(config={"parallelism.default": request.param}) as env, duckdb.connect() as connection:
        for path in folder.glob("*.parquet"):
            env.register(path.stem, env.read_parquet(path))
            connection.execute(f"CREATE VIEW {path.stem} AS SELECT * FROM read_parquet('{path}')")
        yield env, connection


@pytest.mark.parametrize("name", [*BEFORE, *BEHIND])
def test_the_answer_is_duckdbs(runner, name):
    env, connection = runner
    query = f"SELECT * FROM ({({**BEFORE, **BEHIND})[name]}) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST"
    data = env.sql(query)
    assert difference(data.to_arrow(), connection.sql(query).to_arrow_table()) == ""
    assert ("__taken" in data.explain()) == (name in BEFORE)
