"""CSV is read as the csv module reads it, from every split; what is malformed is named exactly."""

import csv
import io
from itertools import pairwise

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.csv import reader as csv_reader
from engine.csv.dialect import CsvDialect
from engine.csv.options import CsvOptions
from engine.csv.reader import CsvReader, count_lines_before
from engine.csv.scan import count_line_ends, record_offsets
from engine.csv.source import csv_source
from engine.csv.splits import exact_splits, record_boundaries
from engine.errors import DataError
from engine.formats.registry import open_source
from engine.graph.source_spec import SourceSplit
from engine.memory.budget import Budget, Kind

TWO = pa.schema([("a", pa.string()), ("b", pa.string())])
NUMBERED = pa.schema([("n", pa.int64()), ("t", pa.string())])
DIALECT = CsvDialect.of(",", '"')


def write(tmp_path, data, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rows_of(reader):
    return [tuple(row.values()) for batch in reader for row in batch.to_pylist()]


def read(path, schema, parallelism=1, **options):
    spec, _, _ = csv_source(path, schema, CsvOptions(**options))
    reader = open_source(spec, exact_splits(spec, parallelism).splits)
    return rows_of(reader), reader


NASTY = [
    ('a"b', "x,y"),
    ("two\nlines", '"'),
    ("", "z"),
    ("p\r\nq", '""'),
    ("plain", "more"),
    ('"', ",\n,"),
    ("é\n\n", "'"),
    (" spaced ", "end\n"),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_splits_at_every_byte_give_the_same_rows(tmp_path, line_end, mark):
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end).writerows(NASTY)
    data = mark + text.getvalue().encode()
    path = write(tmp_path, data)
    spec, _, _ = csv_source(path, TWO)
    expected = [(one or None, other) for one, other in NASTY]
    for target in range(1, len(data)):
        cuts = [0, *record_boundaries(str(path), [target], DIALECT), len(data)]
        splits = [SourceSplit(str(path), start, end, end - start) for start, end in pairwise(cuts) if start < end]
        assert rows_of(CsvReader(spec, splits)) == expected, target


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 8, 13, 64])
def test_blocks_of_every_size_give_the_same_rows(tmp_path, block_bytes):
    text = io.StringIO()
    csv.writer(text).writerows(NASTY * 3)
    path = write(tmp_path, text.getvalue())
    spec, _, _ = csv_source(path, TWO)
    reader = CsvReader(spec, exact_splits(spec, 1).splits, block_bytes)
    assert rows_of(reader) == [(one or None, other) for one, other in NASTY * 3]
    assert reader.bytes_read == path.stat().st_size


@pytest.mark.parametrize("part_bytes", [64, 200])
def test_blocks_are_smaller_where_many_read_at_a_time_and_rows_the_same(tmp_path, part_bytes, monkeypatch):
    text = io.StringIO()
    csv.writer(text).writerows([*NASTY * 30, ("long", "x" * 500), *NASTY])
    path = write(tmp_path, text.getvalue())
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES_MIN", part_bytes)
    no_memory = Budget()
    no_memory.set_limit(Kind.ARROW, 0)
    monkeypatch.setattr(csv_reader, "process_budget", no_memory)
    spec, _, _ = csv_source(path, TWO)
    reader = CsvReader(spec, exact_splits(spec, 1).splits)
    expected = [(one or None, other) for one, other in [*NASTY * 30, ("long", "x" * 500), *NASTY]]
    batches = list(reader)
    reader.close()
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == expected
    assert len(batches) > 3


FIELDS = st.text(alphabet='ab,"\n\r é', max_size=8)


@given(rows=st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=12), quote_all=st.booleans(), cut=st.floats(0, 1))
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, quote_all, cut):
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL).writerows(rows)
    data = text.getvalue().encode()
    path = write(tmp_path_factory.mktemp("csv"), data)
    spec, _, _ = csv_source(path, TWO)
    cuts = [0, *record_boundaries(str(path), [int(cut * len(data))], DIALECT), len(data)]
    splits = [SourceSplit(str(path), start, end, end - start) for start, end in pairwise(cuts) if start < end]
    empty = "" if quote_all else None
    assert rows_of(CsvReader(spec, splits, 16)) == [(one or empty, other or empty) for one, other in rows]


