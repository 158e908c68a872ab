"""Threads of aggregates: which groups of one subtask several threads merge, and that they are the same groups."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count, median, quantile, sum_
from engine.operators.helper_threads import HelperThreads

ROWS = 700_000
FREE = {"debug.small-part-size": "1gb"}
FOUR = {"parallelism.default": 4, "parallelism.max-per-processor": 4}
MERGED = "many groups are merged by 4 threads"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    numbers = random.Random(7)
    path = tmp_path_factory.mktemp("groups") / "t.parquet"
    rows = {"k": [numbers.randrange(10**9) for _ in range(ROWS)], "v": [index % 1000 for index in range(ROWS)]}
    pq.write_table(pa.table(rows), path, row_group_size=70_000)
    return path


@pytest.fixture
def env():
    with Environment(config={**FOUR, **FREE}) as env:
        yield env


def test_explain_says_how_many_threads_merge(env, path):
    data = env.read_parquet(str(path))
    assert MERGED in data.group_by("k").agg(n=count()).explain()
    assert "merged" not in data.agg(n=count()).explain()
    assert "merged" not in data.limit(200_000).group_by("k").agg(n=count()).explain()
    with Environment(config=FOUR) as divided:
        assert "merged" not in divided.read_parquet(str(path)).group_by("k").agg(n=count()).explain()


def test_groups_are_those_of_one_thread(env, path, monkeypatch):
    runs, run = [], HelperThreads.run
    monkeypatch.setattr(HelperThreads, "run", lambda self, work: (runs.append(self.count), run(self, work)))
    data = env.read_parquet(str(path)).with_columns(text=col("k").cast("string"))
    groups = data.group_by("text").agg(n=count(), s=sum_("v")).to_arrow().sort_by("text")
    assert runs[:1] == [4]
    rows = pq.read_table(path)
    rows = rows.append_column("text", rows["k"].cast(pa.string()))
    wanted = rows.group_by("text").aggregate([([], "count_all"), ("v", "sum")]).sort_by("text")
    assert groups["text"].to_pylist() == wanted["text"].to_pylist()
    assert groups["n"].to_pylist() == wanted["count_all"].to_pylist()
    assert groups["s"].to_pylist() == wanted["v_sum"].to_pylist()


def test_groups_whose_values_are_held_are_worked_on_by_threads(env, path, monkeypatch):
    runs, run = [], HelperThreads.run
    monkeypatch.setattr(HelperThreads, "run", lambda self, work: (runs.append(self.count), run(self, work)))
    medians = env.read_parquet(str(path)).group_by("v").agg(m=median("k"), h=quantile("k", 1.0))
    assert "partitions are grouped by 4 threads" in medians.explain()
    found = medians.to_arrow().sort_by("v")
    assert runs
    keys, values = pq.read_table(path)["v"].to_numpy(), pq.read_table(path)["k"].to_numpy()
    groups = [values[keys == number] for number in range(1000)]
    assert found["m"].to_pylist() == [float(np.median(group)) for group in groups]
    assert found["h"].to_pylist() == [float(group.max()) for group in groups]
