"""Which row groups are looked at first, and which are not read, for the first rows of an order."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.graph.sort_key import SortKey
from engine.parquet import top_groups
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


@pytest.mark.parametrize("kept_bytes", [top_groups._SEEN_BYTES_MAX, 0])
@pytest.mark.parametrize("nulls", [0, 5])
def test_of_keys_in_any_order_those_that_were_looked_at_say_where_the_first_rows_are(
    tmp_path, monkeypatch, nulls, kept_bytes
):
    """Of three columns of eight bytes one is the key: a third of what is read is looked at."""
    monkeypatch.setattr(top_groups, "_SEEN_BYTES_MAX", kept_bytes)
    rows = 100 * GROUPS
    keys = random.Random(3).sample(range(10 * rows), rows)
    for place in range(nulls):
        keys[place * 7] = None
    pq.write_table(
        pa.table({"k": pa.array(keys, pa.int64()), "a": range(rows), "b": pa.array(range(rows), pa.float64())}),
        tmp_path / "rows.parquet",
        row_group_size=100,
        use_dictionary=False,
        compression="none",
    )
    spec, _, _ = parquet_source(tmp_path / "rows.parquet")
    reader = ParquetReader(spec, spec.splits)
    reader.keep_first(TopTest(SortKey("k", nulls_last=True), 3))
    found = pa.Table.from_batches(list(reader))
    best = sorted((key, place) for place, key in enumerate(keys) if key is not None)[:3]
    assert found["a"].to_pylist() == sorted(place for _, place in best)
    assert found["b"].to_pylist() == [float(place) for place in sorted(place for _, place in best)]
    if kept_bytes:
        assert reader.pruned_groups == GROUPS - len({place // 100 for _, place in best})
    reader.close()