def test_an_unquoted_empty_field_is_null_and_a_quoted_one_is_not(tmp_path):
    schema = pa.schema([("s", pa.string()), ("n", pa.int64()), ("f", pa.float64()), ("d", pa.date32())])
    rows, _ = read(write(tmp_path, '"",,,\n,1,2.5,2024-01-02\n'), schema)
    assert [row[:3] for row in rows] == [("", None, None), (None, 1, 2.5)]
    assert rows[0][3] is None


def test_null_values_replace_the_empty_field(tmp_path):
    rows, _ = read(write(tmp_path, 'NA,1\n"NA",2\n,3\n'), TWO, null_values=["NA"])
    assert rows == [(None, "1"), ("NA", "2"), ("", "3")]


def test_an_empty_line_is_a_null_in_one_column_and_nothing_in_two(tmp_path):
    path = write(tmp_path, "a\n\nb\n")
    assert read(path, pa.schema([("x", pa.string())]))[0] == [("a",), (None,), ("b",)]
    path = write(tmp_path, "a,b\n\n\nc,d\n\n", "two.csv")
    assert read(path, TWO)[0] == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("text", ["", "\n", "\r\n\r\n", "\ufeff"])
def test_a_file_without_records_has_no_rows(tmp_path, text):
    assert read(write(tmp_path, text), TWO)[0] == []


def test_the_last_line_needs_no_end(tmp_path):
    assert read(write(tmp_path, "a,b\nc,d"), TWO)[0] == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(9, 2)], ids=["by ourselves", "by Arrow"])
def test_nothing_at_the_end_of_a_file_without_line_end_is_null(tmp_path, kind):
    schema = pa.schema([("n", kind), ("a", pa.string()), ("b", pa.string())])
    assert read(write(tmp_path, '1.5,"x",'), schema)[0] == [(1.5, "x", None)]
    assert read(write(tmp_path, '1.5,"",""', "quoted.csv"), schema)[0] == [(1.5, "", "")]
    with pytest.raises(DataError, match=r"open\.csv, line 1, column 3 \(b\): a quote that opens here is never closed"):
        read(write(tmp_path, '1.5,"x","y,', "open.csv"), schema)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_decimal_with_more_digits_than_its_type_has_is_malformed(tmp_path, columns):
    schema = pa.schema([(name, pa.decimal128(5, 2)) for name in "ab"[:columns]])
    good, bad = ("999.99,1e2\n", "1,1234.5\n") if columns == 2 else ("1e2\n", "1234.5\n")
    assert read(write(tmp_path, good), schema)[0][0][-1] == 100
    with pytest.raises(DataError, match=rf"line 2, column {columns} .*: '1234\.5' is not decimal128\(5, 2\)"):
        read(write(tmp_path, good + bad, "bad.csv"), schema)


def test_other_delimiters_and_no_quotes(tmp_path):
    assert read(write(tmp_path, "a|'x|y'\n"), TWO, delimiter="|", quote="'")[0] == [("a", "x|y")]
    assert read(write(tmp_path, 'a\t"b\n', "t.tsv"), TWO, delimiter="\t", quote="")[0] == [("a", '"b')]


