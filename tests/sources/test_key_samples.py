"""Keys of joins are sampled better than other columns, wherever they come from."""

from __future__ import annotations

import re
import threading
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import DataSet, Environment, JoinHint, col, sum_
from engine.expressions.text import expression_text
from engine.graph.plan import Sink, Source
from engine.graph.source_spec import ColumnStatistics, SinkSpec
from engine.lowering.logical_node import LogicalNode, build_plan
from engine.parquet import sample
from engine.sources import key_samples
from engine.sources.key_samples import with_samples
from engine.sources.source_filters import source_filters

ROWS = 60_000


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    """Facts that are sorted by their key, in one row group: the heavy key lies in the middle."""
    keys = [*range(ROWS // 4), *([50_000] * (ROWS // 2)), *range(60_000, 60_000 + ROWS // 4)]
    pq.write_table(pa.table({"k": pa.array(keys, pa.int32()), "v": range(ROWS)}), tmp_path / "facts.parquet")
    pq.write_table(pa.table({"id": pa.array(range(90_000), pa.int64())}), tmp_path / "lookup.parquet")
    return Environment(config={"parallelism.default": 4})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Columns that would be sampled; none is."""
    names: set[str] = set()

    def with_sample(_spec, statistics, _schema, columns, _predicates, _carried):
        names.update(columns)
        return statistics

    monkeypatch.setattr(sample, "with_sample", with_sample)
    return names


def known_of(data: DataSet) -> dict[str, ColumnStatistics]:
    """Return what the plan's source of facts knows of its columns."""
    sink = LogicalNode(Sink(SinkSpec("arrow", "x")), (data._node,), data._node.schema)
    plan = with_samples(build_plan([sink], "test"))
    (source,) = [node.operator for node in plan.nodes if isinstance(node.operator, Source) and "v" in node.schema.names]
    return source.statistics.columns


def heavy_of(data: DataSet, column: str = "k") -> list[str]:
    """Return the heavy keys that the plan's source of facts knows."""
    return [text for text, _ in known_of(data)[column].heavy_keys]


def joined(facts: DataSet, env: Environment, tmp_path: Path, key: str = "k") -> DataSet:
    return facts.join(env.read_parquet(tmp_path / "lookup.parquet"), left_on=key, right_on="id")


def test_the_key_of_a_join_is_sampled_wherever_it_comes_from(env: Environment, tmp_path: Path) -> None:
    facts = env.read_parquet(tmp_path / "facts.parquet")
    assert heavy_of(facts) == []
    assert heavy_of(joined(facts, env, tmp_path)) == ["50000"]
    renamed = facts.filter(col("v") > 5).select(col("k").cast(pa.int64()).alias("key"), "v").sort("v")
    assert heavy_of(joined(renamed, env, tmp_path, "key")) == ["50000"]
    twice = joined(joined(facts, env, tmp_path).rename({"id": "other"}), env, tmp_path, "v")
    assert heavy_of(twice) == ["50000"]


@pytest.mark.parametrize(
    ("ask", "sampled"),
    [
        (lambda facts: facts.select("k", "v"), set()),
        (lambda facts: facts.group_by("k").agg(s=sum_("v")), {"k"}),
        (lambda facts: facts.select("k", (col("v") + 1).alias("w")).group_by("w").agg(s=sum_("k")), {"v"}),
        (lambda facts: facts.filter(col("v") % 2 == 0).agg(s=sum_("k")), {"v"}),
        (lambda facts: facts.sort("v"), {"v"}),
    ],
    ids=["handed on", "a key", "a key that is computed", "a filter", "an order"],
)
def test_what_is_only_added_up_or_handed_on_is_not_sampled(
    env: Environment, tmp_path: Path, asked: set[str], ask, sampled
) -> None:
    known_of(ask(env.read_parquet(tmp_path / "facts.parquet")))
    assert asked == sampled


@pytest.mark.parametrize(
    ("condition", "sampled"), [(col("v") % 2 == 0, {"v"}), (col("k") % 2 == 0, {"k"})], ids=["another", "the key"]
)
def test_a_key_that_is_known_better_is_sampled_for_predicates_alone(
    env: Environment, tmp_path: Path, asked: set[str], condition, sampled
) -> None:
    facts = env.read_parquet(tmp_path / "facts.parquet").filter(condition)
    data = joined(facts, env, tmp_path)
    plan = build_plan([LogicalNode(Sink(SinkSpec("arrow", "x")), (data._node,), data._node.schema)], "test")
    with_samples(plan, source_filters(plan).every)
    assert asked == sampled


def test_columns_that_no_join_compares_are_not_read_again(env: Environment, tmp_path: Path) -> None:
    facts = env.read_parquet(tmp_path / "facts.parquet")
    assert heavy_of(joined(facts, env, tmp_path, "v")) == []
    computed = facts.with_columns(key=col("k") + 1)
    assert heavy_of(joined(computed, env, tmp_path, "key")) == []


def test_explain_splits_a_key_that_only_the_better_sample_shows(env: Environment, tmp_path: Path) -> None:
    facts = env.read_parquet(tmp_path / "facts.parquet")
    lookup = env.read_parquet(tmp_path / "lookup.parquet")
    result = facts.join(lookup, left_on="k", right_on="id", hint=JoinHint.REPARTITION_HASH_SECOND)
    assert re.search(r"heavy keys split: __k_as_int64=50000 \((50|49)\.", result.explain())


def shares_of(data: DataSet) -> dict[str, float]:
    """Return the shares of rows that the plan's source says filters keep, by their text."""
    sink = LogicalNode(Sink(SinkSpec("arrow", "x")), (data._node,), data._node.schema)
    plan = build_plan([sink], "test")
    plan = with_samples(plan, source_filters(plan).every)
    (source,) = [node.operator for node in plan.nodes if isinstance(node.operator, Source)]
    return {
        expression_text(known.expression): share
        for known in source.statistics.computed
        for text, share in known.statistics.heavy_keys
        if text == "true"
    }


def test_no_row_is_a_proof_where_all_rows_were_looked_at(env: Environment, tmp_path: Path) -> None:
    shares = {}
    for rows in (1000, 8192):
        pq.write_table(pa.table({"v": range(rows)}), tmp_path / f"{rows}.parquet")
        found = env.read_parquet(tmp_path / f"{rows}.parquet").filter(col("v") % 10_000 == 9_999)
        (shares[rows],) = shares_of(found).values()
    assert shares == {1000: 0.0, 8192: 0.5 / 8192}


def test_a_join_with_what_has_no_row_reads_nothing(env: Environment, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(100)}), tmp_path / "few.parquet")
    none = env.read_parquet(tmp_path / "few.parquet").filter(col("id") % 7 == 9)
    found = env.read_parquet(tmp_path / "facts.parquet").join(none, left_on="k", right_on="id")
    assert "none of the source meets its filter" in found.explain()
    assert "facts.parquet" not in found.explain()


