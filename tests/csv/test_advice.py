"""What a beginner forgets when a CSV file is read is told, and what would be lost is not lost."""

import re
import warnings

import pyarrow as pa
import pytest

from engine.csv.options import CsvOptions
from engine.csv.reader import CsvReader
from engine.csv.source import csv_source
from engine.errors import ConfigurationError, DataError, DreyWarning, SchemaError

CITY = pa.schema([("n", pa.int64()), ("city", pa.string())])
CITIES = "n,city\n1,Zürich\n2,Bruxelles\n3,Paris €\n"


def write(folder, text, encoding="utf-8"):
    path = folder / "x.csv"
    path.write_bytes(text.encode(encoding))
    return path


def rows_of(source):
    spec, _, schema = source
    reader = CsvReader(spec, spec.splits)
    try:
        return pa.Table.from_batches(list(reader), schema).to_pylist(), reader.bad_rows
    finally:
        reader.close()


@pytest.mark.parametrize("text", ["id,name\n1,x\n2,y\n", "a b,c\n1,2020-01-01\n", "name,city\nAnn,Oslo\nBob,Bern\n"])
def test_a_first_row_that_looks_like_names_is_told(tmp_path, text):
    with pytest.warns(
        DreyWarning, match=r"^read_csv\('.*x.csv'\): the first row looks like names .*header=True"
    ) as told:
        csv_source(write(tmp_path, text))
    assert len(told) == 1
    assert told[0].filename == __file__


def test_names_above_dates_and_numbers_with_a_format_are_told(tmp_path):
    text = "Datum;Betrag\n05.01.2026;1'005,0\n06.01.2026;7,5\n"
    with pytest.warns(DreyWarning, match="looks like names .Datum, Betrag. .*header=True"):
        csv_source(write(tmp_path, text), options=CsvOptions(delimiter=";", decimal=",", thousands="'"))
    only_dates = "Datum;T\n05.01.2026;a\n06.01.2026;b\n"
    with pytest.warns(DreyWarning, match="looks like names .Datum, T. .*header=True"):
        csv_source(write(tmp_path, only_dates), options=CsvOptions(delimiter=";", date_format="%d.%m.%Y"))


def test_a_first_row_that_repeats_the_schema_is_told(tmp_path):
    with pytest.warns(DreyWarning, match="looks like names .n, City. .*header=True"):
        csv_source(write(tmp_path, "n,City\n1,Oslo\n"), CITY)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_another_delimiter_is_told(tmp_path, mark, header):
    with pytest.warns(DreyWarning) as told:
        csv_source(
            write(tmp_path, "1,5;x;y\n2,3;z;w\n3;;v\n".replace(",", ".").replace(";", mark)),
            options=CsvOptions(header=header),
        )
    assert [str(each.message).partition("pass ")[2] for each in told] == [f"delimiter={mark!r}"]
    assert "one column was found" in str(told[0].message)


def test_another_delimiter_is_advised_where_a_schema_does_not_fit(tmp_path):
    path = write(tmp_path, "n;city\n1;Oslo\n")
    with pytest.raises(SchemaError, match=r"the header has no n, city; it has n;city; pass delimiter=';'"):
        csv_source(path, CITY, CsvOptions(header=True))
    path = write(tmp_path, "1;Oslo\n")
    with pytest.raises(DataError, match=r"1 fields, expected 2; with delimiter=';' there are 2: 1;Oslo"):
        rows_of(csv_source(path, CITY))


@pytest.mark.parametrize(
    "text",
    [
        "1,x\n2,y\n",
        "EUR,Euro\nUSD,Dollar\n",
        "x\ny\n",
        "Ann,1.5\nBob,2\n",
        "a;b\nc\n",
        ",\n1,2\n",
        "x,x\n1,2\n",
        "a,b\n",
    ],
)
def test_files_that_are_as_they_seem_are_told_nothing_of(tmp_path, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        csv_source(write(tmp_path, text))


@pytest.mark.parametrize("header", [True, False])
def test_bytes_that_are_not_utf8_are_told_with_an_encoding_that_reads_them(tmp_path, header):
    path = write(tmp_path, CITIES if header else CITIES.partition("\n")[2], "cp1252")
    with pytest.warns(
        DreyWarning, match=r"not UTF-8 \(line \d: .*column '.*' is read as binary; pass encoding='cp1252'"
    ):
        csv_source(path, options=CsvOptions(header=header))
    rows, _ = rows_of(csv_source(path, options=CsvOptions(header=header, encoding="cp1252")))
    assert [list(row.values())[1] for row in rows] == ["Zürich", "Bruxelles", "Paris €"]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "koi8-r", "shift_jis", "gb18030", "big5", "euc_jp", "utf-8"])
