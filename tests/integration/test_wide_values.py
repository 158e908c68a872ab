"""Jobs whose values lie outside of their rows, from 100 bytes on: right in every exchange, sort, join and group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, col, max_, min_
from engine.memory import value_stores
from engine.records.outside_values import set_outside_bytes
from tests.integration.conftest import small_environment

ROWS = 300


def row(index: int) -> dict[str, Any]:
    text = None if index % 11 == 0 else f"{index % 7}" * (index % 5 * 90)
    numbers = None if index % 13 == 0 else list(range(index % 40))
    return {
        "k": index % 50,
        "id": index,
        "text": text,
        "numbers": numbers,
        "pair": {"a": index, "b": "z" * (index % 150)},
    }


@pytest.fixture
def facts(tmp_path: Path) -> Iterator[pa.Table]:
    set_outside_bytes(100)
    schema = pa.schema(
        [
            ("k", pa.int64()),
            ("id", pa.int64()),
            ("text", pa.string()),
            ("numbers", pa.list_(pa.int64())),
            ("pair", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ]
    )
    table = pa.Table.from_pylist([row(index) for index in range(ROWS)], schema=schema)
    pq.write_table(table, tmp_path / "facts.parquet", row_group_size=40)
    yield table
    set_outside_bytes()
    assert not value_stores.any_open()


def by_id(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda found: (found["id"] is None, found["id"] or 0, str(found)))


MODES = ["PIPELINED", "BATCH"]


@pytest.mark.quick
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_sorted_by_a_wide_column_and_by_a_narrow_one(
    facts: pa.Table, tmp_path: Path, force_spill: bool, mode: str
) -> None:
    with small_environment(tmp_path, force_spill, mode) as env:
        read = env.read_parquet(str(tmp_path / "facts.parquet"))
        found = read.sort("id", descending=True).to_arrow()
        assert [one["id"] for one in found.to_pylist()] == list(range(ROWS - 1, -1, -1))
        assert by_id(found) == facts.to_pylist()
        texts = read.sort(["text", "id"]).to_arrow()["text"].to_pylist()
        assert by_id(read.sort(["text", "id"]).to_arrow()) == facts.to_pylist()
        present = [text for text in texts if text is not None]
        assert present == sorted(present)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize(
    "hint", [JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_HASH_SECOND, JoinHint.REPARTITION_SORT_MERGE]
)
def test_joins_give_the_same_with_values_outside(
    facts: pa.Table, tmp_path: Path, how: str, hint: JoinHint, force_spill: bool
) -> None:
    small = pa.table({"k": [3, 3, 7, 49, 60, None], "name": ["a" * 200, "b", None, "c" * 101, "d" * 300, "e"]})
    pq.write_table(small, tmp_path / "small.parquet")
    results = []
    for size in (100, None):
        set_outside_bytes(size)
        with small_environment(tmp_path, force_spill, MODES[0]) as env:
            left = env.read_parquet(str(tmp_path / "facts.parquet"))
            right = env.read_parquet(str(tmp_path / "small.parquet"))
            results.append(by_id(left.join(right, on="k", how=how, hint=hint).to_arrow()))
    assert results[0] == results[1]


@pytest.mark.parametrize("force_spill", [False, True])
def test_groups_keep_the_extreme_of_values_outside(facts: pa.Table, tmp_path: Path, force_spill: bool) -> None:
    with small_environment(tmp_path, force_spill, MODES[0]) as env:
        read = env.read_parquet(str(tmp_path / "facts.parquet"))
        found = read.group_by("k").agg(low=min_(col("text")), high=max_(col("text"))).to_arrow().to_pylist()
        for one in found:
            texts = [row(index)["text"] for index in range(one["k"], ROWS, 50) if row(index)["text"] is not None]
            assert one["low"] == min(texts, default=None)
            assert one["high"] == max(texts, default=None)
        assert len(found) == 50