@pytest.fixture
def orders(tmp_path: Path) -> DataSet:
    """1000 rows: n from 0 to 999, m is n for the even ones and more for the others, a text of three kinds."""
    n = range(1000)
    table = {"n": n, "m": [i + i % 2 for i in n], "t": [("red", "green", "gold")[i % 4 // 2 + (i % 8 == 7)] for i in n]}
    pq.write_table(pa.table(table), tmp_path / "orders.parquet", row_group_size=250)
    return Environment().read_parquet(tmp_path / "orders.parquet")


def test_what_filters_keep_is_counted_in_the_sample(orders: DataSet) -> None:
    assert shares_of(orders.filter(col("n") < col("m"))) == {"n < m": 0.5}
    assert shares_of(orders.filter(col("t").str.starts_with("g"))) == {"starts_with(t, 'g')": 0.5}
    assert shares_of(orders.filter((col("n") < col("m")) & (col("t") == "red"))) == {
        "(n < m) & (t == 'red')": 0.25,
        "n < m": 0.5,
        "t == 'red'": 0.5,
    }
    assert shares_of(orders.filter(col("t") == "blue")) == {"t == 'blue'": 0.0}


def test_predicates_are_followed_through_projections(orders: DataSet) -> None:
    late = orders.with_columns(late=col("m") - col("n"), colour=col("t")).filter(col("late") == 1)
    assert shares_of(late) == {"m - n == 1": 0.5}
    assert "0.5 of the input: sample" in late.explain()
    assert shares_of(late.filter(col("colour") == "red"))["t == 'red'"] == 0.5


def test_a_predicate_that_fails_for_a_row_has_no_share(orders: DataSet) -> None:
    assert shares_of(orders.filter(col("t").cast(pa.int64()) == 1)) == {}


def test_the_begin_of_a_sorted_file_is_not_asked(tmp_path: Path) -> None:
    """60 000 days in one row group: the sample shows the first 8192."""
    days = pa.table({"day": pa.array(range(60_000), pa.date32()), "even": [i % 2 == 0 for i in range(60_000)]})
    pq.write_table(days, tmp_path / "days.parquet")
    late = Environment().read_parquet(tmp_path / "days.parquet").filter(col("day") >= date(2093, 1, 1))
    assert shares_of(late) == {}
    assert "0.251 of the input: statistics (greater_equal)" in late.explain()
    assert shares_of(late.filter(col("even"))) == {"even": 0.5}


@pytest.mark.parametrize("seconds", [0.0, 3.0], ids=["in threads", "in this one"])
def test_sources_are_sampled_in_threads_once_one_takes_its_time(
    env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    threads: list[str] = []
    own = sample.with_sample

    def with_sample(*asked):
        threads.append(threading.current_thread().name.partition("_")[0])
        return own(*asked)

    monkeypatch.setattr(sample, "with_sample", with_sample)
    monkeypatch.setattr(key_samples, "_KNOWN_S", seconds)
    facts, lookup = (env.read_parquet(tmp_path / f"{name}.parquet") for name in ("facts", "lookup"))
    found = known_of(facts.join(lookup, left_on="k", right_on="id"))
    assert threads == (["sample"] * 2 if seconds == 0 else [threading.current_thread().name] * 2)
    assert found
