"""A join in plain Python, and the harness that runs the engine's join beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.graph.said_operators import JoinType
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.join.hash_join import HashJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.join.pair_condition import PairCondition
from engine.join.sort_merge_join import SortMergeJoin
from engine.memory.manager import MemoryManager

UNMATCHED_LEFT = {JoinType.LEFT, JoinType.FULL}
UNMATCHED_RIGHT = {JoinType.RIGHT, JoinType.FULL}
LEFT_ONLY = {JoinType.SEMI, JoinType.ANTI}
ALL_TYPES = list(JoinType)

#: whether a pair of rows (left, right) with equal keys is a match
Confirm = Callable[[tuple, tuple], bool]


def normal_key(values: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the key as it compares in a join, or None when a part is null."""
    if any(value is None for value in values):
        return None
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in values)


def oracle_join(
    how: JoinType,
    left: list[tuple],
    right: list[tuple],
    left_keys: Sequence[int],
    right_keys: Sequence[int],
    widths: tuple[int, int],
    confirm: Confirm = lambda left_row, right_row: True,
) -> Counter:
    """Return the rows of the join (left columns, then right columns unless semi or anti) with their counts."""
    by_key: dict[tuple, list[int]] = {}
    for index, row in enumerate(right):
        key = normal_key([row[column] for column in right_keys])
        if key is not None:
            by_key.setdefault(key, []).append(index)

    def matches_of(row: tuple) -> list[int]:
        key = normal_key([row[column] for column in left_keys])
        candidates = by_key.get(key, []) if key is not None else []
        return [index for index in candidates if confirm(row, right[index])]

    return joined_rows(how, left, right, widths, matches_of)


def joined_rows(
    how: JoinType,
    left: list[tuple],
    right: list[tuple],
    widths: tuple[int, int],
    matches_of: Callable[[tuple], list[int]],
) -> Counter:
    """Return the rows of a join with their counts; ``matches_of``: which right rows a left row meets."""
    rows: Counter = Counter()
    met: set[int] = set()
    for row in left:
        matches = matches_of(row)
        met.update(matches)
        if how in LEFT_ONLY:
            rows[row] += bool(matches) == (how is JoinType.SEMI)
            continue
        for index in matches:
            rows[(*row, *right[index])] += 1
        if not matches and how in UNMATCHED_LEFT:
            rows[(*row, *[None] * widths[1])] += 1
    if how in UNMATCHED_RIGHT:
        for index, row in enumerate(right):
            if index not in met:
                rows[(*[None] * widths[0], *row)] += 1
    return +rows


def oracle_not_in(left: list[tuple], right: list[tuple], left_key: int, right_key: int) -> Counter:
    """Return the left rows whose key is NOT IN the right keys, as SQL means it."""
    keys = [row[right_key] for row in right]
    if None in keys:
        return Counter()
    return Counter(row for row in left if not keys or (row[left_key] is not None and row[left_key] not in set(keys)))


def rows_of(batches: Sequence[pa.RecordBatch]) -> Counter:
    """Count the rows of batches."""
    rows: Counter = Counter()
    for batch in batches:
        rows.update(zip(*[column.to_pylist() for column in batch.columns], strict=True))
    return rows


