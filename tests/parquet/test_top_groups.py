"""Which row groups are looked at first, and which are not read, for the first rows of an order."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.graph.sort_key import SortKey
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from engine.parquet.top_groups import TopGroups
from engine.records.top_keys import TopTest

GROUPS = 8


def written(folder, columns):
    rows = 100 * GROUPS
    pq.write_table(
        pa.table({"k": range(rows), **{f"c{index}": [index] * rows for index in range(columns)}}),
        folder / "wide.parquet",
        row_group_size=100,
        use_dictionary=False,
    )
    return folder / "wide.parquet"


@pytest.mark.parametrize(("columns", "looked_at"), [(20, [7, 6, 5, 4, 3, 2, 1, 0]), (1, [7])])
def test_the_best_groups_are_looked_at_first(tmp_path, columns, looked_at):
    footer = pq.ParquetFile(written(tmp_path, columns)).metadata
    test = TopTest(SortKey("k", descending=True), 10)
    groups = TopGroups(test, footer, range(GROUPS), pa.schema([("k", pa.int64())]))
    names = footer.schema.names
    assert groups.to_look_at(names, ["k"]) == looked_at


@pytest.mark.parametrize("columns", [20, 1])
@pytest.mark.parametrize("descending", [False, True])
def test_row_groups_without_wanted_rows_are_not_read(tmp_path, columns, descending):
    spec, _, _ = parquet_source(written(tmp_path, columns))
    reader = ParquetReader(spec, spec.splits)
    test = TopTest(SortKey("k", descending), 10)
    reader.keep_first(test)
    found = pa.Table.from_batches(list(reader))
    assert reader.pruned_groups == GROUPS - 1
    assert test.rows_dropped == 90
    first = range(100 * GROUPS)[-10:] if descending else range(10)
    assert found["k"].to_pylist() == list(first)
    assert found.schema.names == list(spec.columns)
    reader.close()
