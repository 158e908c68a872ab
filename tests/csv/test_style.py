"""Forms of values in CSV that is written: against Python's csv module, pandas, and the engine's own reader."""

import csv
import datetime as dt
import io
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.csv.options import CsvOptions
from engine.csv.reader import CsvReader
from engine.csv.source import csv_source
from engine.csv.style import CsvStyle, checked_style, style_of
from engine.csv.writer import CsvWriter
from engine.errors import ConfigurationError, DataError
from engine.graph.source_spec import SinkSpec

TEXTS = st.text(alphabet='ab,;"\n\r éNUL-', max_size=20)
INTEGERS = st.none() | st.integers(-2, 2)
ROWS = st.lists(
    st.tuples(st.none() | TEXTS, st.none() | st.floats(allow_nan=False), st.none() | st.booleans(), INTEGERS)
)
SCHEMA = pa.schema([("a", pa.string()), ("x", pa.float64()), ("b", pa.bool_()), ("n", pa.int64())])


def written(folder, table, delimiter=",", header=False, **options):
    path = folder / "out.csv"
    path.unlink(missing_ok=True)
    writer = CsvWriter(table.schema, str(path), header, delimiter, style=checked_style(options, delimiter))
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()
    return path.read_bytes()


def read(path, schema, **options):
    spec, _, _ = csv_source(str(path), schema, CsvOptions(**options))
    return pa.Table.from_batches(CsvReader(spec, spec.splits), schema)


@given(
    ROWS,
    st.sampled_from(["minimal", "all", "non_numeric"]),
    st.sampled_from(["", "NULL", "-", "N/A", "0", "-1", "1,5"]),
)
def test_values_read_back_whatever_is_quoted_and_however_a_null_is_written(tmp_path_factory, rows, quoting, null_text):
    folder = tmp_path_factory.mktemp("style")
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    written(folder, table, ";", quoting=quoting, null_text=null_text, decimal=",")
    found = read(folder / "out.csv", SCHEMA, delimiter=";", null_values=null_text, decimal=",")
    assert found.to_pylist() == table.to_pylist()


@given(ROWS.filter(len), st.sampled_from([(csv.QUOTE_ALL, "all"), (csv.QUOTE_NONNUMERIC, "non_numeric")]))
def test_quotes_are_where_pythons_csv_has_them(tmp_path_factory, rows, quoting):
    kept = [(text or "", 0.0 if x is None else float(round(x % 1000, 2)), "t") for text, x, _, _ in rows]
    schema = pa.schema([("a", pa.string()), ("x", pa.float64()), ("c", pa.string())])
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in kept], schema)
    expected = io.StringIO(newline="")
    rule, name = quoting
    csv.writer(expected, quoting=rule, lineterminator="\n").writerows(
        (text, int(x) if x.is_integer() else x, c) for text, x, c in kept
    )
    assert written(tmp_path_factory.mktemp("style"), table, quoting=name).decode() == expected.getvalue()


def test_numbers_dates_and_nulls_are_as_pandas_writes_them(tmp_path):
    table = pa.table(
        {
            "x": pa.array([1.5, None, -2.25, 1e300]),
            "d": pa.array([dt.date(2024, 2, 29), None, dt.date(1969, 12, 31), dt.date(1999, 1, 1)]),
            "t": pa.array([dt.datetime(2024, 2, 29, 23, 59), None, None, dt.datetime(1970, 1, 1)], pa.timestamp("us")),
            "m": pa.array([Decimal("1.10"), None, Decimal("-0.05"), Decimal(3)], pa.decimal128(9, 2)),
        }
    )
    options = {"null_text": "n/a", "decimal": ",", "date_format": "%d.%m.%Y", "timestamp_format": "%d.%m.%Y %H:%M"}
    found = written(tmp_path, table, ";", header=True, **options).decode()
    frame = table.to_pandas(date_as_object=True)
    frame["d"] = [None if day is None else day.strftime("%d.%m.%Y") for day in table["d"].to_pylist()]
    frame["m"] = [None if number is None else str(number).replace(".", ",") for number in table["m"].to_pylist()]
    assert found == frame.to_csv(sep=";", na_rep="n/a", decimal=",", date_format="%d.%m.%Y %H:%M", index=False)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "utf-8-sig", "utf-8", "shift_jis"])