def test_files_of_an_encoding_are_read_whole(tmp_path, encoding):
    word = {"latin-1": "ÿé", "cp1252": "€é", "koi8-r": "Москва", "shift_jis": "東京ソ", "big5": "台北許功蓋"}
    word = word.get(encoding, "東京中国")
    lines = [f'{n},"{word}, {n}"' for n in range(40_000)]
    path = write(tmp_path, "\n".join(["n,ortü" if encoding == "latin-1" else "n,ort", *lines]) + "\n", encoding)
    source = csv_source(path, parallelism=3, options=CsvOptions(header=True, encoding=encoding))
    rows, _ = rows_of(source)
    assert [tuple(row.values()) for row in rows] == [(n, f"{word}, {n}") for n in range(40_000)]


def test_a_value_that_is_not_of_the_encoding_is_named_with_its_line_or_skipped(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"1,caf\xe9\n2,x\n3,\x81\n4,\xe9\n")
    with pytest.raises(DataError, match=r"line 3, column 2 \(city\): b'\\x81' is not cp1252; pass another encoding="):
        rows_of(csv_source(path, CITY, CsvOptions(encoding="cp1252")))
    rows, bad = rows_of(csv_source(path, CITY, CsvOptions(encoding="cp1252", on_bad_row="skip")))
    assert ([row["city"] for row in rows], bad) == (["café", "x", "é"], 1)
    with pytest.raises(
        DataError, match=r"line 1, column 2 \(city\): b'caf\\xe9' is not valid UTF-8; pass encoding='cp12"
    ):
        rows_of(csv_source(path, CITY))


@pytest.mark.parametrize("encoding", ["utf8mb4", "base64", "rot13", 7])
def test_encodings_that_python_does_not_know_are_refused_with_others_to_try(tmp_path, encoding):
    with pytest.raises(ConfigurationError, match=f"^encoding={encoding!r}: Python knows none of this name; try 'utf"):
        csv_source(write(tmp_path, "1\n"), options=CsvOptions(encoding=encoding))


@pytest.mark.parametrize(
    "values",
    [
        ["007", "1"],
        ["1", "99999999999999999999"],
        ["+4912345", "+33"],
        ["-01", ""],
        ["007.5", "1"],
        ["1.5", "-00.5"],
        ["01e3", "1"],
        ["18446744073709551616"],
        ["0x10", "12"],
    ],
)
def test_digits_that_a_number_would_lose_stay_text(tmp_path, values):
    path = write(tmp_path, "".join(f"{value},1.5,0.5,{index}\n" for index, value in enumerate(values)))
    source = csv_source(path)
    assert source[2].types == [pa.string(), pa.float64(), pa.float64(), pa.int64()]
    assert "text, since digits of numbers would be lost: column_0; " in source[1].origin
    assert [row["column_0"] or "" for row in rows_of(source)[0]] == values


def test_leading_zeros_at_the_end_of_a_sorted_file_stay_too(tmp_path):
    path = write(
        tmp_path, "".join(f"{n},x\n" for n in range(1, 400_000)) + "".join(f"0{n},x\n" for n in range(100_000))
    )
    assert csv_source(path)[2].types == [pa.string(), pa.string()]


def test_numbers_stay_numbers(tmp_path):
    path = write(tmp_path, "0,0.5,-1,1e3,9223372036854775807\n-0,0.05,10,0e0,0\n")
    types = [pa.int64(), pa.float64(), pa.int64(), pa.float64(), pa.int64()]
    assert csv_source(path)[2].types == types


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"null_values": "NA"},
            r"n would be int64, but an empty field is none of its nulls; pass null_values=\['', 'NA'\]",
        ),
        ({"null_values": {"n": "NA"}}, "n would be int64, but an empty field"),
        ({"null_values": ["NA", ""]}, ""),
        ({"null_values": {"t": "NA", "n": ["NA", ""]}}, ""),
        ({"null_values": "NA", "infer_rows": 0}, ""),
    ],
)
def test_numbers_that_are_text_because_of_empty_fields_are_told(tmp_path, options, told):
    (tmp_path / "a.csv").write_text("n,t\n1,x\n,\nNA,y\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        csv_source(str(tmp_path / "a.csv"), options=CsvOptions(header=True, **options))
    assert [re.search(told, str(each.message)) is not None for each in found] == ([True] if told else [])
