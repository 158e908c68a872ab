"""Bytes and rows as people read them."""

import pytest

from engine.shown_sizes import rows_text, size_text
from engine.statistics.estimates import UNKNOWN


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *[(0, "0 B"), (5, "5 B"), (999, "999 B"), (1000, "1 KB"), (38_123, "38.1 KB"), (99_449, "99.4 KB")],
        *[(99_500, "100 KB"), (100_200, "100 KB"), (999_499, "999 KB"), (999_500, "1 MB"), (1.4e9, "1.4 GB")],
        *[(1e12, "1 TB"), (2e15, "2 PB"), (5e18, "5000 PB"), (UNKNOWN, "unknown")],
    ],
)
def test_sizes_read_well(size, text):
    assert size_text(size) == text


def test_rows_read_well():
    assert rows_text(14_000_000) == "14 000 000"
