"""Sources that leave out what a join would drop: the same rows come out, and fewer are read."""

import functools
import random
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, col
from engine.optimizer import runtime_filter_planning
from tests.integration.row_oracle import assert_same_rows, rows_of

GROUP_ROWS = 500
TYPES = {
    "int64": (pa.int64(), lambda chance, top: chance.randrange(top)),
    "far": (pa.int64(), lambda chance, top: chance.randrange(top) * (1 << 45)),
    "int32": (pa.int32(), lambda chance, top: chance.randrange(top) - 100),
    "date": (pa.date32(), lambda chance, top: date(1970, 1, 1) + timedelta(days=chance.randrange(top))),
    "decimal": (pa.decimal128(12, 3), lambda chance, top: Decimal(chance.randrange(top)) / 4),
    "text": (pa.string(), lambda chance, top: f"key {chance.randrange(top)}"),
    "double": (pa.float64(), lambda chance, top: chance.choice([0.0, -0.0, float("nan"), chance.randrange(top) / 2])),
}
ENVIRONMENTS = {
    "one": {"parallelism.default": 1},
    "two": {},
    "two, batch": {"execution.mode": "BATCH"},
    "two, spilling": {"debug.force-spill": True},
}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def env(request, open_environment):
    return open_environment(**ENVIRONMENTS[request.param])


@pytest.fixture(autouse=True)
def filters_always_pay(monkeypatch):
    monkeypatch.setattr(runtime_filter_planning, "SOURCE_ROWS_MIN", 0)
    monkeypatch.setattr(runtime_filter_planning, "KEPT_SHARE_MAX", 1.0)


@functools.cache
def tables(kind):
    """Rows to probe with, and few to build of."""
    data_type, draw = TYPES[kind]
    chance = random.Random(11)

    def keys(rows, top):
        return pa.array([None if chance.random() < 0.1 else draw(chance, top) for _ in range(rows)], data_type)

    facts = pa.table({"k": keys(4000, 1000), "n": range(4000), "t": ["x" * (row % 50) for row in range(4000)]})
    return facts, pa.table({"d": keys(120, 300), "m": range(120)})


def written(folder, kind):
    facts, small = tables(kind)
    pq.write_table(facts, folder / "facts.parquet", row_group_size=GROUP_ROWS)
    pq.write_table(small, folder / "small.parquet")


def expected_rows(kind, how):
    facts, small = (list(zip(*(c.to_pylist() for c in table.columns), strict=True)) for table in tables(kind))
    same = {}
    for row in small:
        same.setdefault(str(row[0] + 0.0 if row[0] == 0 else row[0]), []).append(row)
    found = []
    for row in facts:
        matches = [] if row[0] is None else same.get(str(row[0] + 0.0 if row[0] == 0 else row[0]), [])
        if how == "semi":
            found += [row] * bool(matches)
        else:
            found += [(*row, *match) for match in matches]
    return found


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("how", ["inner", "semi"])
def test_rows_are_those_of_the_join(env, tmp_path, kind, how):
    written(tmp_path, kind)
    facts = env.read_parquet(tmp_path / "facts.parquet").filter(col("n") >= 0)
    small = env.read_parquet(tmp_path / "small.parquet")
    joined = facts.join(small, left_on="k", right_on="d", how=how, hint=JoinHint.BROADCAST_HASH_SECOND)
    assert "run-time filter on k" in joined.explain()
    assert_same_rows(rows_of(joined.to_arrow()), expected_rows(kind, how))


def test_explain_says_how_many_rows_were_left_out(open_environment, tmp_path):
    env = open_environment(**ENVIRONMENTS["two"])
    written(tmp_path, "int64")
    facts, small = tables("int64")
    joined = env.read_parquet(tmp_path / "facts.parquet").join(
        env.read_parquet(tmp_path / "small.parquet"), left_on="k", right_on="d", hint=JoinHint.BROADCAST_HASH_SECOND
    )
    keys = set(small["d"].to_pylist()) - {None}
    left_out = sum(key not in keys for key in facts["k"].to_pylist())
    assert f"left out {left_out:,} rows by run-time filters of joins".replace(",", " ") in joined.explain(analyze=True)


@pytest.mark.parametrize("kind", ["int64", "text", "decimal", "date"])
def test_row_groups_without_such_keys_are_not_read(open_environment, tmp_path, kind):
    env = open_environment(**ENVIRONMENTS["one"])
    _, draw = TYPES[kind]
    keys = sorted({draw(random.Random(seed), 1000) for seed in range(900)})
    pq.write_table(pa.table({"k": pa.array(keys, TYPES[kind][0])}), tmp_path / "facts.parquet", row_group_size=50)
    pq.write_table(pa.table({"d": pa.array(keys[60:63], TYPES[kind][0])}), tmp_path / "small.parquet")
    joined = env.read_parquet(tmp_path / "facts.parquet").join(
        env.read_parquet(tmp_path / "small.parquet"), left_on="k", right_on="d", hint=JoinHint.BROADCAST_HASH_SECOND
    )
    assert joined.to_arrow().num_rows == 3
    groups = -(-len(keys) // 50)
    assert f"left out {groups - 1} row groups" in joined.explain(analyze=True)


def test_without_the_option_all_rows_are_read(open_environment, tmp_path):
    env = open_environment(**{"table.optimizer.runtime-filter.enabled": False})
    written(tmp_path, "int64")
    joined = env.read_parquet(tmp_path / "facts.parquet").join(
        env.read_parquet(tmp_path / "small.parquet"), left_on="k", right_on="d", hint=JoinHint.BROADCAST_HASH_SECOND
    )
    assert "run-time filter" not in joined.explain() + joined.explain(analyze=True)
