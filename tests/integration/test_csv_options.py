"""What read_csv is told of its files: lines to skip, comments, nulls and dates by column; through whole jobs."""

import datetime
import gzip
import warnings

import pyarrow as pa
import pytest

from engine import max_
from engine.errors import ConfigurationError, DataError, DreyWarning, JobExecutionError, SchemaError

TWO = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.fixture
def read(environment, tmp_path):
    """Return a function (text) -> data set."""

    def read_it(text, schema=None, header=True, name="a.csv", **options):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return environment.read_csv(path, schema, header=header, **options)

    return read_it


def rows(data):
    return [tuple(row) for row in data.collect()]


def failure(data):
    with pytest.raises(JobExecutionError) as caught:
        data.collect()
    return str(caught.value)


# ---- lines to skip


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("begin", ['made "by\n,a probe\n', "\ufeffx\r\n\r\n", "x\ry\r"])
def test_lines_before_the_header_are_skipped_whatever_is_in_them(read, name, begin):
    text = begin + "a,b\n1,x\n2,y\n"
    assert rows(read(text, skip_rows=2, name=name)) == [(1, "x"), (2, "y")]
    assert rows(read(text, TWO, skip_rows=3, header=False, name=name)) == [(1, "x"), (2, "y")]
    assert "line 6, column 1 (a): 'no' is not int64" in failure(read(text + "no,z\n", TWO, skip_rows=2, name=name))


def test_each_file_is_skipped_into_and_a_short_one_has_no_rows(environment, tmp_path):
    for name, text in (("1", "x\na,b\n1,x\n"), ("2", "y\nb,a\ny,2\n"), ("3", "z\n"), ("4", "")):
        (tmp_path / f"{name}.csv").write_text(text)
    assert sorted(rows(environment.read_csv(tmp_path, header=True, skip_rows=1))) == [(1, "x"), (2, "y")]
    assert environment.read_csv(tmp_path, TWO, skip_rows=9).count() == 0


def test_a_quote_in_what_is_skipped_says_nothing_of_a_large_file(environment, tmp_path):
    count = 200_000
    lines = [f'{index},"t\n{index}"\n' if index % 1000 == 0 else f"{index},t\n" for index in range(count)]
    (tmp_path / "a.csv").write_text('"\n,"\n' + "".join(lines))
    found = environment.read_csv(tmp_path, TWO, skip_rows=2).sort("a").to_arrow()
    assert found["a"].to_pylist() == list(range(count))
    assert found["b"].to_pylist()[1000] == "t\n1000"


# ---- comments


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_are_left_out_and_counted_as_lines(read, name, end):
    lines = ['# made by "x', "a,b", "1,x", "#,", "#", '2,"y', '# no comment"', "3,#z", "# end"]
    text = end.join(lines) + end
    expected = [(1, "x"), (2, f"y{end}# no comment"), (3, "#z")]
    assert rows(read(text, comment="#", name=name)) == expected
    assert rows(read(text, TWO, comment="#", name=name).select("b")) == [row[1:] for row in expected]
    assert "line 10, column 1 (a): 'no' is not int64" in failure(read(text + f"no,z{end}", TWO, comment="#", name=name))


def test_comments_of_several_characters_of_one_column_and_behind_skipped_lines(read):
    assert rows(read("// c\n1\n//\n2\n", header=False, comment="//")) == [(1,), (2,)]
    assert rows(read("\ufeff# c\na,b\n1,x\n", comment="#")) == [(1, "x")]
    assert rows(read("# c\na,b\n1,x\n".encode("utf-16"), comment="#")) == [(1, "x")]
    assert "line 4, column 1 (a): 'no'" in failure(read("x\n# c\na,b\nno,x\n", TWO, skip_rows=1, comment="#"))


def test_comments_all_over_a_large_file(environment, tmp_path):
    count = 60_000
    text = "".join(f"# {index}\n{index},t\n" if index % 3 else f'{index},"#\n#"\n' for index in range(count))
    (tmp_path / "a.csv").write_text(text)
    found = environment.read_csv(tmp_path, TWO, comment="#").sort("a").to_arrow()
    assert found["a"].to_pylist() == list(range(count))
    assert found["b"].to_pylist()[:2] == ["#\n#", "t"]


# ---- null values


