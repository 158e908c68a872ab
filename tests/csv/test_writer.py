"""CSV text as it is written: against plain Python, Arrow's own casts, and the reader."""

import csv
import io
import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.csv.writer import CsvWriter
from engine.errors import ConfigurationError, DataError, SchemaError

TEXTS = st.text(alphabet='ab,;"\n\r é' + "x", max_size=40)
DECIMALS = st.builds(lambda digits, places: digits / 10**places, st.integers(-(10**12), 10**12), st.integers(0, 9))


def written(tmp_path, *batches, **options):
    path = tmp_path / "out.csv"
    path.unlink(missing_ok=True)
    writer = CsvWriter(batches[0].schema, path, **options)
    for batch in batches:
        writer.write(batch)
    rows, size, _ = writer.finish()
    data = path.read_bytes()
    assert rows == sum(batch.num_rows for batch in batches)
    assert size == len(data)
    return data


def one_column(values, data_type):
    return pa.record_batch([pa.array(values, data_type)], names=["x"])


def arrow_texts(values):
    return pc.cast(pa.array(values, pa.float64()), pa.string()).to_pylist()


@given(st.lists(st.tuples(st.none() | TEXTS, TEXTS), max_size=40), st.sampled_from(",;| "))
def test_text_is_what_an_independent_reader_finds(tmp_path_factory, rows, delimiter):
    columns = [pa.array([row[index] for row in rows], pa.string()) for index in range(2)]
    batch = pa.record_batch(columns, names=["a", "b"])
    data = written(tmp_path_factory.mktemp("csv"), batch, delimiter=delimiter)
    read = list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter, strict=True))
    assert read == [[first or "", second] for first, second in rows]


def test_nulls_are_nothing_and_only_what_must_be_quoted_is(tmp_path):
    values = [None, "", "plain", "a,b", 'say "x"', "two\nlines", "back\rreturn", "a text of more than 16 bytes, quoted"]
    batch = pa.record_batch([pa.array(values), pa.array(range(8), pa.int8())], names=["a", "b"])
    assert written(tmp_path, batch).split(b",0\n", 1)[0] == b""
    assert written(tmp_path, batch) == (
        b',0\n"",1\nplain,2\n"a,b",3\n"say ""x""",4\n"two\nlines",5\n"back\rreturn",6\n'
        b'"a text of more than 16 bytes, quoted",7\n'
    )


@pytest.mark.parametrize("special", ['"', ",", "\n", "\r", '""'])
def test_quotes_and_nulls_stand_at_every_place_of_a_text(tmp_path, special):
    whole = "0123456789abcdefghijklmnopqrstuvwxyz"
    texts = [whole[:place] + special + whole[place:size] for size in range(36) for place in range(size + 1)]
    column = pa.array([value for text in texts for value in (text, None, whole[: len(text)], "")], pa.string())
    for ends in (column, column.slice(0, len(column) - 1), pa.concat_arrays([column, pa.array([special])])):
        expected = []
        for text in ends.to_pylist():
            is_quoted = text is not None and (text == "" or any(byte in text for byte in ',"\n\r'))
            expected.append('"' + text.replace('"', '""') + '"' if is_quoted else text or "")
        assert written(tmp_path, one_column(ends, pa.string())).decode() == "".join(f"{line}\n" for line in expected)


@given(st.lists(DECIMALS | st.floats(width=64), min_size=1, max_size=50))
@example([0.0, -0.0, 1e-4, 0.00012, 999999999.0, 1e9, 123456789.25, 0.1 + 0.2, 1e300, 5e-324])
@example([math.nan, math.inf, -math.inf])
@example([0.01, 0.05, 0.1, -0.99, 1.1, 1000.0, 7.005, 999999.99, 999999.994, 999999.999, 1e6, 1000000.01])
@example([7325.57, 0.5, -12.25, 100.0, 0.000001, 999999.999999999, 123456.123456789])
def test_doubles_have_the_text_that_arrow_gives_them(tmp_path_factory, values):
    data = written(tmp_path_factory.mktemp("csv"), one_column(values, pa.float64()))
    assert data.decode().splitlines() == arrow_texts(values)


def test_a_double_beyond_plain_decimals_changes_nothing_for_other_rows_and_columns(tmp_path):
    names = ["a", "b"]
    plain = pa.record_batch([pa.array([1.5, 2.25]), pa.array([0.5, None])], names=names)
    wild = pa.record_batch([pa.array([0.25, 2.0]), pa.array([1e300, 0.1])], names=names)
    assert written(tmp_path, plain, wild, plain) == b"1.5,0.5\n2.25,\n0.25,1e+300\n2,0.1\n1.5,0.5\n2.25,\n"


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_integers_of_every_width_are_digits(tmp_path, width, signed):
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    near = {10**digits + added for digits in range(20) for added in (-1, 0, 1, 10**digits)}
    near |= {-value for value in near}
    values = [low, high, *sorted(value for value in near if low <= value <= high), None]
    data_type = getattr(pa, f"{'' if signed else 'u'}int{width}")()
    data = written(tmp_path, one_column(values, data_type).slice(1))
    assert data.decode().splitlines() == [str(value) if value is not None else "" for value in values[1:]]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=50))
def test_int64_are_digits(tmp_path_factory, values):
    data = written(tmp_path_factory.mktemp("csv"), one_column(values, pa.int64()))
    assert data.decode().splitlines() == [str(value) for value in values]


def test_slices_headers_and_other_types(tmp_path):
    batch = pa.record_batch(
        [
            pa.array([True, None, False]),
            pa.array(["x", "y", "z"], pa.large_string()),
            pa.array([0, 1, 86400], pa.timestamp("s")),
            pa.array([b"ab", b"c,", None], pa.binary(2)),
            pa.nulls(3),
        ],
        names=["flag", "a,b", "when", "raw", "none"],
    )
    data = written(tmp_path, batch.slice(1), header=True, delimiter=" ")
    assert data == (b'flag a,b when raw none\n y "1970-01-01 00:00:01" c, \nfalse z "1970-01-02 00:00:00"  \n')


def test_what_has_no_text_and_bad_delimiters_are_refused(tmp_path):
    with pytest.raises(SchemaError, match="'x' is list"):
        CsvWriter(pa.schema([("x", pa.list_(pa.int8()))]), tmp_path / "a")
    with pytest.raises(ConfigurationError, match="delimiter"):
        CsvWriter(pa.schema([("x", pa.int8())]), tmp_path / "b", delimiter="5")
    assert not list(tmp_path.iterdir())


def test_an_aborted_file_is_gone(tmp_path):
    writer = CsvWriter(pa.schema([("x", pa.int8())]), tmp_path / "a")
    writer.abort()
    writer.abort()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data_type", "number"),
    [(pa.timestamp("s"), 9375885129600), (pa.date32(), 2**31 - 1), (pa.date32(), -(2**31)), (pa.timestamp("s"), 2**62)],
)
def test_a_moment_that_has_no_text_is_an_error_with_column_and_value(tmp_path, data_type, number):
    width = pa.int32() if data_type.bit_width == 32 else pa.int64()
    batch = pa.record_batch({"when": pa.array([None, 0, number], width).view(data_type)})
    writer = CsvWriter(batch.schema, tmp_path / "part.csv")
    with pytest.raises(DataError) as error:
        writer.write(batch)
    writer.abort()
    assert str(error.value).startswith(f"write_csv: column 'when' is {data_type}: {number} ({data_type}) has no text")
