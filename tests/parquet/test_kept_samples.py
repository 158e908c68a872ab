"""Columns that were sampled are not read again, while there is room and the file stays as it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.graph.source_spec import SourceSplit
from engine.parquet.kept_samples import KeptSamples

GROUP = SourceSplit("a.parquet", 0, 1, 800)


class Reader:
    def __init__(self) -> None:
        self.asked: list[tuple[int, list[str]]] = []

    def __call__(self, group: SourceSplit, count: int, columns: list[str]) -> pa.Table:
        self.asked.append((group.start, columns))
        return pa.table({name: pa.array([ord(name[0])] * count, pa.int64()) for name in columns})


def test_only_columns_that_are_not_kept_are_read() -> None:
    reader = Reader()
    kept = KeptSamples()
    assert kept.rows(GROUP, 1, 3, ["a", "b"], reader).to_pydict() == {"a": [97] * 3, "b": [98] * 3}
    assert kept.rows(GROUP, 1, 3, ["c", "b"], reader).to_pydict() == {"c": [99] * 3, "b": [98] * 3}
    assert kept.rows(GROUP, 1, 3, ["b", "a"], reader).column_names == ["b", "a"]
    assert reader.asked == [(0, ["a", "b"]), (0, ["c"])]


@pytest.mark.parametrize(("stamp_ns", "count"), [(2, 3), (1, 4)])
def test_a_file_that_changed_and_other_rows_are_read(stamp_ns: int, count: int) -> None:
    reader = Reader()
    kept = KeptSamples()
    kept.rows(GROUP, 1, 3, ["a"], reader)
    assert kept.rows(GROUP, stamp_ns, count, ["a"], reader).num_rows == count
    assert len(reader.asked) == 2


def test_what_was_used_least_recently_goes_and_wide_columns_are_not_kept() -> None:
    reader = Reader()
    kept = KeptSamples(bytes_max=8 * 100 * 2)
    for name in ("a", "b", "a", "c", "a", "b"):
        kept.rows(GROUP, 1, 100, [name], reader)
    assert [columns for _, columns in reader.asked] == [["a"], ["b"], ["c"], ["b"]]
    wide = KeptSamples()
    for _ in range(2):
        wide.rows(GROUP, 1, 100_000, ["w"], reader)
    assert [columns for _, columns in reader.asked[4:]] == [["w"], ["w"]]
