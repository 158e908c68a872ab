"""Records with too few and too many fields, true and false texts, and rows from which types come."""

import csv
import io

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.csv.options import CsvOptions
from engine.csv.ragged import fitted_records
from engine.csv.reader import CsvReader
from engine.csv.source import csv_source
from engine.csv.splits import exact_splits
from engine.errors import ConfigurationError, DataError

FIELDS = st.lists(st.text(alphabet='ab,"\n é', max_size=6), min_size=1, max_size=6)
SCHEMA = pa.schema([(name, pa.string()) for name in "abc"])


def fitted(data, column_count, fill=b"", cuts=True):
    tails = [b"".join([b"," + fill] * (column_count - 1 - index)) for index in range(column_count - 1)]
    return fitted_records(data, ord(","), ord('"'), tails, cuts)


def table_of(path, subtask_count=1, schema=None, **options):
    spec, _, found = csv_source(str(path), schema, CsvOptions(**options))
    spec = exact_splits(spec, subtask_count)
    return pa.Table.from_batches(CsvReader(spec, spec.splits), found)


@given(st.lists(FIELDS, max_size=20), st.integers(1, 4), st.sampled_from(["\n", "\r\n"]))
@example([["a", 'b"'], ['"', "\n", "c", "d,"]], 3, "\r\n")
def test_every_record_has_as_many_fields_as_there_are_columns(rows, column_count, line_end):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    found = list(csv.reader(io.StringIO(fitted(text.getvalue().encode(), column_count).decode(), newline="")))
    assert found == [(row + [""] * column_count)[:column_count] for row in rows]


@given(st.binary(max_size=80), st.integers(1, 4), st.booleans())
def test_what_is_whole_stays_byte_for_byte(data, column_count, cuts):
    once = fitted(data, column_count, cuts=cuts)
    assert fitted(once, column_count, cuts=cuts) == once or data.count(b'"') % 2 or b"\0" in data


@pytest.mark.parametrize("subtask_count", [1, 3])
def test_rows_are_the_same_whatever_the_splits(tmp_path, subtask_count):
    path = tmp_path / "a.csv"
    path.write_text("".join("a,b,c,d"[: 1 + 2 * (number % 4)] + "\n" for number in range(5000)))
    found = table_of(path, subtask_count, SCHEMA, ragged_rows="fit")
    kept = [("abcd"[: 1 + number % 4] + "   ")[:3] for number in range(5000)]
    expected = pl.DataFrame(
        [[None if mark == " " else mark for mark in row] for row in kept], SCHEMA.names, orient="row"
    )
    assert found.to_pylist() == expected.to_dicts()


def test_each_way_takes_what_it_says(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b,c\n1\n"2,2",x\n3,y,z\n\n4,"u""v",w,more,"and\nmore"\n')
    assert table_of(path, header=True, ragged_rows="fit").to_pydict() == {
        "a": ["1", "2,2", "3", "4"],
        "b": [None, "x", "y", 'u"v'],
        "c": [None, None, "z", "w"],
    }
    with pytest.raises(DataError, match="line 6, 5 fields, expected 3"):
        table_of(path, schema=SCHEMA, header=True, ragged_rows="fill")
    with pytest.raises(DataError, match="line 2, 1 fields, expected 3"):
        table_of(path, schema=SCHEMA, header=True, ragged_rows="cut")
    with pytest.raises(ConfigurationError, match="ragged_rows='yes': choose one of fail, fill, cut, fit"):
        CsvOptions(ragged_rows="yes")


def test_missing_fields_are_null_whatever_nulls_are_called(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;c\n1;x;NA\n2\n")
    nulls = {"b": ["-"], "c": "NA"}
    found = table_of(path, header=True, delimiter=";", ragged_rows="fill", null_values=nulls, on_bad_row="skip")
    assert found.to_pydict() == {"a": [1, 2], "b": ["x", None], "c": [None, None]}


def test_true_and_false_have_texts_of_the_files_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\nja,1\nNein,2\n,3\ntrue,4\n")
    found = table_of(path, header=True, true_values="ja", false_values=["Nein", "nein"])
    assert found.schema.field("a").type == pa.bool_()
    assert found["a"].to_pylist() == [True, False, None, True]
    schema = pa.schema([("a", pa.bool_()), ("b", pa.int64())])
    with pytest.raises(DataError, match=r"line 3, column 1 \(a\): 'Nein' is not bool"):
        table_of(path, schema=schema, header=True, true_values="ja")
    with pytest.raises(ConfigurationError, match="true_values= and false_values= both have 'x'"):
        CsvOptions(true_values="x", false_values=["y", "x"])


@pytest.mark.parametrize(("rows", "expected"), [(10, "int64"), (3_000_000, "double"), (0, "string"), (None, "int64")])
def test_so_many_first_rows_decide_types(tmp_path, rows, expected):
    path = tmp_path / "a.csv"
    count = 150_000
    path.write_text("n,t\n" + "".join(f"{number},xxxx\n" for number in range(count)) + "0.5,x\n" + "7,x\n" * 90_000)
    found = csv_source(str(path), None, CsvOptions(header=True, infer_rows=rows))
    assert str(found[2].field("n").type) == expected
    if rows == 10:
        assert "inferred from 10 rows" in found[1].origin
    for wrong in (-1, True, "9"):
        with pytest.raises(ConfigurationError, match=r"infer_rows=.*must be a number of rows, 0 for texts alone"):
            CsvOptions(infer_rows=wrong)
