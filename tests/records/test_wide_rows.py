"""How wide the rows of a batch are."""

from engine.records.wide_rows import WIDE_BYTES, width_of


def test_many_narrow_rows_are_no_wide_one():
    assert width_of(WIDE_BYTES, 3) >= WIDE_BYTES
    assert width_of(WIDE_BYTES, 30_000) < 1000
