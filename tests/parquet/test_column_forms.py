"""How columns are written is found for a file and goes for those behind it, as long as nothing speaks against it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.parquet import column_forms
from engine.parquet.column_forms import FILES_MAX, NARROW_WIDTH_MAX, PLAIN_WIDTH_MIN, KnownColumns
from engine.parquet.writer import ParquetWriter

SCHEMA = pa.schema([("kind", pa.string()), ("id", pa.int64())])


def rows(count, kinds=2, wide=""):
    return pa.record_batch([[f"{index % kinds}{wide}" for index in range(count)], list(range(count))], SCHEMA)


@pytest.fixture
def looks(monkeypatch):
    """Return the sizes of batches that were looked at."""
    seen = []
    look = KnownColumns._look
    monkeypatch.setattr(
        KnownColumns, "_look", lambda self, batch, huge: seen.append(batch.num_rows) or look(self, batch, huge)
    )
    return seen


def test_values_that_repeat_get_a_dictionary_and_narrow_ones_statistics():
    forms = KnownColumns(SCHEMA).forms(rows(100), frozenset())
    assert (forms.dictionaries, forms.statistics, forms.values_at_once) == (["kind"], ["kind", "id"], 1024)
    assert (forms.huge, forms.paths) == (frozenset(), ("kind", "id"))
    wide = KnownColumns(SCHEMA).forms(rows(100, wide="x" * NARROW_WIDTH_MAX), frozenset())
    assert (wide.dictionaries, wide.statistics, wide.values_at_once) == (False, ["id"], 255)


def test_what_was_found_goes_for_the_next_files_for_a_while(looks):
    known = KnownColumns(SCHEMA)
    first = known.forms(rows(100), frozenset())
    for _ in range(FILES_MAX - 1):
        assert known.forms(rows(200, kinds=200), frozenset()) is first
    assert looks == [100]
    assert known.forms(rows(200, kinds=200), frozenset()).dictionaries is False
    assert looks == [100, 200]


@pytest.mark.parametrize(
    ("batch", "huge"),
    [
        (rows(300), frozenset()),
        (rows(2, wide="x" * PLAIN_WIDTH_MIN), frozenset()),
        (rows(100), frozenset({"kind"})),
    ],
    ids=["more rows", "wide values", "a file that has some"],
)
def test_more_rows_and_wide_values_are_looked_at(looks, batch, huge):
    known = KnownColumns(SCHEMA)
    known.forms(rows(100), frozenset())
    forms = known.forms(batch, huge)
    assert looks == [100, batch.num_rows]
    assert forms.huge == (frozenset({"kind"}) if huge or batch.num_rows == 2 else frozenset())
    # What goes for huge values goes for no file behind.
    if forms.huge:
        assert known.forms(rows(100), frozenset()).huge == frozenset()


def test_files_of_a_partitioned_output_are_written_alike_without_being_looked_at_each(tmp_path, looks):
    table = pa.table({"k": [index // 50 for index in range(2000)], "kind": ["a", "b"] * 1000, "id": range(2000)})
    with Environment() as env:
        env.from_arrow(table).write_parquet(tmp_path / "out", partition_by="k")
        env.execute()
        assert env.read_parquet(tmp_path / "out").select("k", "kind", "id").sort("id").to_arrow().equals(table)
    assert 1 <= len(looks) <= 2
    for path in (tmp_path / "out").rglob("*.parquet"):
        kind, number = (pq.read_metadata(path).row_group(0).column(index) for index in (0, 1))
        assert (kind.has_dictionary_page, number.has_dictionary_page) == (True, False)
        assert (kind.statistics.min, number.statistics.max - number.statistics.min) == ("a", 49)


def test_a_file_behind_one_of_very_wide_values_is_compressed_again(tmp_path):
    former = None
    for name, wide in (("a", ""), ("b", "x" * PLAIN_WIDTH_MIN), ("c", "")):
        writer = ParquetWriter(SCHEMA, tmp_path / name, former=former)
        writer.write(rows(3, wide=wide))
        assert writer.finish()[1] == (tmp_path / name).stat().st_size
        former = writer
    codecs = [pq.read_metadata(tmp_path / name).row_group(0).column(0).compression for name in "abc"]
    assert codecs == ["SNAPPY", "UNCOMPRESSED", "SNAPPY"]


def test_leaves_of_nested_columns_have_the_paths_of_parquet():
    schema = pa.schema([("n", pa.int64()), ("l", pa.list_(pa.struct([("t", pa.string())])))])
    batch = pa.record_batch([[1], [[{"t": "x"}]]], schema)
    known = KnownColumns(schema)
    forms = known.forms(batch, frozenset())
    assert (known.leaf_count, forms.paths) == (2, ("n", "l.list.element.t"))
    assert (forms.dictionaries, forms.statistics) == (True, ["n"])
    assert column_forms.huge_leaves(batch) == set()
