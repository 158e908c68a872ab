"""Keys of joins are sampled better than other columns, wherever they come from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import DataSet, Environment, JoinHint, col
from engine.api.key_samples import with_samples
from engine.api.logical_node import LogicalNode, build_plan
from engine.graph.plan import Sink, Source
from engine.graph.source_spec import SinkSpec

ROWS = 60_000


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    """Facts that are sorted by their key, in one row group: the heavy key lies in the middle."""
    keys = [*range(ROWS // 4), *([50_000] * (ROWS // 2)), *range(60_000, 60_000 + ROWS // 4)]
    pq.write_table(pa.table({"k": pa.array(keys, pa.int32()), "v": range(ROWS)}), tmp_path / "facts.parquet")
    pq.write_table(pa.table({"id": pa.array(range(90_000), pa.int64())}), tmp_path / "lookup.parquet")
    return Environment(config={"parallelism.default": 4})


def heavy_of(data: DataSet, column: str = "k") -> list[str]:
    """Return the heavy keys that the plan's source of facts knows."""
    sink = LogicalNode(Sink(SinkSpec("arrow", "x")), (data._node,), data._node.schema)
    plan = with_samples(build_plan([sink], "test"))
    (source,) = [node.operator for node in plan.nodes if isinstance(node.operator, Source) and "v" in node.schema.names]
    return [text for text, _ in source.statistics.columns[column].heavy_keys]


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


def test_columns_that_no_join_compares_are_not_read_again(env: Environment, tmp_path: Path) -> None:
    facts = env.read_parquet(tmp_path / "facts.parquet")
    assert heavy_of(joined(facts, env, tmp_path, "v")) == []
    computed = facts.with_columns(key=col("k") + 1)
    assert heavy_of(joined(computed, env, tmp_path, "key")) == []


def test_explain_splits_a_key_that_only_the_better_sample_shows(env: Environment, tmp_path: Path) -> None:
    facts = env.read_parquet(tmp_path / "facts.parquet")
    lookup = env.read_parquet(tmp_path / "lookup.parquet")
    result = facts.join(lookup, left_on="k", right_on="id", hint=JoinHint.REPARTITION_HASH_SECOND)
    assert "heavy keys split: k=50000 (50." in result.explain() or "k=50000 (49." in result.explain()
