"""Pages of a column that some rows need, as ranges of its file; headers that stand for the pages between them.

    wanted = needed_pages(chunk_range, places, rows, row_count) ─► NeededPages(ranges, headers)

    pages      dictionary │ page 0 │ page 1 │ page 2 │ page 3        rows of page 2 are wanted
    fetched    ██████████            ......   ██████   ......
    headers               25 bytes ─────────►          25 bytes ──►  so many values, so many bytes, to be passed over

A reader goes from header to header, and opens no page of which it wants no row. A header of our own in place of pages
that were not fetched leads it to the next one that was; it says that the page has no bytes before compression.

Limits: flat columns, whose values are their rows.
Source: parquet-format, "Page Index", PageHeader; in Thrift's compact protocol.
Held by: tests/parquet/test_page_ranges.py
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.parquet.page_index import PagePlaces
from engine.parquet.row_ranges import Ranges

#: bytes of a header that stands for pages
HEADER_BYTES: Final = 25
#: fields of a page header: kind and size, both 0; its bytes; of a data page its values, three encodings; two ends
_KIND_AND_SIZE: Final = b"\x15\x00\x15\x00\x15"
_DATA_PAGE: Final = b"\x2c\x15"
_ENCODINGS_AND_ENDS: Final = b"\x15\x00\x15\x06\x15\x06\x00\x00"


class NeededPages(NamedTuple):
    """The ranges (begin, end) of a column that are fetched, and headers by their place."""

    ranges: list[tuple[int, int]]
    headers: list[tuple[int, bytes]]


def needed_pages(chunk: tuple[int, int], places: PagePlaces, rows: Ranges, row_count: int) -> NeededPages | None:
    """Return the pages of a column that have some rows of its row group; None: the pages do not make up the column.

    Args:
        chunk: where the column begins and ends in the file.
        places: its offset index.
        rows: those that are wanted.
        row_count: of the row group.
    """
    begin, end = chunk
    starts, ends = places.positions, [one + size for one, size in zip(places.positions, places.sizes, strict=True)]
    if not starts or begin > starts[0] or ends != [*starts[1:], end] or min(places.sizes) <= 0:
        return None
    ranges: list[tuple[int, int]] = [(begin, starts[0])] if begin < starts[0] else []
    headers: list[tuple[int, bytes]] = []
    passed: tuple[int, int] | None = None  # where pages begin that are passed over, and their first row
    at = 0
    for index, (start, first) in enumerate(zip(starts, places.first_rows, strict=True)):
        behind = places.first_rows[index + 1] if index + 1 < len(starts) else row_count
        while at < len(rows) and rows[at][1] <= first:
            at += 1
        is_wanted = at < len(rows) and rows[at][0] < behind
        if not is_wanted and (passed is not None or ends[index] - start >= HEADER_BYTES):
            passed = (start, first) if passed is None else passed
            continue
        if passed is not None:
            headers.append((passed[0], _header(start - passed[0], first - passed[1])))
            passed = None
        if ranges and ranges[-1][1] == start:
            ranges[-1] = ranges[-1][0], ends[index]
        else:
            ranges.append((start, ends[index]))
    if passed is not None:
        headers.append((passed[0], _header(end - passed[0], row_count - passed[1])))
    return NeededPages(ranges, headers)


def _header(size_bytes: int, values: int) -> bytes:
    """Return the header of pages of so many bytes, its own included."""
    return b"".join(
        (_KIND_AND_SIZE, _number(size_bytes - HEADER_BYTES), _DATA_PAGE, _number(values), _ENCODINGS_AND_ENDS)
    )


def _number(value: int) -> bytes:
    """Return a number as five bytes."""
    zigzag = 2 * value
    return bytes((zigzag >> 7 * index & 0x7F) | (0x80 if index < 4 else 0) for index in range(5))
