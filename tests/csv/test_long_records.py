"""Records that are longer than a block are read as all others are, as long as they fit into memory."""

import random

import msgspec
import pyarrow as pa
import pytest

from engine.csv import long_records
from engine.csv import reader as csv_reader
from engine.csv import sample as csv_sample
from engine.csv.dialect import CsvDialect
from engine.csv.long_records import find_long_record
from engine.csv.options import CsvOptions
from engine.csv.reader import CsvReader
from engine.csv.source import csv_source
from engine.csv.splits import exact_splits
from engine.errors import DataError, MemoryBudgetError
from engine.graph.source_spec import CsvSource
from engine.memory.budget import Budget, Kind

THREE = pa.schema([("n", pa.int64()), ("t", pa.string()), ("u", pa.string())])
#: the size of blocks: longer records are blocks of their own; none is
BLOCKS = (64, 1 << 20)


def read(path, columns=None, **options):
    """Return rows and skipped rows, with records from 64 bytes on read by themselves, and then without."""
    spec, _, _ = csv_source(path, THREE, CsvOptions(**options))
    if columns is not None:
        spec = type(spec)(**{name: getattr(spec, name) for name in spec.__struct_fields__} | {"columns": columns})
    found = []
    for block_bytes in BLOCKS:
        reader = CsvReader(spec, exact_splits(spec, 2).splits, block_bytes)
        rows = [tuple(row.values()) for batch in reader for row in batch.to_pylist()]
        found.append((rows, reader.bad_rows, reader.bytes_read))
        reader.close()
    assert found[0] == found[1]
    return found[0][:2]


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_long_records_are_the_rows_that_were_written(tmp_path, line_end, mark, last):
    chosen = random.Random(7)
    letters = ["a", '"', ",", "\n", "\r\n", "é", '""', "zz"]
    rows = []
    for index in range(60):
        texts = ["".join(chosen.choices(letters, k=chosen.choice([0, 3, 90, 700]))) for _ in range(2)]
        rows.append((index, *texts))
    data = "".join(f"{n},{quoted(t)},{quoted(u)}{line_end}" for n, t, u in rows)
    path = tmp_path / "long.csv"
    path.write_bytes(mark + (data if last else data.removesuffix(line_end)).encode())
    assert read(path) == (rows, 0)
    assert read(path, ("u",)) == ([row[2:] for row in rows], 0)
    assert read(path, ("n",)) == ([row[:1] for row in rows], 0)


def test_a_record_is_found_whatever_the_chunks(tmp_path, monkeypatch):
    record = b'12,"a ""b"" c\n,d""",,plain "quote",""\r\n'
    path = tmp_path / "long.csv"
    path.write_bytes(b"1,2\n" + record + b"3,4")
    dialect = CsvDialect.of(",", '"')
    for chunk in (1, 2, 3, 7, 64):
        monkeypatch.setattr(long_records, "_CHUNK_BYTES", chunk)
        with path.open("rb", buffering=0) as file:
            assert find_long_record(file, 4, path.stat().st_size, dialect) == (len(record), True)
            assert find_long_record(file, 4, 4 + 9, dialect) == (9, False)
            assert find_long_record(file, 4, 4 + 20, dialect) == (20, True)
            with pytest.raises(DataError, match="ends 1 bytes early"):
                find_long_record(file, 4 + len(record), path.stat().st_size + 1, dialect)


def test_fields_without_quotes_and_quotes_within_them_are_read_as_they_are(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(f'1,{"x" * 300},\n2,{"y" * 200}"{"z" * 5},""\n,"","{"w" * 5000}"\n')
    found, _ = read(path)
    assert found == [(1, "x" * 300, None), (2, "y" * 200 + '"' + "z" * 5, ""), (None, "", "w" * 5000)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (f"1,{'x' * 300}\n", "2 fields, expected 3"),
        (f"{'7' * 300},a,b\n", "column 1 (n)"),
        (f"z,{'x' * 300},b\n", "column 1 (n): 'z' is not int64"),
    ],
)
def test_malformed_long_records_are_named_or_skipped(tmp_path, record, reason):
    path = tmp_path / "long.csv"
    good = f"5,{'g' * 400},h\n"
    path.write_text(good + record + good)
    with pytest.raises(DataError) as raised:
        read(path)
    assert "line 2" in str(raised.value)
    assert reason in str(raised.value)
    assert read(path, on_bad_row="skip") == ([(5, "g" * 400, "h")] * 2, 1)


