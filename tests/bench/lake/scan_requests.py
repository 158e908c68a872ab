"""Requests and bytes of a scan of 3 of 16 columns with 5 % of the row groups left, beside what is needed at least.

Needed at least is one request for the footer, and one for each run of pages with wanted rows that lie side by side;
needed bytes are the footer and these pages. What makes the plan counts. The file has a key that rises, and indexes of
pages; the first range is of whole row groups, the second one of a part of a row group.
"""

from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.lake.measured import measured
from tests.bench.lake.row import Figure
from tests.bench.lake.store_server import served

DEFAULT_ROWS = 4_000_000
GROUPS = 100
COLUMNS = 16
_WANTED = ("key", "c03", "c09")
_SCAN = """
from engine import Environment, col
with Environment(arguments["settings"]) as env:
    begin()
    data = env.read_parquet(arguments["path"]).filter(col("key").between(*arguments["range"]))
    rows = data.select("key", "c03", "c09")
    end(rows=rows.to_arrow().num_rows)
"""


def prepared(rows: int, folder: Path) -> Path:
    """Return the folder of the file, which is made where it is missing."""
    made = folder / f"lake-scan-{rows}"
    if not (made / "wide.parquet").exists():
        made.mkdir(parents=True, exist_ok=True)
        rnd = numpy.random.default_rng(1)
        schema = pa.schema([("key", pa.int64()), *((f"c{at:02}", pa.float64()) for at in range(COLUMNS - 1))])
        unfinished = made / "wide.unfinished"
        with pq.ParquetWriter(unfinished, schema, write_page_index=True, use_dictionary=False) as writer:
            for first in range(0, rows, rows // GROUPS):
                count = min(rows // GROUPS, rows - first)
                keys = numpy.arange(first, first + count)
                writer.write_table(
                    pa.table([keys, *(rnd.random(count) for _ in range(COLUMNS - 1))], schema=schema),
                    row_group_size=count,
                )
        unfinished.rename(made / "wide.parquet")
    return made


def needed(path: Path, first: int, last: int) -> tuple[int, int]:
    """Return the runs of pages that have some rows, and the bytes of these pages."""
    from engine.parquet.open_file import OpenFile
    from engine.parquet.page_ranges import needed_pages
    from engine.parquet.pages import first_page

    file, start, runs, size = OpenFile(str(path), list(_WANTED)), 0, 0, 0
    for group in range(file.footer.num_row_groups):
        chunks = file.footer.row_group(group)
        begin, end = max(0, first - start), min(chunks.num_rows, last + 1 - start)
        start += chunks.num_rows
        if begin >= end:
            continue
        for name in _WANTED:
            chunk = chunks.column(file.footer.schema.to_arrow_schema().get_field_index(name))
            bounds = first_page(chunk), first_page(chunk) + chunk.total_compressed_size
            pages = needed_pages(bounds, file.indexes.pages(group, name), [(begin, end)], chunks.num_rows)
            runs += len(pages.ranges)
            size += sum(behind - at for at, behind in pages.ranges)
    file.close()
    return runs, size


def figures(rows: int, runs: int, folder: Path) -> list[Figure]:
    """Scan two ranges of the key."""
    made = prepared(rows, folder)
    path, found = made / "wide.parquet", []
    footer = pq.read_metadata(path).serialized_size
    group_rows = rows // GROUPS
    ranges = {
        "5 % of row groups": (40 * group_rows, 45 * group_rows - 1, 1.2),
        "a part of one row group": (40 * group_rows + group_rows // 3, 40 * group_rows + group_rows // 2, None),
    }
    with served(made) as store:
        for what, (first, last, must) in ranges.items():
            store.counts()
            program = {"settings": store.settings, "path": "s3://bucket/wide.parquet", "range": [first, last]}
            counted = measured(_SCAN, **program)
            assert counted["rows"] == last + 1 - first, counted
            requests, size = store.counts()
            page_runs, page_bytes = needed(path, first, last)
            about = f"{requests} requests for {1 + page_runs}, {size:,} bytes for {page_bytes + footer:,}"
            found += [
                Figure(f"requests of a scan, {what}", requests / (1 + page_runs), must, 1.0, about),
                Figure(f"bytes of a scan, {what}", size / (page_bytes + footer), 1.1, 1.0, ""),
            ]
    return found