def test_a_record_longer_than_many_blocks_is_read_whole(tmp_path):
    long = "x" * 100_000
    spec, _, _ = csv_source(write(tmp_path, f'1,"{long}\n"\n2,y\n'), NUMBERED)
    reader = CsvReader(spec, exact_splits(spec, 1).splits, 64)
    assert rows_of(reader) == [(1, f"{long}\n"), (2, "y")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('1,a\n2,"x\ny"\nz,d\n', "line 4, column 1 (n): 'z' is not int64"),
        ('1,a\r\n2,"x\r\n\r\ny"\r\nz,d\r\n', "line 5, column 1 (n): 'z' is not int64"),
        ("1,a\n2\n3,c\n", "line 2, 1 fields, expected 2: 2"),
        ("1,a\n2,b,c\n", "line 2, 3 fields, expected 2: 2,b,c"),
        ('1,a\n"",b\n', "line 2, column 1 (n): '' is not int64"),
        ("1,a\n99999999999999999999,b\n", "line 2, column 1 (n): '99999999999999999999' is not int64"),
        ("1,a\n\n\n1.5,b\n", "line 4, column 1 (n): '1.5' is not int64"),
        ('1,"never closed\n2,b\n', "line 1, column 2 (t): a quote that opens here is never closed; close it, or"),
    ],
)
def test_a_malformed_record_is_named_with_line_and_column(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as error:
        read(path, NUMBERED)
    assert f"file {path}, {message}" in str(error.value)


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = write(tmp_path, b"1,a\n2,\xff\xfe\n")
    with pytest.raises(DataError, match=r"line 2, column 2 \(t\): .* is not valid UTF-8"):
        read(path, NUMBERED)


def test_the_line_is_right_in_a_later_split_and_block(tmp_path):
    good = "".join(f'{number},"a\nb"\n' for number in range(1000))
    path = write(tmp_path, f"{good}bad,x\n{good}")
    spec, _, _ = csv_source(path, NUMBERED)
    start = record_boundaries(str(path), [len(good) - 100], DIALECT)[0]
    reader = CsvReader(spec, [SourceSplit(str(path), start, path.stat().st_size, 1)], 256)
    with pytest.raises(DataError, match="line 2001, column 1"):
        rows_of(reader)


def test_bad_rows_are_skipped_and_counted_whatever_columns_are_wanted(tmp_path):
    path = write(tmp_path, "1,a\nx,b\n3\n4,d,e\n5,f\n")
    rows, reader = read(path, NUMBERED, on_bad_row="skip")
    assert rows == [(1, "a"), (5, "f")]
    assert reader.bad_rows == 3
    spec, _, _ = csv_source(path, NUMBERED, CsvOptions(on_bad_row="skip"))
    wanted = msgspec.structs.replace(spec, columns=("t",))
    narrow = CsvReader(wanted, exact_splits(spec, 1).splits)
    assert rows_of(narrow) == [("a",), ("f",)]
    assert narrow.bad_rows == 3


def test_columns_that_are_not_wanted_are_not_converted(tmp_path):
    spec, _, _ = csv_source(write(tmp_path, "1,a\nx,b\n"), NUMBERED)
    splits = exact_splits(spec, 1).splits
    assert rows_of(CsvReader(msgspec.structs.replace(spec, columns=("t",)), splits)) == [("a",), ("b",)]
    with pytest.raises(DataError, match="line 2"):
        rows_of(CsvReader(spec, splits))


def test_rows_are_counted_without_any_column(tmp_path):
    spec, _, _ = csv_source(write(tmp_path, "1,a\n2,b\n"), NUMBERED)
    batches = list(CsvReader(msgspec.structs.replace(spec, columns=()), exact_splits(spec, 1).splits))
    assert [(batch.num_rows, batch.num_columns) for batch in batches] == [(2, 0)]


def test_batches_are_bounded_by_rows_and_bytes(tmp_path):
    path = write(tmp_path, "".join(f"{number},{'x' * (number % 50)}\n" for number in range(50_000)))
    spec, _, _ = csv_source(path, NUMBERED)
    batches = list(CsvReader(spec, exact_splits(spec, 1).splits))
    assert sum(batch.num_rows for batch in batches) == 50_000
    assert max(batch.num_rows for batch in batches) <= 8192
    assert all(batch.schema == NUMBERED for batch in batches)


def test_a_header_is_passed_over_in_every_file_and_checked(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.csv", "a.csv"):
        write(folder, f"n,t\n1,{name}\n", name)
    write(folder, "", "c.csv")
    write(folder, "", "_SUCCESS")
    write(folder, "x", ".hidden")
    assert read(folder, NUMBERED, header=True)[0] == [(1, "a.csv"), (1, "b.csv")]
    write(folder, "x,n\nx,1\n", "d.csv")
    with pytest.raises(DataError, match="line 1: the header has no t; it is x, n, expected n, t"):
        read(folder, NUMBERED, header=True)


def test_closing_in_the_middle_closes_the_file(tmp_path):
    spec, _, _ = csv_source(write(tmp_path, "1,a\n" * 100_000), NUMBERED)
    reader = CsvReader(spec, exact_splits(spec, 1).splits, 1024)
    batches = iter(reader)
    next(batches)
    reader.close()
    reader.close()
    assert reader._file is None


def test_lines_are_counted_with_all_line_ends(tmp_path):
    assert count_line_ends(b"a\nb\r\nc\rd") == 3
    path = write(tmp_path, "a\r\nb\rc\n")
    assert [count_lines_before(str(path), end) for end in (0, 3, 5, 7)] == [0, 1, 2, 3]


def test_records_are_found_with_lone_returns():
    assert record_offsets(b'a,b\rc,"d\re"\n\r\nx', 44, 34) == [0, 4, 12, 14, 15]
