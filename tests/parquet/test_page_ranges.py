"""Pages that are left out of a file are passed over, and rows of the others are what they were."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.parquet.open_file import OpenFile
from engine.parquet.page_index import PagePlaces
from engine.parquet.page_ranges import HEADER_BYTES, needed_pages
from engine.parquet.pages import chunk_range, first_page
from engine.parquet.row_ranges import share_of

ROWS = 5000
TABLE = pa.table(
    {
        "n": pa.array([row if row % 9 else None for row in range(ROWS)]),
        "s": [f"text {row % 90}" for row in range(ROWS)],
        "w": [f"{row * 7919 % ROWS:012}" for row in range(ROWS)],
        "b": [row % 3 == 0 for row in range(ROWS)],
    }
)


@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False, "compression": "none"}, {"data_page_version": "2.0"}]
)
def test_rows_come_out_of_a_file_that_has_their_pages_alone(tmp_path, options):
    rnd, path = random.Random(4), tmp_path / "whole.parquet"
    pq.write_table(TABLE, path, data_page_size=512, write_batch_size=64, write_page_index=True, **options)
    whole, content = OpenFile(str(path), TABLE.column_names), path.read_bytes()
    chunks, left_out = whole.footer.row_group(0), 0
    for _ in range(8):
        bounds = sorted(rnd.sample(range(ROWS), 6))
        rows = list(zip(bounds[::2], bounds[1::2], strict=True))
        part = bytearray(len(content))
        part[-chunks.num_columns * 4096 :] = content[-chunks.num_columns * 4096 :]
        for leaf, name in enumerate(TABLE.column_names):
            begin, end = chunk_range(chunks.column(leaf))
            begin, end = first_page(chunks.column(leaf)), begin + chunks.column(leaf).total_compressed_size
            part[begin:end] = bytes(end - begin)
            needed = needed_pages((begin, end), whole.indexes.pages(0, name), rows, ROWS)
            for at, header in needed.headers:
                part[at : at + len(header)] = header
            for at, behind in needed.ranges:
                part[at:behind] = content[at:behind]
            left_out += end - begin - sum(behind - at for at, behind in needed.ranges)
        (tmp_path / "part.parquet").write_bytes(part)
        file = OpenFile(str(tmp_path / "part.parquet"), TABLE.column_names)
        mask = share_of(rows, 0, ROWS)
        found = file.columns(0, TABLE.column_names, ROWS).read(mask)
        assert found.to_pylist() == TABLE.filter(mask).to_pylist()
        file.close()
    assert left_out > len(content)
    whole.close()


def test_pages_that_are_too_short_for_a_header_are_fetched():
    places = PagePlaces([10, 10 + HEADER_BYTES - 1, 60, 100], [HEADER_BYTES - 1, 27 - 1, 40, 30], [0, 5, 10, 20])
    needed = needed_pages((4, 130), places, [(12, 13)], 30)
    assert needed.ranges == [(4, 34), (60, 100)]
    assert [(at, len(header)) for at, header in needed.headers] == [(34, HEADER_BYTES), (100, HEADER_BYTES)]


@pytest.mark.parametrize(
    "places",
    [
        PagePlaces([], [], []),
        PagePlaces([4, 50], [40, 50], [0, 5]),
        PagePlaces([4, 50], [46, 40], [0, 5]),
        PagePlaces([3, 50], [47, 50], [0, 5]),
        PagePlaces([4, 4, 50], [0, 46, 50], [0, 2, 5]),
    ],
    ids=["none", "a gap", "too short", "before the column", "an empty page"],
)
def test_pages_that_do_not_make_up_the_column_are_not_used(places):
    assert needed_pages((4, 100), places, [(0, 1)], 10) is None
