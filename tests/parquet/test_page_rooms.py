"""Memory of pages that columns leave to the next ones: what is kept, how much of it, and that values are their own."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.open_file import OpenFile
from engine.parquet.page_rooms import kept_rooms, let_rooms_go

KEPT_MAX = 64
KEPT_BYTES = 16 << 20
ROOM_MIN = 64 << 10


def written(path, rows, first=0, columns=1):
    """Write columns of different numbers, a page and no dictionary each."""
    table = pa.table({f"c{place}": pa.array(range(first, first + rows), pa.int64()) for place in range(columns)})
    pq.write_table(table, path, use_dictionary=False, data_page_size=64 << 20, write_page_index=False)
    return str(path), table


def read(path, names):
    file = OpenFile(path, names)
    try:
        return pa.Table.from_batches([file.columns(0, names, file.row_count(0)).read()])
    finally:
        file.close()


def test_a_column_that_has_ended_leaves_its_memory_to_the_next_one(tmp_path):
    path, table = written(tmp_path / "a.parquet", 50_000)
    assert read(path, ["c0"]).equals(table)
    kept = kept_rooms()
    assert any(room >= 150_000 for room in kept), "a page of 20 000 rows"
    assert read(path, ["c0"]).equals(table)
    assert sorted(kept_rooms()) == sorted(kept), "nothing was asked of the system"


def test_small_rooms_and_very_large_ones_are_not_kept(tmp_path):
    small, table = written(tmp_path / "small.parquet", 100)
    large, more = written(tmp_path / "large.parquet", 1_000_000)
    assert read(small, ["c0"]).equals(table)
    assert read(large, ["c0"]).equals(more)
    assert all(ROOM_MIN <= room <= KEPT_BYTES // 8 for room in kept_rooms())


def test_what_is_kept_has_a_limit(tmp_path):
    for rows, columns in ((40_000, 80), (200_000, 20), (10_000, 80)):
        path, table = written(tmp_path / f"{rows}.parquet", rows, columns=columns)
        assert read(path, table.column_names).equals(table)
        assert len(kept_rooms()) <= KEPT_MAX
        assert sum(kept_rooms()) <= KEPT_BYTES


def test_all_are_given_back_where_memory_is_short(tmp_path):
    path, table = written(tmp_path / "a.parquet", 50_000)
    assert read(path, ["c0"]).equals(table)
    assert kept_rooms()
    let_rooms_go()
    assert kept_rooms() == []
    assert read(path, ["c0"]).equals(table)


def test_threads_that_read_at_once_do_not_share_a_room(tmp_path):
    files = [written(tmp_path / f"{place}.parquet", 30_000, 30_000 * place) for place in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            found = list(threads.map(lambda file: read(file[0], ["c0"]), files))
            assert all(table.equals(expected) for table, (_, expected) in zip(found, files, strict=True))