def test_null_values_are_one_text_several_or_some_for_a_column(read):
    text = 'a,b\n1,NA\nNA,-\n,"NA"\n'
    assert rows(read(text, TWO, null_values=["NA", ""])) == [(1, None), (None, "-"), (None, "NA")]
    assert rows(read("a,b\n1,NA\nNA,x\n", null_values="NA")) == [(1, None), (None, "x")]
    by_column = {"a": ["NA", ""], "b": "-"}
    assert rows(read(text, TWO, null_values=by_column)) == [(1, "NA"), (None, None), (None, "NA")]
    inferred = read(text, null_values=by_column)
    assert inferred.schema == TWO
    assert rows(inferred.select("b")) == [("NA",), (None,), ("NA",)]
    assert rows(read("a,b,c\n-,,\n1,,2\n", null_values={"a": "-"})) == [(None, None, None), (1, None, 2)]
    with pytest.raises(SchemaError, match="null_values= names 'z'; the columns are a, b"):
        read(text, null_values={"z": "-"})


# ---- dates and times


DATES = "d,e\n31.12.2023,5\n01.02.2024,6\n,7\n"
DAYS = [datetime.date(2023, 12, 31), datetime.date(2024, 2, 1), None]


@pytest.mark.parametrize("date_format", ["%d.%m.%Y", {"d": "%d.%m.%Y"}])
def test_dates_are_read_by_their_format(read, date_format):
    data = read(DATES, date_format=date_format)
    assert data.schema == pa.schema([("d", pa.date32()), ("e", pa.int64())])
    assert rows(data) == [(day, number) for day, number in zip(DAYS, (5, 6, 7), strict=True)]
    schema = pa.schema([("d", pa.timestamp("ms")), ("e", pa.int64())])
    found = read(DATES, schema, date_format=date_format).to_arrow()
    assert found["d"].cast(pa.date32()).to_pylist() == DAYS
    bad = DATES + "31.02.2024,8\n"
    schema = pa.schema([("d", pa.date32()), ("e", pa.int64())])
    told = failure(read(bad, schema, date_format=date_format))
    assert "line 5, column 1 (d): '31.02.2024' is not of the format '%d.%m.%Y'" in told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DreyWarning)
        assert rows(read(bad, schema, date_format=date_format, on_bad_row="skip").select("e")) == [(5,), (6,), (7,)]


def test_each_column_has_its_format_and_its_type(read):
    text = "day,at,with,clock,n\n20240131,31/01/2024 23:59:58,31.1.24 10:00 +0130,23:15,20240131\n"
    formats = {"day": "%Y%m%d", "at": "%d/%m/%Y %H:%M:%S", "with": "%d.%m.%y %H:%M %z", "clock": "%H:%M"}
    data = read(text, date_format=formats)
    assert [str(field.type) for field in data.schema] == [
        "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]", "time64[us]", "int64",
    ]  # fmt: skip
    row = data.to_arrow().to_pylist()[0]
    assert row["day"] == datetime.date(2024, 1, 31)
    assert row["at"] == datetime.datetime(2024, 1, 31, 23, 59, 58)
    assert row["with"] == datetime.datetime(2024, 1, 31, 8, 30, tzinfo=datetime.UTC)
    assert row["clock"] == datetime.time(23, 15)
    schema = data.schema.set(3, pa.field("clock", pa.time32("s")))
    assert read(text, schema, date_format=formats).to_arrow()["clock"].to_pylist() == [datetime.time(23, 15)]


def test_what_is_no_format_or_has_no_use_of_one_is_told_before_the_job(read):
    with pytest.raises(SchemaError, match=r"column 'd': '31\.02\.2024' is not of the format '%d.%m.%Y'"):
        read("d\n31.12.2023\n31.02.2024\n", date_format={"d": "%d.%m.%Y"})
    with pytest.raises(SchemaError, match="date_format= names 'z'; the columns are d, e"):
        read(DATES, date_format={"z": "%Y"})
    with pytest.raises(SchemaError, match="a format for 'e', which is int64 and neither a date nor a time"):
        read(DATES, pa.schema([("d", pa.string()), ("e", pa.int64())]), date_format={"e": "%Y"})
    with pytest.raises(ConfigurationError, match=r"date_format\['d'\]='day': "):
        read(DATES, date_format={"d": "day"})


