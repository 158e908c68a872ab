"""Aggregates of all rows before or behind a row: running ones, the same rows as those of pairs."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from engine import Environment
from tests.tpch.answers import difference

ROWS = 200
TYPES = {
    "int32": (pa.int32(), lambda n: n),
    "int64": (pa.int64(), lambda n: n * 10**12),
    "uint8": (pa.uint8(), lambda n: n),
    "decimal": (pa.decimal128(12, 2), lambda n: decimal.Decimal(n) / 4 - 3),
    "date": (pa.date32(), lambda n: datetime.date(1999, 12, 20) + datetime.timedelta(n)),
    "timestamp": (pa.timestamp("us"), lambda n: datetime.datetime(2000, 1, 1) + datetime.timedelta(minutes=n)),
}


@pytest.fixture(scope="module")
def runner(nothing_is_left_by_the_module: None) -> Iterator[Environment]:
    with Environment(config={"parallelism.default": 2}) as made:
        yield made


def table(seed: int, type_name: str = "int32") -> pa.Table:
    rng = random.Random(seed)
    data_type, made_of = TYPES[type_name]
    times = [rng.choice([None, *range(12), 15, 30]) for _ in range(ROWS)]
    return pa.table(
        {
            "k": pa.array(rng.choices([None, 1, 2, 3], k=ROWS), pa.int32()),
            "t": pa.array([None if n is None else made_of(n) for n in times], data_type),
            "v": pa.array(rng.choices([None, *range(-20, 20)], k=ROWS), pa.int64()),
            "w": pa.array(rng.choices([None, "", "a", "b"], k=ROWS)),
        }
    )


def answer(runner: Environment, text: str, **tables: pa.Table) -> str:
    """Return the plan of a query whose answer is DuckDB's."""
    with duckdb.connect() as oracle:
        for name, one in tables.items():
            oracle.register(name, one)
            runner.register(name, runner.from_arrow(one))
        wanted = oracle.sql(text).to_arrow_table()
    asked = runner.sql(text)
    assert difference(asked.to_arrow(), wanted) == "", text
    assert wanted.num_rows > 0
    return str(asked.explain())


CALLS = "count(*) AS n, count(y.v) AS m, count(y.w) AS c, min(y.v) AS low, max(y.v) AS high"


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("type_name", TYPES)
def test_groups_of_an_inequality_are_duckdbs(runner, sign, type_name):
    tables = {"x": table(1, type_name), "y": table(2, type_name)}
    text = f"SELECT x.t, x.w, {CALLS} FROM x JOIN y ON y.t {sign} x.t GROUP BY x.t, x.w"
    assert "as-of join" in answer(runner, text, **tables)


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("sides", ["x JOIN y", "y JOIN x"])
def test_equal_keys_part_the_running_rows(runner, sign, sides):
    text = f"SELECT x.v, {CALLS} FROM {sides} ON x.t {sign} y.t AND x.k = y.k GROUP BY x.v"
    assert "as-of join" in answer(runner, text, x=table(3), y=table(4))


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_a_count_beside_each_row_is_duckdbs(runner, sign):
    text = f"SELECT v, w, (SELECT count(*) FROM y WHERE y.v {sign} x.v) AS n FROM x"
    assert "as-of join" in answer(runner, text, x=table(5), y=table(6))


def test_no_row_before_is_no_group(runner):
    x = pa.table({"t": [1, 2, 3] * 100})
    y = pa.table({"t": [2, 5, None] * 100})
    plan = answer(runner, "SELECT x.t, count(*) AS n FROM x JOIN y ON y.t < x.t GROUP BY x.t", x=x, y=y)
    assert "as-of join" in plan


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x.t, sum(y.v) AS s FROM x JOIN y ON y.t < x.t GROUP BY x.t",
        "SELECT x.t, max(x.v + y.v) AS s FROM x JOIN y ON y.t < x.t GROUP BY x.t",
        "SELECT x.t, y.k, count(*) AS n FROM x JOIN y ON y.t < x.t GROUP BY x.t, y.k",
        "SELECT x.t, max(x.v) AS s FROM x JOIN y ON y.t < x.t GROUP BY x.t",
        "SELECT x.t, count(*) AS n FROM x JOIN y ON y.t < x.t AND y.v < x.v GROUP BY x.t",
        "SELECT x.t, count(*) AS n FROM x LEFT JOIN y ON y.t < x.t GROUP BY x.t",
        "SELECT x.f, count(*) AS n FROM x JOIN y ON y.f < x.f GROUP BY x.f",
        "SELECT count(*) AS n FROM x JOIN y ON y.t < x.t",
    ],
)
def test_other_aggregates_are_made_of_pairs(runner, text):
    tables = {
        name: table(seed).append_column("f", pa.array(map(float, range(ROWS)))) for name, seed in (("x", 7), ("y", 8))
    }
    assert "as-of join" not in answer(runner, text, **tables)
