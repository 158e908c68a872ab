"""The first rows of an order over Parquet are those that plain Python finds, whatever was left out on the way."""

import random
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import col, max_
from engine.graph.sort_key import SortKey
from engine.optimizer import top_planning
from tests.records.test_top_keys import ranks

TYPES = {
    "int64": (pa.int64(), lambda chance, top: chance.randrange(top)),
    "date": (pa.date32(), lambda chance, top: date(1970, 1, 1) + timedelta(days=chance.randrange(top))),
    "moment": (pa.timestamp("us"), lambda chance, top: datetime(1970, 1, 1) + timedelta(hours=chance.randrange(top))),
    "decimal": (pa.decimal128(12, 3), lambda chance, top: Decimal(chance.randrange(top)) / 4),
    "text": (pa.string(), lambda chance, top: f"key {chance.randrange(top)}"),
    "double": (pa.float64(), lambda chance, top: chance.choice([0.0, -0.0, float("nan"), chance.randrange(top) / 2])),
}
ORDERS = [(False, False), (False, True), (True, False), (True, True)]
#: share of nulls, columns that are not looked at, whether rows lie in order
CASES = [(0.1, 12, False), (0.003, 12, True), (0.0, 0, False), (0.997, 0, True)]
ROWS = 3000


@pytest.fixture(scope="module", params=[1, 2])
def env(request, open_environment):
    return open_environment(**{"parallelism.default": request.param})


@pytest.fixture(autouse=True)
def thresholds_always_pay(monkeypatch):
    monkeypatch.setattr(top_planning, "SOURCE_ROWS_MIN", 0)


def written(folder, kind, nulls, columns, is_clustered, top=200):
    data_type, draw = TYPES[kind]
    chance = random.Random(5)
    values = [None if chance.random() < nulls else draw(chance, top) for _ in range(ROWS)]
    if is_clustered:
        values.sort(key=lambda value: (value is None, value != value, value if value is not None else 0))
    table = pa.table(
        {
            "k": pa.array(values, data_type),
            "n": range(ROWS),
            **{f"c{index}": [f"{index} {row}" for row in range(ROWS)] for index in range(columns)},
        }
    )
    for half in range(2):
        pq.write_table(table.slice(half * ROWS // 2, ROWS // 2), folder / f"part-{half}.parquet", row_group_size=250)
    return table


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_first_rows_are_those_of_the_order(env, tmp_path, kind, case):
    nulls, columns, is_clustered = CASES[case]
    # each kind is seen in each order
    descending, nulls_last = ORDERS[(case + list(TYPES).index(kind)) % len(ORDERS)]
    table = written(tmp_path, kind, nulls, columns, is_clustered)
    data = env.read_parquet(tmp_path).filter(col("n") % 3 != 0)
    values = table["k"].to_pylist()
    rows = [row for row in range(ROWS) if row % 3]
    rank = ranks(values, SortKey("k", descending, nulls_last))
    for count in (1, 20):
        alone = data.sort("k", descending=descending, nulls_last=nulls_last).limit(count)
        assert "top-n threshold on k" in alone.explain()
        found = alone.to_arrow()["n"].to_pylist()
        assert [rank[row] for row in found] == sorted(rank[row] for row in rows)[:count]
        assert len(set(found)) == count
        total = data.top(count, ["k", "n"], descending=[descending, True], nulls_last=[nulls_last, True]).to_arrow()
        first = sorted(rows, key=lambda row: (rank[row], -row))[:count]
        assert total["n"].to_pylist() == first
        assert all(total[f"c{each}"].to_pylist() == [f"{each} {row}" for row in first] for each in range(columns))


def test_explain_says_what_was_left_out(open_environment, tmp_path):
    env = open_environment(**{"parallelism.default": 1})
    written(tmp_path, "int64", 0.0, 12, is_clustered=True, top=10**9)
    text = env.read_parquet(tmp_path).top(10, "k").explain(analyze=True)
    assert "left out 11 row groups" in text
    assert "left out 240 rows" in text


def test_without_the_option_all_rows_are_read(open_environment, tmp_path):
    env = open_environment(**{"table.optimizer.runtime-filter.enabled": False})
    written(tmp_path, "int64", 0.0, 12, is_clustered=True)
    data = env.read_parquet(tmp_path).top(10, "k")
    assert "top-n threshold" not in data.explain()
    assert "left out" not in data.explain(analyze=True)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", range(len(ORDERS)))
def test_first_groups_are_those_of_the_order(env, kind, case):
    """Rows that no source has left out: a top-n does it itself, by its first key."""
    data_type, draw = TYPES[kind]
    descending, nulls_last = ORDERS[case]
    chance = random.Random(case)
    values = [None if chance.random() < 0.1 else draw(chance, 40) for _ in range(ROWS)]
    groups = env.from_arrow(pa.table({"k": pa.array(values, data_type), "n": range(ROWS)})).group_by("n")
    rank = ranks(values, SortKey("k", descending, nulls_last))
    for count in (1, 20, 400):
        data = groups.agg(k=max_(col("k")))
        found = data.sort("k", descending=descending, nulls_last=nulls_last).limit(count).to_arrow()["n"].to_pylist()
        assert [rank[row] for row in found] == sorted(rank)[:count]
        total = data.top(count, ["k", "n"], descending=[descending, True], nulls_last=[nulls_last, True]).to_arrow()
        assert total["n"].to_pylist() == sorted(range(ROWS), key=lambda row: (rank[row], -row))[:count]