@pytest.mark.parametrize(
    ("texts", "data_type"),
    [
        (["2024-02-29 01:02:03.5", "2024-02-29 01:02:03.123456", "2024-02-29"], pa.timestamp("us")),
        (["2024-02-29T01:02:03.5Z", "2024-02-29 01:02:03+02:00"], pa.timestamp("us", "UTC")),
        (["2024-02-29 01:02:03.5", "2024-02-29 01:02:03.1234567"], pa.timestamp("ns")),
        (["2024-02-29 01:02:03.123456000", "2024-02-29 01:02:03"], pa.timestamp("ns")),
        (["2024-02-29 01:02:03.5", "9999-12-31 23:59:59.000"], pa.timestamp("us")),
    ],
)
def test_a_fraction_of_a_second_makes_microseconds_unless_it_has_more_digits(read, texts, data_type):
    data = read("a,b\n" + "".join(f"{text},1\n" for text in texts))
    assert data.schema == pa.schema([("a", data_type), ("b", pa.int64())])
    values = pa.array(texts).cast(data_type)
    assert data.to_arrow()["a"].combine_chunks().equals(values)


def test_files_with_fewer_and_with_more_digits_have_the_finest_type(environment, tmp_path):
    for name, text in (("1", "01:02:03"), ("2", "01:02:03.5"), ("3", "01:02:03.123456789")):
        (tmp_path / f"{name}.csv").write_text(f"a\n2024-02-29 {text}\n")
        wanted = {"1": "s", "2": "us", "3": "ns"}[name]
        assert environment.read_csv(tmp_path, header=True).schema.field("a").type == pa.timestamp(wanted)


def test_a_far_year_beyond_the_sample_is_read_beside_fractions(environment, tmp_path):
    (tmp_path / "a.csv").write_text("a\n" + "2024-02-29 01:02:03.5\n" * 60_000 + "3000-01-01 00:00:00\n")
    found = environment.read_csv(tmp_path / "a.csv", header=True).agg(a=max_("a")).collect()
    assert [tuple(row) for row in found] == [(datetime.datetime(3000, 1, 1),)]


@pytest.mark.parametrize(
    "texts", [["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"], ["2024-01-01 00:00+02:00", "2024-01-01 00:00"]]
)
def test_timestamps_with_an_offset_and_without_stay_texts_and_are_told(environment, tmp_path, texts):
    for index, text in enumerate(texts):
        (tmp_path / f"{index}.csv").write_text(f"t\n{text}\n")
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "a.csv").write_text("t\n" + "\n".join(texts) + "\n")
    for path in (tmp_path / "*.csv", tmp_path / "both"):
        with pytest.warns(
            DreyWarning, match="column 't' has timestamps with an offset from UTC and others without one"
        ):
            data = environment.read_csv(path, header=True)
        assert sorted(rows(data)) == sorted((text,) for text in texts)


def test_an_offset_that_a_type_has_not_is_named_with_the_type_that_has_one(read):
    naive, moment = pa.schema([("t", pa.timestamp("us"))]), pa.schema([("t", pa.timestamp("us", "UTC"))])
    told = failure(read("t\n2024-01-01T00:00:00Z\n", naive))
    assert "'2024-01-01T00:00:00Z' is not timestamp[us]: it has an offset from UTC; timestamp[us, tz=UTC] reads" in told
    told = failure(read("t\n2024-01-01T00:00:00\n", moment))
    assert "is not timestamp[us, tz=UTC]: it has no offset from UTC; timestamp[us] reads it" in told


def test_bad_rows_are_kept_with_their_lines_whatever_is_left_out_before(environment, tmp_path):
    (tmp_path / "a.csv").write_text('x\n# "c\na,b\n1,x\nno,y\n#\n2,z,t\n')
    data = environment.read_csv(
        tmp_path / "a.csv",
        TWO,
        header=True,
        skip_rows=1,
        comment="#",
        on_bad_row="skip",
        bad_rows_path=tmp_path / "bad",
    )
    with pytest.warns(DreyWarning, match="2 malformed rows"):
        assert rows(data) == [(1, "x")]
    kept = environment.read_csv(tmp_path / "bad", header=True).sort("line").to_arrow().to_pylist()
    assert [(row["line"], row["record"]) for row in kept] == [(5, "no,y"), (7, "2,z,t")]


def test_a_file_whose_header_is_missing_is_told(read):
    with pytest.raises((DataError, SchemaError)):
        read("x\n", TWO, skip_rows=0)
