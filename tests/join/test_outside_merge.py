"""A sort-merge join by keys that lie outside of their rows: compared there, read for pairs that are given out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.errors import CorruptBlockError, SchemaError
from engine.graph.said_operators import JoinType
from engine.iomanager.value_store import ValueStore
from engine.memory.value_stores import BLOCK_BYTES
from engine.records.outside_values import set_outside_bytes
from tests.join.join_oracle import merge_join, pair_condition, rows_of
from tests.join.test_sort_merge_join import KEYED, assert_like_oracle, merge, merge_memory, row_batches, sorted_table

#: what most keys have in common, and what a few have
BEGINNING, LONG_BEGINNING = b"begin" * 30, b"b" * BLOCK_BYTES


@pytest.fixture(autouse=True)
def outside_from_100_bytes() -> Iterator[None]:
    set_outside_bytes(100)
    yield
    set_outside_bytes()


def key(index: int) -> bytes | None:
    """Return one of 24 keys: null, short, alike to the last byte, one the beginning of another, alike for long."""
    chosen = index * 7 % 24
    if chosen == 0:
        return None
    if chosen < 4:
        return b"k" * (62 + chosen)
    if chosen < 20:
        return BEGINNING + bytes([chosen // 2]) * (1 + chosen % 2)
    return LONG_BEGINNING + bytes([chosen])


def side(rows: int, step: int) -> pa.Table:
    keys = [key(index * step) for index in range(rows)]
    return pa.table({"n": pa.array(range(rows), pa.int32()), "key": pa.array(keys, pa.binary())})


def even_sum(left: pa.Table, right: pa.Table) -> dict[str, object]:
    predicate = lambda pairs: pc.equal(pc.bit_wise_and(pc.add(pairs["a"], pairs["b"]), 1), 0)  # noqa: E731
    condition = pair_condition(left, right, [(0, 0), (1, 0)], predicate)
    return {"condition": condition, "confirm": lambda one, other: (one[0] + other[0]) % 2 == 0}


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("has_condition", [False, True])
@pytest.mark.parametrize("force_spill", [False, True])
@pytest.mark.parametrize(("batch_rows", "group_rows"), [(1, 0), (5, 2), (8192, 0)])
def test_keys_outside_join_like_the_oracle(
    tmp_path: Path, how: JoinType, has_condition: bool, force_spill: bool, batch_rows: int, group_rows: int
) -> None:
    left, right = side(60, 1), side(45, 5)
    options = even_sum(left, right) if has_condition else {}
    assert_like_oracle(
        tmp_path, how, left, right, [1], [1], batch_rows=batch_rows, group_rows=group_rows, force_spill=force_spill,
        files_left=1, **options,
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("how", KEYED)
@pytest.mark.parametrize("group_rows", [0, 3])
def test_one_key_outside_on_both_sides_in_little_memory(tmp_path: Path, how: JoinType, group_rows: int) -> None:
    left = pa.table({"n": pa.array(range(30), pa.int32()), "key": [LONG_BEGINNING] * 20 + [LONG_BEGINNING + b"z"] * 10})
    right = pa.table({"n": pa.array(range(25), pa.int32()), "key": [LONG_BEGINNING] * 25})
    _, join = assert_like_oracle(
        tmp_path,
        how,
        left,
        right,
        [1],
        [1],
        pages=6,
        batch_rows=4,
        group_bytes=1000,
        group_rows=group_rows,
        files_left=1,
    )
    assert (join.spilled_groups == 1) == (how not in (JoinType.SEMI, JoinType.ANTI))


def test_several_keys_some_of_them_outside(tmp_path: Path) -> None:
    left, right = side(50, 1), side(40, 5)
    left = left.append_column("part", pa.array([index % 3 for index in range(50)], pa.int64()))
    right = right.append_column("part", pa.array([index % 2 for index in range(40)], pa.int64()))
    for keys in ([1, 2], [2, 1]):
        assert_like_oracle(tmp_path, JoinType.FULL, left, right, keys, keys, batch_rows=7, files_left=1)


def test_values_are_read_for_pairs_that_are_given_out_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = ValueStore.read_value

    def counting(self: ValueStore, file: int, offset: int, checksum: int, into: memoryview) -> None:
        read.append(len(into))
        whole(self, file, offset, checksum, into)

    monkeypatch.setattr(ValueStore, "read_value", counting)
    left, right = side(60, 1), side(45, 5)
    batches, _ = merge(tmp_path, JoinType.FULL, left, right, [1], [1], output=[(0, 0), (1, 0)], files_left=1)
    assert sum(rows_of(batches).values()) > 60
    assert read == []
    batches, _ = merge(tmp_path, JoinType.INNER, left, right, [1], [1], output=[(0, 1)], files_left=1)
    wide = [row for row in rows_of(batches).elements() if len(row[0]) >= 100]
    assert len(read) == len(wide) > 0


def test_pairs_with_values_outside_come_in_batches_of_bounded_size(tmp_path: Path) -> None:
    keys = [bytes([index]) * 700_000 for index in range(4)]
    left = pa.table({"key": keys, "n": range(4)})
    right = pa.table({"key": keys * 2, "m": range(8)})
    batches, _ = merge(tmp_path, JoinType.FULL, left, right, [0], [0], pages=6, files_left=1)
    assert [batch.num_rows for batch in batches] == [1] * 8
    batches, _ = merge(tmp_path, JoinType.INNER, left, right, [0], [0], output=[(0, 1), (1, 1)], files_left=1)
    assert sum(batch.num_rows for batch in batches) == 8


def test_a_damaged_key_is_an_error_and_no_wrong_result(tmp_path: Path) -> None:
    left, right = (
        pa.table(
            {"n": pa.array(range(9), pa.int32()), "key": [BEGINNING + bytes([2 * index + odd]) for index in range(9)]}
        )
        for odd in (0, 1)
    )
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    with merge_memory(tmp_path, 64, 4096) as (one, other, space):
        join = merge_join(JoinType.INNER, left.schema, right.schema, [1], [1], [(0, 0), (1, 0)], schema, space, 1 << 20)
        with sorted_table(one, space, left, [1]) as lefts, sorted_table(other, space, right, [1]) as rights:
            damaged = 0
            for path in tmp_path.rglob("*.spill"):
                content = bytearray(path.read_bytes())
                for position in range(0, len(content), 50):
                    content[position] ^= 1
                path.write_bytes(content)
                damaged += 1
            assert damaged
            with pytest.raises(CorruptBlockError, match="damaged"):
                list(join.join(lefts.row_batches(), rights.row_batches()))
        join.close()


def test_rows_of_other_types_are_refused(tmp_path: Path) -> None:
    left, right = side(3, 1), pa.table({"n": ["a"], "key": [b"b"]})
    schema = pa.schema([("a", pa.int32())])
    with merge_memory(tmp_path, 8, 4096) as (_, _, space):
        join = merge_join(JoinType.SEMI, left.schema, left.schema, [1], [1], [(0, 0)], schema, space, 1 << 20)
        with pytest.raises(SchemaError, match="cannot be merged as rows of"):
            list(join.join(row_batches(left), row_batches(right)))
        join.close()
