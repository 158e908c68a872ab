"""Ranges of rows against sets of rows."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.parquet.row_ranges import ALL_ROWS, NO_ROWS, common, of_pages, share_of

PAGES = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=9)


def ranges_of(pages):
    firsts, row = [], 0
    for size, _ in pages:
        firsts.append(row)
        row += size
    return of_pages(firsts, row, [is_possible for _, is_possible in pages]), row


def rows_of(ranges):
    return {row for start, end in ranges for row in range(start, end)}


@given(PAGES, PAGES, st.integers(0, 80), st.integers(1, 40))
def test_ranges_are_sets_of_rows(pages, others, start, count):
    (ranges, rows), (other, _) = ranges_of(pages), ranges_of(others)
    kept = [is_possible for size, is_possible in pages for _ in range(size)]
    assert rows_of(ranges) == {row for row in range(rows) if kept[row]}
    both = common(ranges, other)
    assert rows_of(both) == rows_of(ranges) & rows_of(other)
    wanted = [row in rows_of(ranges) for row in range(start, start + count)]
    share = share_of(ranges, start, count)
    if isinstance(share, pa.Array):
        assert share.to_pylist() == wanted
        assert any(wanted) and not all(wanted)
    else:
        assert share is (ALL_ROWS if all(wanted) else NO_ROWS)
        assert share or not any(wanted)