@dataclass
class JoinRun:
    """What a join returned and counted."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    pages_peak: int = 0
    raw_bytes: int = 0


@contextmanager
def join_memory(folder: Path, pages: int, page_size: int) -> Iterator[tuple[Any, Any]]:
    """Give a pool and a spill space; afterwards every page is back and every file gone."""
    with MemoryManager(pages * page_size, page_size) as memory:
        with IOManager([str(folder)]) as io:
            space = io.space(SpillIdentity("ab" * 16, 0, 0, 0))
            pool = memory.pool("join", pages)
            yield pool, space
            assert pool.pages_used == 0, "pages are out"
            pool.close()
            space.close()
        assert memory.leak_report() == []


COUNTERS = ("build_rows", "probe_rows", "partitions_spilled", "repartition_count", "block_wise_count",
            "block_pass_count", "level_max", "spilled_bytes", "reversed_count", "probe_rows_spilled",
            "probe_rows_filtered")  # fmt: skip


def run_join(
    folder: Path,
    how: JoinType,
    left: pa.Table,
    right: pa.Table,
    left_keys: Sequence[int],
    right_keys: Sequence[int],
    *,
    build_is_left: bool = False,
    pages: int = 64,
    page_size: int = 4096,
    batch_rows: int = 8192,
    force_spill: bool = False,
    output: Sequence[tuple[int, int]] | None = None,
    add_build: Callable[[HashJoin, pa.RecordBatch], None] = HashJoin.add_build_batch,
    probe_with: Callable[[HashJoin, pa.RecordBatch], Iterable[pa.RecordBatch]] = HashJoin.probe,
    **options: Any,
) -> JoinRun:
    """Run the engine's join over two tables."""
    build, probe = (left, right) if build_is_left else (right, left)
    build_keys, probe_keys = (left_keys, right_keys) if build_is_left else (right_keys, left_keys)
    if output is None:
        output = [(0, index) for index in range(left.num_columns)]
        if how not in LEFT_ONLY:
            output += [(1, index) for index in range(right.num_columns)]
    schema = pa.schema(
        [
            pa.field(f"c{position}", (left, right)[side].schema.field(index).type)
            for position, (side, index) in enumerate(output)
        ]
    )
    run = JoinRun()
    sides = (build.schema, probe.schema, build_keys, probe_keys, build_is_left)
    with join_memory(folder, pages, page_size) as (pool, space):
        options["row_limit"] = 8 if force_spill else None
        join = hash_join(how, *sides, output, schema, pool, space, **options)
        for batch in build.to_batches(max_chunksize=batch_rows):
            add_build(join, batch)
        join.finish_build()
        for batch in probe.to_batches(max_chunksize=batch_rows):
            run.batches.extend(probe_with(join, batch))
        run.batches.extend(join.finish_probe())
        run.counters = {name: getattr(join, name) for name in COUNTERS}
        run.pages_peak = pool.pages_peak
        run.raw_bytes = space.raw_bytes
        assert spill_files(folder) == [], "a finished join leaves no file, even before its space is closed"
        join.close()
    for batch in run.batches:
        batch.validate(full=True)
        assert batch.schema == schema
        assert 0 < batch.num_rows <= 32768
    return run


def hash_join(how: JoinType, build: pa.Schema, probe: pa.Schema, build_keys: Sequence[int], probe_keys: Sequence[int],
              build_is_left: bool, output: Sequence[tuple[int, int]], output_schema: pa.Schema, pool: Any, space: Any,
              **options: Any) -> HashJoin:  # fmt: skip
    """Return a hash join; ``options`` are other fields of its JoinSpec."""
    sides = (JoinInput(build, tuple(build_keys)), JoinInput(probe, tuple(probe_keys)))
    left, right = sides if build_is_left else sides[::-1]
    value_owner = options.pop("value_owner", None)
    spec = JoinSpec(how=how, left=left, right=right, output=tuple(output), output_schema=output_schema,
                    build_is_left=build_is_left, **options)  # fmt: skip
    return HashJoin(spec, pool, space, value_owner)


def merge_join(how: JoinType, left: pa.Schema, right: pa.Schema, left_keys: Sequence[int], right_keys: Sequence[int],
               output: Sequence[tuple[int, int]], output_schema: pa.Schema, space: Any, group_bytes: int,
               **options: Any) -> SortMergeJoin:  # fmt: skip
    """Return a sort-merge join; ``options`` are other fields of its JoinSpec."""
    inputs = {"left": JoinInput(left, tuple(left_keys)), "right": JoinInput(right, tuple(right_keys))}
    spec = JoinSpec(how=how, **inputs, output=tuple(output), output_schema=output_schema, **options)
    return SortMergeJoin(spec, space, group_bytes)


def spill_files(folder: Path) -> list[Path]:
    """List the files with bytes of rows under a spill directory."""
    return sorted(folder.rglob("*.spill"))


def table_rows(table: pa.Table) -> list[tuple]:
    """Return the table's rows as tuples."""
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True)) if table.num_rows else []


def pair_condition(
    left: pa.Table, right: pa.Table, columns: Sequence[tuple[int, int]], predicate: Any
) -> PairCondition:
    """Return a condition over these columns, named a, b, c and so on."""
    fields = [
        (left, right)[side].schema.field(index).with_name("abcdefgh"[n]) for n, (side, index) in enumerate(columns)
    ]
    return PairCondition(tuple(columns), pa.schema(fields), predicate)


def assert_joins_like_oracle(folder: Path, how: JoinType, left: pa.Table, right: pa.Table, left_keys: Sequence[int],
                             right_keys: Sequence[int], *, confirm: Confirm = lambda left_row, right_row: True,
                             **options: Any) -> JoinRun:  # fmt: skip
    """Run both joins and compare rows and counts; ``confirm`` is the oracle's form of the option ``condition``."""
    if how is JoinType.CROSS:
        left_keys, right_keys = [], []
    run = run_join(folder, how, left, right, left_keys, right_keys, **options)
    widths = (left.num_columns, right.num_columns)
    expected = oracle_join(how, table_rows(left), table_rows(right), left_keys, right_keys, widths, confirm)
    actual = rows_of(run.batches)
    assert sum(actual.values()) == sum(expected.values())
    assert actual == expected
    return run