def test_text_is_in_the_encoding_that_is_asked_for(tmp_path, encoding):
    texts = ["plain", "a,b", None, ""] + (["ä ß"] if encoding != "shift_jis" else ["日本"])
    table = pa.concat_tables([pa.table({"s": pa.array(texts)})] * 2)
    found = written(tmp_path, table, header=True, encoding=encoding)
    assert found.decode(encoding) == written(tmp_path, table, header=True).decode()
    written(tmp_path, table, header=True, encoding=encoding)
    if encoding not in ("utf-16", "utf-8-sig"):
        assert read(tmp_path / "out.csv", table.schema, header=True, encoding=encoding).to_pylist() == table.to_pylist()
    else:
        assert read(tmp_path / "out.csv", table.schema, header=True).to_pylist() == table.to_pylist()


def test_a_character_that_the_encoding_lacks_fails(tmp_path):
    with pytest.raises(DataError, match=r"encoding='cp1252': '日' is not in cp1252; replace it, or write UTF-8"):
        written(tmp_path, pa.table({"s": ["日"]}), encoding="cp1252")


def test_without_quotes_what_needs_them_fails_and_all_else_is_as_it_is(tmp_path):
    plain = pa.table({"s": ['say "x"', None, "b"]})
    assert written(tmp_path, plain, quoting="none") == b'say "x"\n\nb\n'
    for text, why in (("a,b", "the delimiter or a line end"), ("a\nb", "the delimiter"), ("", "the text of nulls")):
        with pytest.raises(DataError, match=f"column 's': .* needs quotes, since it .*{why}"):
            written(tmp_path, pa.table({"s": ["a", text]}), quoting="none")
    assert written(tmp_path, pa.table({"s": ["", None]}), quoting="none", null_text="\\N") == b"\n\\N\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quoting": "some"}, "quoting='some': choose one of minimal, all, non_numeric, none"),
        ({"decimal": ";"}, r"decimal=';': choose '\.' or ','"),
        ({"decimal": ","}, "pass delimiter=';' beside decimal=','"),
        ({"null_text": "a,b"}, "null_text='a,b' would need quotes"),
        ({"null_text": None}, "null_text=None: must be a text"),
        ({"date_format": "%Q"}, "date_format='%Q': .* no directive of strftime"),
        ({"timestamp_format": 3}, "timestamp_format=3: must be a text"),
        ({"encoding": "klingon"}, "encoding='klingon': Python knows none of this name"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, said):
    with pytest.raises(ConfigurationError, match=said):
        checked_style(options, ",")


def test_a_style_travels_in_the_sink():
    style = checked_style({"decimal": ",", "quoting": "all", "encoding": "latin-1"}, ";")
    assert style_of(SinkSpec("csv", "a", options=style.text)) == style
    assert CsvStyle().text == "" and style_of(SinkSpec("csv", "a")) == CsvStyle()


def test_pandas_reads_what_is_written(tmp_path):
    table = pa.table({"a": ["x;y", None, ""], "n": [1, None, 3]})
    written(tmp_path, table, ";", header=True, null_text="NULL", quoting="non_numeric", encoding="utf-16")
    frame = pd.read_csv(tmp_path / "out.csv", sep=";", encoding="utf-16", na_values=["NULL"], keep_default_na=False)
    assert frame["a"].tolist()[0] == "x;y" and frame["a"].tolist()[2] == ""
    assert frame["n"].tolist()[::2] == [1, 3] and frame["n"].isna().tolist() == [False, True, False]
