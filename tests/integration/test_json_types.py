"""Dates, times and what is nested in JSON lines, through whole jobs: inferred as from CSV, read wherever they are."""

import datetime
import json
import warnings

import pyarrow as pa
import pytest

from engine import col
from engine.errors import DreyWarning, JobExecutionError, SchemaError

UTC = datetime.UTC
MOMENT = datetime.datetime(2024, 1, 1)


@pytest.fixture
def read(environment, tmp_path):
    """Return a function (rows or lines) -> data set."""

    def read_it(rows, schema=None, name="a.json", **options):
        path = tmp_path / name
        path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        return environment.read_json(path, schema, **options)

    return read_it


def values(data, name="t"):
    return data.to_arrow()[name].to_pylist()


INFERRED = {
    "offset": (["2024-01-01T05:00:00+05:00", "2023-12-31T22:00:00-02:00"], pa.timestamp("s", "UTC")),
    "Z": (["2024-01-01T00:00:00Z", None], pa.timestamp("s", "UTC")),
    "Z and digits": (["2024-01-01T00:00:00.123Z", "2024-01-01T00:00:00Z"], pa.timestamp("us", "UTC")),
    "no offset": (["2024-01-01T00:00:00", "2024-01-01 00:00"], pa.timestamp("s")),
    "milliseconds": (["2024-01-01T00:00:00.250"], pa.timestamp("us")),
    "microseconds": (["2024-01-01T00:00:00.123456", "2024-01-01 00:00:00.5"], pa.timestamp("us")),
    "seven digits": (["2024-01-01T00:00:00.1234560"], pa.timestamp("ns")),
    "nanoseconds": (["2024-01-01T00:00:00.123456789", "2024-01-01"], pa.timestamp("ns")),
    "digits and far days": (["2024-01-01T00:00:00.25", "9999-12-31 00:00:00"], pa.timestamp("us")),
    "moments and far days": (["2024-01-01T00:00:00.25Z", "0001-01-01 00:00:00Z"], pa.timestamp("us", "UTC")),
    "days": (["2024-01-01", "1969-02-28"], pa.date32()),
    "days and moments": (["2024-01-01", "2024-01-01T00:00:00"], pa.timestamp("s")),
    "other texts": (["2024-01-01T00:00:00Z", "soon"], pa.string()),
    "a day that is none": (["2024-02-30"], pa.string()),
    "digits": (["20240101", "2024"], pa.string()),
}


@pytest.mark.parametrize("case", INFERRED)
@pytest.mark.parametrize("form", ["{}", "list", "struct", "deep"])
def test_dates_and_timestamps_are_inferred_as_from_csv(environment, read, tmp_path, case, form):
    texts, data_type = INFERRED[case]
    make = {
        "{}": lambda text: text,
        "list": lambda text: [text],
        "struct": lambda text: {"x": text, "y": 1},
        "deep": lambda text: [{"x": [text]}],
    }[form]
    data = read([{"t": make(text)} for text in texts])
    found = data.schema.field("t").type
    if form in ("list", "deep"):
        found = found.value_type
    if form in ("struct", "deep"):
        found = found.field("x").type
    if form == "deep":
        found = found.value_type
    assert found == data_type
    path = tmp_path / "a.csv"
    path.write_text("t,n\n" + "".join(f"{text or ''},1\n" for text in texts))
    csv = environment.read_csv(path, header=True)
    if case != "digits":
        assert csv.schema.field("t").type == data_type
    if form == "{}":
        assert case == "digits" or values(data) == values(csv)
        assert values(data.filter(col("t").is_not_null())) == [value for value in values(data) if value is not None]


@pytest.mark.parametrize(
    "texts", [["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"], ["2024-01-01", "2024-01-01T00:00:00+01:00"]]
)
def test_moments_and_local_times_in_one_column_stay_texts_and_are_told(environment, tmp_path, texts):
    lines = [json.dumps({"t": {"x": text}}) for text in texts]
    for index, line in enumerate(lines):
        (tmp_path / f"{index}.json").write_text(f"{line}\n")
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "a.json").write_text("\n".join(lines))
    for path in (tmp_path / "*.json", tmp_path / "both"):
        with pytest.warns(DreyWarning, match="'t.x' has timestamps with an offset from UTC and others without one"):
            data = environment.read_json(path)
        assert sorted(row["x"] for row in values(data)) == sorted(texts)


def test_a_type_says_what_its_texts_must_be(read):
    naive, moment = pa.schema([("t", pa.timestamp("us"))]), pa.schema([("t", pa.timestamp("ms", "Europe/Berlin"))])
    local, with_offset = {"t": "2024-01-01T00:00:00"}, {"t": "2024-01-01T01:00:00.5+01:00"}
    assert values(read([local, {"t": None}], naive)) == [MOMENT, None]
    found = values(read([with_offset], moment))[0]
    assert found == MOMENT.replace(tzinfo=UTC, microsecond=500_000)
    for rows, schema, said in (
        ([local, with_offset], naive, "expected no zone offset; it has an offset from UTC, which a type such as"),
        ([with_offset, local], moment, "expected a zone offset; it has no offset from UTC: a type such as"),
        (
            [with_offset, {"t": "20240101T000000Z"}],
            moment,
            "it is not written like 2024-02-29T12:30:00Z: read it as string, and",
        ),
    ):
        with pytest.raises(JobExecutionError, match=rf"a\.json, line 2: .*{said}"):
            read(rows, schema).collect()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DreyWarning)
            assert read(rows, schema, on_bad_row="skip").count() == 1


