"""Footers of Parquet files are shared by those that read a file at the same time; the last small ones are kept."""

import contextlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError
from engine.memory.budget import Budget, Kind
from engine.parquet import footers as parquet_footers
from engine.parquet import open_file
from engine.parquet.footers import shared_footer
from engine.parquet.open_file import OpenFile
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from tests.sampling import first


def open_shared(path, buffer_bytes, columns=()):
    footer, coded = shared_footer(path, columns)
    return parquet_footers.open_file(path, buffer_bytes, footer, coded), footer


def test_readers_of_a_file_share_its_footer_while_it_is_open(tmp_path):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": range(10)}), path)
    first, footer = open_shared(path, 1 << 16)
    second, shared = open_shared(path, 1 << 16)
    assert shared is footer
    first.close()
    assert second.read().column("a").to_pylist() == list(range(10))
    second.close()
    del first, second, footer, shared
    third, footer = open_shared(path, 1 << 16)
    assert footer.num_rows == 10
    third.close()


def test_a_small_footer_is_kept_and_a_large_one_is_not(tmp_path, monkeypatch):
    path, many = str(tmp_path / "t.parquet"), str(tmp_path / "many.parquet")
    pq.write_table(pa.table({"a": range(10)}), path)
    pq.write_table(pa.table({f"column_{index}": [index] for index in range(1000)}), many)
    size_bytes = pq.read_metadata(many).serialized_size
    monkeypatch.setattr(parquet_footers, "_kept_bytes_max", lambda: 2 * size_bytes - 1)
    given = []
    really_open = parquet_footers.open_file
    monkeypatch.setattr(parquet_footers, "open_file", lambda *a, **k: given.append(a[0]) or really_open(*a, **k))
    for opened in (path, path, many, many):
        parquet_footers.read_footer(opened)
    assert given == [path, many, many]


def test_the_types_of_a_file_are_found_out_once(tmp_path):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": range(100_000), "t": ["x", "y"] * 50_000}), path)
    found = []
    for columns in (["a"], ["a"], ["t"], ["a"], ["t"]):
        file = OpenFile(path, columns)
        found.append(file.found)
        file.close()
    assert found[0] is found[1] is found[3]
    assert found[2] is found[4]
    assert [pa.types.is_dictionary(schema.field("t").type) for schema in found[:3]] == [False, False, True]
    footer = shared_footer(path)[0]
    assert parquet_footers.arrow_schema(footer) is parquet_footers.arrow_schema(footer)


def test_so_many_footers_are_kept(tmp_path):
    kept = parquet_footers._KeptFooters()
    pq.write_table(pa.table({"a": range(10)}), tmp_path / "t.parquet")
    footer = pq.read_metadata(tmp_path / "t.parquet")
    for inode in range(parquet_footers._KEPT_MAX + 3):
        kept.keep(("t.parquet", inode, 1, 1), footer)
    assert [key[1] for key in kept._found] == list(range(3, parquet_footers._KEPT_MAX + 3))


def test_footers_are_kept_up_to_so_many_bytes(tmp_path, monkeypatch):
    kept = parquet_footers._KeptFooters()
    pq.write_table(pa.table({"a": range(10)}), tmp_path / "t.parquet")
    footer = pq.read_metadata(tmp_path / "t.parquet")
    monkeypatch.setattr(parquet_footers, "_kept_bytes_max", lambda: 3 * footer.serialized_size + 1)
    for inode in range(5):
        kept.keep(("t.parquet", inode, 1, 1), footer)
    assert [key[1] for key in kept._found] == [2, 3, 4]


@pytest.mark.parametrize(("batches_mb", "kept_mb"), [(13, 1), (238, 238 / 64), (4000, 8)])
def test_a_larger_process_keeps_more_of_them(monkeypatch, batches_mb, kept_mb):
    budget = Budget()
    budget.set_limit(Kind.ARROW, batches_mb << 20)
    monkeypatch.setattr(parquet_footers, "process_budget", budget)
    assert parquet_footers._kept_bytes_max() == int(kept_mb * (1 << 20))


def rows_of(path):
    spec, _, _ = parquet_source(path)
    return [value for batch in ParquetReader(spec, spec.splits) for value in batch.column(0).to_pylist()]


def test_pages_of_a_file_are_looked_at_once_for_all_readers(tmp_path, monkeypatch):
    path, other = tmp_path / "t.parquet", tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": range(100)}), path, row_group_size=50)
    pq.write_table(pa.table({"a": range(50, 250)}), other, row_group_size=50)
    looked_at = []
    really = open_file.pages_at
    monkeypatch.setattr(open_file, "pages_at", lambda *a: looked_at.append(a[2]) or really(*a))
    assert rows_of(path) == rows_of(path) == list(range(100))
    assert looked_at == [0, 1]
    other.replace(path)
    assert rows_of(path) == list(range(50, 250))
    assert looked_at == [0, 1, 0, 1, 2, 3]