@pytest.mark.parametrize(("begin", "column"), [('6,"', 2), ('6,"""', 2), ('"', 1), ('6,"a,""b""",x,"', 4)])
@pytest.mark.parametrize("length", [50, 5000])
@pytest.mark.parametrize("columns", [("n", "t", "u"), ("n",)])
def test_a_quote_that_none_closes_is_named_or_skipped_also_in_a_long_record(tmp_path, begin, column, length, columns):
    path = tmp_path / "long.csv"
    good = f'5,{quoted("g" * 400)},"h\nh"\n'
    path.write_text(good + begin + ("x" * 40 + ",y\n") * (length // 43))
    name = f" ({THREE.names[column - 1]})" if column <= 3 else ""
    for block_bytes in BLOCKS:
        spec = msgspec.structs.replace(csv_source(path, THREE)[0], columns=columns)
        reader = CsvReader(spec, exact_splits(spec, 2).splits, block_bytes)
        with pytest.raises(DataError) as raised:
            list(reader)
        reader.close()
        assert f"{path}, line 3, column {column}{name}: a quote that opens here is never closed" in str(raised.value)
    rows = [tuple({"n": 5, "t": "g" * 400, "u": "h\nh"}[name] for name in columns)]
    assert read(path, columns, on_bad_row="skip") == (rows, 1)


@pytest.mark.parametrize("text", ['"', '\ufeff7,"a ""b"",\n', '"x\ny"'])
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_file_is_not_taken_into_memory_for_a_quote_that_none_closes(tmp_path, monkeypatch, text, is_closed):
    monkeypatch.setattr(csv_sample, "HEAD_BYTES", 1000)
    path = tmp_path / "long.csv"
    path.write_text(text + ',"' * text.endswith('y"') + "x" * 5000 + '"\n1,a\n' * is_closed)
    head = csv_sample.read_head(CsvSource((), (), b"", ()), str(path))
    whole = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    assert head.data == (whole[: whole.index(b'"\n1,a') + 2] if is_closed else whole[:1000])


def test_a_header_that_goes_on_to_the_end_of_a_long_file_is_refused(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("n,t,u\n1,a,b\n")
    spec = csv_source(path, THREE, CsvOptions(header=True, on_bad_row="skip"))[0]
    path.write_text('n,t,"u\n' + "1,a,b\n" * 50)
    for block_bytes in BLOCKS:
        reader = CsvReader(spec, exact_splits(spec, 1).splits, block_bytes)
        with pytest.raises(DataError, match=r"line 1, column 3.*: a quote that opens here is never closed"):
            list(reader)
        assert reader.bad_rows == 0
        reader.close()


def test_a_long_field_that_is_not_utf8_is_malformed(tmp_path):
    path = tmp_path / "long.csv"
    path.write_bytes(b"1," + b"x" * 300 + b"\xff,b\n2,a,b\n")
    with pytest.raises(DataError, match="line 1"):
        read(path)


def test_a_quoted_field_behind_the_byte_order_mark_may_hold_line_ends(tmp_path):
    path = tmp_path / "marked.csv"
    path.write_bytes(b'\xef\xbb\xbf"1","' + b"line\n" * 30 + b'","u"\n2,a,b\n')
    assert read(path) == ([(1, "line\n" * 30, "u"), (2, "a", "b")], 0)


def reader_with(monkeypatch, path, limit_bytes, **options):
    spec, _, _ = csv_source(path, THREE, CsvOptions(**options))
    budget = Budget()
    for kind in (Kind.ARROW, Kind.WORKER):
        budget.set_limit(kind, limit_bytes)
    monkeypatch.setattr(csv_reader, "process_budget", budget)
    return CsvReader(spec, exact_splits(spec, 1).splits, block_bytes=64)


@pytest.mark.parametrize("on_bad_row", ["fail", "skip"])
def test_a_record_that_does_not_fit_is_an_error_that_says_what_to_do(tmp_path, monkeypatch, on_bad_row):
    path = tmp_path / "long.csv"
    path.write_text(f'5,"g\n",h\n6,"{"x" * 5000}",h\n')
    reader = reader_with(monkeypatch, path, 2000, on_bad_row=on_bad_row)
    place = rf"file {path}, line 3: a record of 4.9kb does not fit into the 3.9kb that .*; "
    with pytest.raises(MemoryBudgetError, match=rf"{place}raise taskmanager\.memory\.process\.size"):
        list(reader)
    reader.close()


def test_a_quote_that_none_closes_takes_no_memory_for_the_rest_of_the_file(tmp_path, monkeypatch):
    path = tmp_path / "long.csv"
    path.write_text("5,g,h\n" + '6,"' + "x,y\n" * 2000)
    reader = reader_with(monkeypatch, path, 2000)
    with pytest.raises(DataError, match=rf"file {path}, the record in line 2: a quote that opens here is never closed"):
        list(reader)
    reader.close()
    reader = reader_with(monkeypatch, path, 2000, on_bad_row="skip")
    assert [row["n"] for batch in reader for row in batch.to_pylist()] == [5]
    assert reader.bad_rows == 1
    assert reader.bytes_read == path.stat().st_size
    reader.close()
