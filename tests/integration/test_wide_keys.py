"""Jobs whose keys lie outside of their rows, from 100 bytes on: the same as in plain Python, wherever keys are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, col, count, count_distinct, first, max_, sum_
from engine.memory import value_stores
from engine.memory.value_stores import BLOCK_BYTES
from engine.records.outside_values import set_outside_bytes
from tests.integration.conftest import small_environment

#: what most keys have in common, and what a few have
BEGINNING, LONG_BEGINNING = b"begin" * 30, b"b" * BLOCK_BYTES
ROWS = 240


def key(index: int) -> bytes | None:
    """Return one of 60 keys: null, short, as long as what a reference holds, alike to the last byte, alike for long."""
    chosen = index * 7 % 60
    if chosen == 0:
        return None
    if chosen < 10:
        return b"k" * (58 + chosen)
    if chosen < 55:
        return BEGINNING + bytes([chosen])
    return LONG_BEGINNING + bytes([chosen])


def rows_of(start: int, count: int) -> list[dict[str, Any]]:
    return [{"key": key(index), "id": index, "tag": f"t{index % 9}"} for index in range(start, start + count)]


FACTS, OTHERS = rows_of(0, ROWS), [{"key": key(index), "other": index} for index in range(0, 150, 5)]


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[tuple[str, str]]:
    set_outside_bytes(100)
    pq.write_table(pa.Table.from_pylist(FACTS), tmp_path / "facts.parquet", row_group_size=50)
    pq.write_table(pa.Table.from_pylist(OTHERS), tmp_path / "others.parquet")
    yield str(tmp_path / "facts.parquet"), str(tmp_path / "others.parquet")
    set_outside_bytes()
    assert not value_stores.any_open()


def unordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.thorough
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize(("descending", "nulls_last"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_sort_by_them(
    paths: tuple[str, str], tmp_path: Path, force_spill: bool, descending: bool, nulls_last: bool
) -> None:
    present = sorted((row for row in FACTS if row["key"] is not None), key=lambda row: row["id"])
    present.sort(key=lambda row: row["key"], reverse=descending)
    nulls = [row for row in FACTS if row["key"] is None]
    expected = present + nulls if nulls_last else nulls + present
    with small_environment(tmp_path, force_spill, "BATCH" if descending else "PIPELINED") as env:
        read = env.read_parquet(paths[0])
        found = read.sort(["key", "id"], descending=[descending, False], nulls_last=nulls_last).to_arrow().to_pylist()
        assert found == expected
        top = read.top(20, "key") if not descending else read.sort("key", descending=True, nulls_last=True).limit(20)
        kept = sorted((row["key"] for row in FACTS if row["key"] is not None), reverse=True)[:20]
        assert Counter(row["key"] for row in top.collect()) == Counter(kept)


@pytest.mark.thorough
@pytest.mark.parametrize("force_spill", [False, True])
def test_groups_of_them(paths: tuple[str, str], tmp_path: Path, force_spill: bool) -> None:
    groups: dict[bytes | None, list[dict[str, Any]]] = {}
    for row in FACTS:
        groups.setdefault(row["key"], []).append(row)
    expected = [
        {"key": one, "rows": len(rows), "ids": sum(row["id"] for row in rows), "tag": max(row["tag"] for row in rows)}
        for one, rows in groups.items()
    ]
    with small_environment(tmp_path, force_spill) as env:
        read = env.read_parquet(paths[0])
        grouped = read.group_by("key").agg(rows=count(), ids=sum_(col("id")), tag=max_(col("tag")))
        assert unordered(grouped.to_arrow().to_pylist()) == unordered(expected)
        assert grouped.sort("key").to_arrow().to_pylist() == sorted(
            expected, key=lambda row: (row["key"] is not None, row["key"])
        )
        assert unordered(read.select("key").distinct().to_arrow().to_pylist()) == unordered(
            [{"key": one} for one in groups]
        )
        numbers = read.group_by().agg(n=count_distinct(col("key")), f=count(col("key"))).to_arrow().to_pylist()
        assert numbers == [{"n": 59, "f": sum(row["key"] is not None for row in FACTS)}]
        by_tag = read.group_by("tag").agg(n=count_distinct(col("key")), f=first(col("tag"))).to_arrow().to_pylist()
        for found in by_tag:
            assert found["n"] == len({row["key"] for row in FACTS if row["tag"] == found["tag"]} - {None})


@pytest.mark.parametrize("mode", ["PIPELINED", "BATCH"])
def test_their_values_are_written_once_for_all_operators(paths: tuple[str, str], tmp_path: Path, mode: str) -> None:
    size = sum(len(one) for one in {row["key"] for row in FACTS} - {None} if len(one) >= 100)
    with small_environment(tmp_path, False, mode) as env:
        read = env.read_parquet(paths[0])
        found = read.join(read.select("key").distinct(), on="key", hint=JoinHint.REPARTITION_HASH_SECOND)
        found.group_by("key").agg(rows=count()).sort("key").write_parquet(str(tmp_path / "out"))
        result = env.execute()
    # Two tasks that meet the same value at the same time may each write it.
    assert size <= sum(vertex.spilled_bytes for vertex in result.vertices) < 2 * size + ROWS * 300
    assert len(pq.read_table(tmp_path / "out")) == 59


def joined(how: str) -> list[dict[str, Any]]:
    """Join FACTS and OTHERS by key: the oracle."""
    matches: dict[bytes, list[dict[str, Any]]] = {}
    for other in OTHERS:
        if other["key"] is not None:
            matches.setdefault(other["key"], []).append(other)
    if how == "semi":
        return [row for row in FACTS if row["key"] in matches]
    if how == "anti":
        return [row for row in FACTS if row["key"] not in matches]
    pairs = [{**row, "other": other["other"]} for row in FACTS for other in matches.get(row["key"], [])]
    if how in ("left", "full"):
        pairs += [{**row, "other": None} for row in FACTS if row["key"] not in matches]
    if how in ("right", "full"):
        keys = {row["key"] for row in FACTS} - {None}
        pairs += [{"id": None, "tag": None, **other} for other in OTHERS if other["key"] not in keys]
    return pairs


@pytest.mark.quick
@pytest.mark.sample("pairs")
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize(
    "hint",
    [
        JoinHint.REPARTITION_HASH_FIRST,
        JoinHint.REPARTITION_HASH_SECOND,
        JoinHint.REPARTITION_SORT_MERGE,
        JoinHint.BROADCAST_HASH_SECOND,
    ],
)
def test_joins_by_them(paths: tuple[str, str], tmp_path: Path, how: str, hint: JoinHint, force_spill: bool) -> None:
    if hint is JoinHint.BROADCAST_HASH_SECOND and how in ("right", "full"):
        hint = JoinHint.REPARTITION_HASH_SECOND
    with small_environment(tmp_path, force_spill) as env:
        left, right = env.read_parquet(paths[0]), env.read_parquet(paths[1])
        found = left.join(right, on="key", how=how, hint=hint).to_arrow().to_pylist()
    assert unordered(found) == unordered(joined(how))


def test_functions_over_groups_of_them(paths: tuple[str, str], tmp_path: Path) -> None:
    schema = pa.schema([("rows", pa.int64()), ("last", pa.int64())])
    expected: dict[bytes | None, list[int]] = {}
    for row in FACTS:
        expected.setdefault(row["key"], []).append(row["id"])
    with small_environment(tmp_path, True) as env:
        read, others = env.read_parquet(paths[0]), env.read_parquet(paths[1])
        found = read.group_by("key").reduce(lambda rows: [max((row.id, 1) for row in rows)[::-1]], schema).collect()
        assert sorted(row["last"] for row in found) == sorted(max(ids) for ids in expected.values())
        counted = read.co_group(others, "key", lambda left, right: [(len([*left]), len([*right]))], schema).collect()
    sizes = Counter(row["key"] for row in OTHERS)
    assert Counter((row["rows"], row["last"]) for row in counted) == Counter(
        (len(expected.get(one, [])), sizes[one]) for one in {*expected, *sizes}
    )