def test_what_is_known_of_very_many_row_groups_is_forgotten_and_found_out_again(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(100)}), path, row_group_size=10)
    monkeypatch.setattr(parquet_footers, "_GROUPS_MAX", 9)
    looked_at = []
    really = open_file.pages_at
    monkeypatch.setattr(open_file, "pages_at", lambda *a: looked_at.append(a[2]) or really(*a))
    for readings in (1, 2, 3):
        assert rows_of(path) == list(range(100))
        assert len(looked_at) == readings * 10
    monkeypatch.setattr(parquet_footers, "_GROUPS_MAX", 10)
    for _ in range(3):
        assert rows_of(path) == list(range(100))
        assert len(looked_at) == 30


def test_nothing_is_remembered_of_a_file_whose_footer_is_not_kept(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(100)}), path)
    monkeypatch.setattr(parquet_footers, "_kept_bytes_max", lambda: 0)
    looked_at = []
    really = open_file.pages_at
    monkeypatch.setattr(open_file, "pages_at", lambda *a: looked_at.append(a[2]) or really(*a))
    assert rows_of(path) == rows_of(path) == list(range(100))
    assert looked_at == [0, 0]


def test_a_file_that_was_replaced_has_a_footer_of_its_own(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(10)}), path)
    first, old = open_shared(str(path), 1 << 16)
    pq.write_table(pa.table({"a": range(20)}), tmp_path / "new.parquet")
    (tmp_path / "new.parquet").replace(path)
    second, new = open_shared(str(path), 1 << 16)
    assert (old.num_rows, new.num_rows) == (10, 20)
    assert (first.read().num_rows, second.read().num_rows) == (10, 20)
    first.close()
    second.close()


def coded(path, table, **options):
    """Return which columns of a file are read as numbers of a dictionary, and the rows as they are read."""
    pq.write_table(table, path, **options)
    file, _ = open_shared(str(path), 1 << 16, table.schema.names)
    names = [field.name for field in file.schema_arrow if pa.types.is_dictionary(field.type)]
    file.close()
    spec, _, schema = parquet_source(path)
    return names, pa.Table.from_batches(list(ParquetReader(spec, spec.splits)), schema)


def test_few_texts_are_read_as_numbers(tmp_path):
    rows = range(50_000)
    few = [("1-URGENT", "2-HIGH", None, "")[row % 4] for row in rows]
    table = pa.table(
        {
            "few": few,
            "bytes": pa.array(few, pa.binary()),
            "large": pa.array(few, pa.large_string()),
            "coded": pa.array(few).dictionary_encode(),
            "view": pa.array(few, pa.string_view()),
            "many": [str(row) for row in rows],
            "number": [row % 4 for row in rows],
            "list": [[text] for text in few],
        }
    )
    names, found = coded(tmp_path / "t.parquet", table, row_group_size=20_000)
    assert names == ["few", "bytes", "large", "coded", "view"]  # each as its writer had it
    plain = {name: table[name].cast(pa.string()) for name in ("coded", "view")}
    assert found.equals(pa.table({name: plain.get(name, table[name]) for name in table.schema.names}))
    names, _ = coded(tmp_path / "t.parquet", table.select(["few"]), row_group_size=24_950)
    assert names == ["few"]  # a hundred rows are left for the last row group
    for other in ({"use_dictionary": False}, {"row_group_size": 4000}, {"dictionary_pagesize_limit": 4}):
        names, found = coded(tmp_path / "t.parquet", table.select(["few"]), **other)
        assert names == []
        assert found.equals(table.select(["few"]))


@pytest.mark.parametrize("compression", first("snappy", "none"))
def test_a_damaged_page_of_few_texts_is_an_error_and_never_other_rows(tmp_path, compression):
    path = tmp_path / "t.parquet"
    table = pa.table({"few": [("1-URGENT", "2-HIGH", "5-LOW")[row % 7 % 3] for row in range(6000)]})
    names, _ = coded(path, table, compression=compression, write_page_checksum=True)
    assert names == ["few"]
    data = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    spec = parquet_source(path)[0]
    wrong = 0
    for place in range(chunk.total_compressed_size):
        damaged = bytearray(data)
        damaged[chunk.dictionary_page_offset + place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            with contextlib.closing(ParquetReader(spec, spec.splits)) as reader:
                found = pa.Table.from_batches(list(reader))
        except DataError:
            wrong += 1
        else:
            assert found.equals(table)
    assert wrong > chunk.total_compressed_size // 2


def test_a_file_whose_footer_is_known_is_opened_once(tmp_path, monkeypatch):
    path, opened = str(tmp_path / "rows.parquet"), []
    table = pa.table({"text": [f"t{n % 7}" for n in range(10_000)], "number": range(10_000)})
    pq.write_table(table, path, use_dictionary=["text"])
    really_open = parquet_footers.open_file
    monkeypatch.setattr(
        parquet_footers, "open_file", lambda *given, **k: opened.append(given) or really_open(*given, **k)
    )
    plain, footer = open_shared(path, 1 << 16, ["number"])
    opened.clear()
    coded, shared = open_shared(path, 1 << 16, ["text", "number"])
    assert len(opened) == 1 and shared is footer
    assert coded.schema_arrow.field("text").type == pa.dictionary(pa.int32(), pa.string())
    assert coded.read().column("text").cast(pa.string()).to_pylist() == plain.read().column("text").to_pylist()
    plain.close()
    coded.close()