ROWS = [
    {"day": "2024-02-29", "at": "2024-01-01T00:00:00", "with": "2024-01-01T00:00:00Z", "clock": "10:20:30", "s": 7},
    {"day": None, "at": None, "with": None, "clock": None, "s": None},
    {},
]
TYPES = pa.struct(
    [
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("with", pa.timestamp("us", "UTC")),
        ("clock", pa.time64("us")),
        ("s", pa.duration("s")),
    ]
)
EXPECTED = [
    {
        "day": datetime.date(2024, 2, 29),
        "at": MOMENT,
        "with": MOMENT.replace(tzinfo=UTC),
        "clock": datetime.time(10, 20, 30),
        "s": datetime.timedelta(seconds=7),
    },
    dict.fromkeys(TYPES.names),
    dict.fromkeys(TYPES.names),
]
FORMS = {
    "list of structs": (pa.list_(TYPES), lambda row: [row, row], lambda row: [row, row]),
    "struct in struct": (pa.struct([("in", TYPES)]), lambda row: {"in": row}, lambda row: {"in": row}),
    "large list": (pa.large_list(TYPES), lambda row: [row], lambda row: [row]),
    "fixed list": (pa.list_(TYPES, 2), lambda row: [row, None], lambda row: [row, None]),
    "map": (pa.map_(pa.string(), TYPES), lambda row: {"k": row}, lambda row: [("k", row)]),
    "map in a list": (
        pa.list_(pa.struct([("m", pa.map_(pa.string(), TYPES))])),
        lambda row: [{"m": {"k": row}}, {"m": None}, None],
        lambda row: [{"m": [("k", row)]}, {"m": None}, None],
    ),
    "map of maps": (
        pa.map_(pa.string(), pa.map_(pa.string(), pa.date32())),
        lambda row: {"a": {"b": row.get("day")}},
        lambda row: [("a", [("b", row["day"])])],
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_ordinary", [True, False], ids=["ordinary", "escapes"])
def test_times_are_read_wherever_they_are(read, form, is_ordinary):
    data_type, make, expected = FORMS[form]
    rows = [{"v": make(row)} for row in ROWS] + [{"v": None}, {}]
    if not is_ordinary:  # for Arrow's parser, which knows no maps and fewer types
        rows = [{**row, "\u00e9": 1} for row in rows]
    found = read(rows, pa.schema([("v", data_type)])).to_arrow()
    found.validate(full=True)
    assert found.schema.field("v").type == data_type
    assert found["v"].to_pylist() == [expected(row) for row in EXPECTED] + [None, None]


@pytest.mark.parametrize("bad", ["noon", "25:00", "2024-13-01"])
def test_a_nested_text_that_is_no_time_is_named_by_line(read, bad):
    schema = pa.schema([("v", pa.list_(pa.struct([("day", pa.date32()), ("clock", pa.time32("s"))])))])
    good = {"v": [{"day": "2024-01-01", "clock": "10:00"}]}
    name = "day" if bad.startswith("2024") else "clock"
    rows = [good, {"v": [{name: bad}]}, good]
    with pytest.raises(JobExecutionError, match=r"a\.json, line 2: Failed to parse string"):
        read(rows, schema).collect()
    with pytest.warns(DreyWarning, match="1 malformed rows"):
        assert read(rows, schema, on_bad_row="skip").select(n=col("v").list.length()).collect() == [(1,), (1,)]


def test_texts_have_the_json_of_what_is_none_wherever_they_are(read):
    schema = pa.schema(
        [("v", pa.list_(pa.struct([("x", pa.string())]))), ("m", pa.map_(pa.string(), pa.list_(pa.string())))]
    )
    rows = ['{"v": [{"x": 5}, {"x": {"a": [1, "\\u00e9"]}}, {"x": "y"}], "m": {"k": [1.50, "z", null]}}', '{"v": null}']
    found = read(rows, schema).to_arrow().to_pylist()
    assert found == [
        {"v": [{"x": "5"}, {"x": '{"a": [1, "\\u00e9"]}'}, {"x": "y"}], "m": [("k", ["1.50", "z", None])]},
        {"v": None, "m": None},
    ]


def test_what_json_has_no_form_of_is_told_before_the_job(read):
    for data_type in (pa.list_(pa.map_(pa.int64(), pa.int64())), pa.struct([("x", pa.month_day_nano_interval())])):
        with pytest.raises(SchemaError, match="column 'v' cannot be read as"):
            read([{"v": None}], pa.schema([("v", data_type)]))
