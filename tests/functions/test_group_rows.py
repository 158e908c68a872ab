"""Groups cut out of batches of any size, read as far as somebody likes, against lists."""

import itertools
import random
from pathlib import Path

import pyarrow as pa
import pytest

from engine.errors import DiskFullError, SpillError
from engine.functions import group_rows
from engine.functions.group_rows import (
    GROUP_START,
    LEFT,
    NEW_KEY,
    NEW_SIDE,
    RIGHT,
    SIDE,
    GroupedRows,
    PairedGroups,
    View,
)


def cut(batch, chance):
    """Yield a batch in pieces, empty ones too."""
    position = 0
    while position < batch.num_rows:
        size = chance.randrange(10)
        yield batch.slice(position, size)
        position += size


def taken(rows, count):
    return list(map(tuple, itertools.islice(rows, count)))


@pytest.mark.parametrize("seed", range(60))
def test_groups_are_cut_where_they_begin_and_what_is_not_read_is_skipped(seed):
    chance = random.Random(seed)
    keys = sorted(chance.choices(range(6), k=chance.randrange(40)))
    marks = [NEW_KEY if n == 0 or keys[n - 1] != key else 0 for n, key in enumerate(keys)]
    columns = [pa.array(keys, pa.int64()), pa.array(range(len(keys)), pa.int64()), pa.array(marks, pa.int8())]
    batch = pa.record_batch(columns, names=["k", "v", GROUP_START])
    groups = GroupedRows(cut(batch, chance), [View(("key", "value"), (0, 1))], (GROUP_START,))
    seen, old = [], iter(())
    while groups.next_group():
        assert taken(old, 1) == []
        count = chance.choice([0, 1, 3, 100])
        old = groups.rows(0, groups.number)
        seen.append((count, taken(old, count)))
    rows = list(zip(keys, range(len(keys)), strict=True))
    expected = [[row for row in rows if row[0] == key] for key in sorted(set(keys))]
    assert [part for _, part in seen] == [group[:count] for (count, _), group in zip(seen, expected, strict=True)]


def read_in_order(left, right):
    return taken(left, 100), taken(right, 100)


def read_right_first(left, right):
    rights = taken(right, 100)
    return taken(left, 100), rights


def read_left_after_a_look(left, right):
    first = taken(left, 1)
    rights = taken(right, 100)
    return first + taken(left, 100), rights


def read_one_of_each(left, right):
    first = taken(right, 1) + taken(left, 0)
    rights = first + taken(right, 100)
    return taken(left, 100), rights


@pytest.mark.parametrize("kept_bytes", [0, 200, 8 << 20])
@pytest.mark.parametrize("read", [read_in_order, read_right_first, read_left_after_a_look, read_one_of_each])
def test_pairs_of_groups_may_be_read_in_any_order(read, kept_bytes, monkeypatch):
    monkeypatch.setattr(group_rows, "KEPT_BYTES_MAX", kept_bytes)
    for seed in range(40):
        chance = random.Random(seed)
        rows = sorted((chance.randrange(6), chance.randrange(2)) for _ in range(chance.randrange(60)))
        marks = [
            NEW_KEY if n == 0 or rows[n - 1][0] != key else NEW_SIDE if rows[n - 1][1] != side else 0
            for n, (key, side) in enumerate(rows)
        ]
        sides = [side for _, side in rows]
        numbers = [[n if side == one else None for n, side in enumerate(sides)] for one in (LEFT, RIGHT)]
        columns = [
            pa.array([key for key, _ in rows], pa.int64()),
            *(pa.array(column, pa.int64()) for column in numbers),
            pa.array(sides, pa.int8()),
            pa.array(marks, pa.int8()),
        ]
        batch = pa.record_batch(columns, names=["k", "l", "r", SIDE, GROUP_START])
        views = (View(("k", "v"), (0, 1)), View(("k", "v"), (0, 2)))
        pairs = PairedGroups(cut(batch, chance), views)
        old = []
        for key in sorted({key for key, _ in rows}):
            assert pairs.next_group()
            assert all(taken(iterator, 1) == [] for iterator in old)
            left, right = old = pairs.rows(LEFT), pairs.rows(RIGHT)
            if chance.random() < 0.3:
                continue
            expected = [[(key, n) for n, row in enumerate(rows) if row == (key, side)] for side in (LEFT, RIGHT)]
            assert list(read(left, right)) == expected
        assert not pairs.next_group()
        pairs.close()


@pytest.mark.parametrize("row_count", [1, 20_000])  # one row is written when it is read again
def test_a_disk_that_is_full_is_an_error_of_the_disk(row_count, monkeypatch):
    monkeypatch.setattr(group_rows, "KEPT_BYTES_MAX", 0)
    monkeypatch.setattr(group_rows.tempfile, "TemporaryFile", lambda **_: Path("/dev/full").open("wb"))  # noqa: SIM115
    kept = group_rows.KeptBatches(None, None)
    with pytest.raises(DiskFullError, match=r"cannot be kept in /.*: No space left on device; free some space"):
        kept.add(pa.record_batch({"n": range(row_count)}))
        list(kept.read())
    kept.close()


def test_a_folder_that_cannot_be_written_is_an_error_of_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(group_rows, "KEPT_BYTES_MAX", 0)
    (tmp_path / "file").touch()
    with pytest.raises(SpillError, match=r"Not a directory; check the directories of io.tmp.dirs"):
        group_rows.KeptBatches(str(tmp_path / "file" / "folder"), None).add(pa.record_batch({"n": [1]}))
