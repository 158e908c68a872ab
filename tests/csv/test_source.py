"""What the client learns of CSV files when a plan is built."""

import random
import re
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.csv.dialect import CsvDialect
from engine.csv.options import CsvOptions
from engine.csv.source import csv_source
from engine.csv.splits import SHARE_BYTES_MIN, exact_splits, record_boundaries, share_boundaries
from engine.errors import ConfigurationError, PlanError, SchemaError
from engine.graph.source_spec import SourceSplit
from engine.jobmaster.split_assignment import assign_splits

NUMBERED = pa.schema([("n", pa.int64()), ("t", pa.string())])


def test_names_and_types_are_inferred_from_a_sample(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,price,name,day,ok,none\n1,1.5,x,2024-01-02,true,\n2,,y,2024-01-03,false,\n")
    spec, statistics, schema = csv_source(path, options=CsvOptions(header=True))
    assert schema == pa.schema(
        [
            ("id", pa.int64()),
            ("price", pa.float64()),
            ("name", pa.string()),
            ("day", pa.date32()),
            ("ok", pa.bool_()),
            ("none", pa.string()),
        ]
    )
    assert spec.columns == tuple(schema.names)
    types = "id int64, price double, name string, day date32[day], ok bool, none string"
    assert statistics.origin == f"schema inferred from 2 rows: {types}; all 2 rows"
    assert (statistics.row_count, statistics.is_exact) == (2.0, True)
    assert statistics.columns["price"].null_fraction == 0.5


def test_columns_without_a_header_are_numbered(tmp_path):
    (tmp_path / "x.csv").write_text("1,a\n")
    assert csv_source(tmp_path / "x.csv")[2].names == ["column_0", "column_1"]


def test_a_header_says_where_the_columns_of_a_schema_are(tmp_path):
    (tmp_path / "x.csv").write_text("t,more,n\na,?,1\n")
    spec, _, schema = csv_source(tmp_path / "x.csv", NUMBERED, CsvOptions(header=True))
    assert schema == NUMBERED
    assert pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc)).names == ["t", "more", "n"]
    with pytest.raises(SchemaError, match="the header has no x; it has t, more, n"):
        csv_source(tmp_path / "x.csv", pa.schema([("x", pa.int64())]), CsvOptions(header=True))


def test_a_sample_estimates_rows_distinct_values_and_heavy_keys(tmp_path):
    chooser = random.Random(1)
    rows = 200_000
    with (tmp_path / "x.csv").open("w") as file:
        for number in range(rows):
            heavy = "big" if chooser.random() < 0.5 else f"k{chooser.randrange(1_000_000)}"
            file.write(f"{number},{heavy},{number % 5}\n")
    schema = pa.schema([("id", pa.int64()), ("key", pa.string()), ("few", pa.int64())])
    _, statistics, _ = csv_source(tmp_path / "x.csv", schema)
    assert statistics.origin.startswith("sample of ")
    assert not statistics.is_exact
    assert abs(statistics.row_count - rows) < rows * 0.05
    assert statistics.columns["id"].distinct_count > rows * 0.8
    assert statistics.columns["few"].distinct_count == 5
    (text, share), *others = statistics.columns["key"].heavy_keys
    assert (text, others) == ("big", [])
    assert abs(share - 0.5) < 0.1
    assert 2 < statistics.columns["key"].average_width_bytes < 8


def test_paths_are_files_folders_globs_or_lists(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text("1,a\n")

    def names(path):
        return [path.rpartition("/")[2] for path in csv_source(path, NUMBERED)[0].paths]

    assert names(tmp_path) == ["a.csv", "b.csv", "c.txt"]
    assert names(f"{tmp_path}/*.csv") == ["a.csv", "b.csv"]
    assert names([tmp_path / "b.csv", str(tmp_path / "a.csv")]) == ["b.csv", "a.csv"]


@pytest.mark.parametrize("path", ["none.csv", "*.none", "empty"])
def test_no_file_is_an_error(tmp_path, path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(PlanError, match=r"read_csv\("):
        csv_source(tmp_path / path, NUMBERED)


def test_options_are_checked(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("1,a\n")
    for options in (
        {"delimiter": ";;"},
        {"delimiter": "\n"},
        {"quote": ","},
        {"on_bad_row": "ignore"},
        {"null_values": 7},
        {"null_values": {"n": [1]}},
        {"skip_rows": -1},
        {"skip_rows": True},
        {"comment": ""},
        {"comment": "é"},
        {"comment": ","},
        {"date_format": 7},
        {"date_format": {"n": None}},
        {"date_format": "day"},
    ):
        with pytest.raises(ConfigurationError):
            csv_source(path, NUMBERED, CsvOptions(**options))
    with pytest.raises(SchemaError, match="cannot be read as list"):
        csv_source(path, pa.schema([("n", pa.list_(pa.int64())), ("t", pa.string())]))
    with pytest.raises(SchemaError, match=r"must be a pyarrow\.Schema"):
        csv_source(path, {"n": int})
    (tmp_path / "x.csv.zip").write_bytes(b"")
    with pytest.raises(PlanError, match="a zip archive"):
        csv_source(tmp_path / "x.csv.zip", NUMBERED)
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(SchemaError, match="pass schema="):
        csv_source(tmp_path / "empty.csv")


@pytest.mark.parametrize("quoted", [False, True])
def test_splits_cover_the_file_between_records_and_are_even(tmp_path, quoted):
    path = tmp_path / "x.csv"
    field = '"a,\nb"' if quoted else "abcdef"
    with path.open("w") as file:
        for number in range(400_000):
            file.write(f"{number},{field}\n")
    spec, _, _ = csv_source(path, NUMBERED, parallelism=2)
    exact = exact_splits(spec, 2).splits
    data = path.read_bytes()
    assert exact[0].start == 0
    assert exact[-1].end == len(data)
    for one, other in pairwise(exact):
        assert one.end == other.start
        assert data[other.start :].split(b",")[0].isdigit()
        assert data[one.end - 1 : one.end] == b"\n"
    sizes = [split.size_bytes for split in exact]
    assert max(sizes) - min(sizes) < 200
    assert len(exact) == len(spec.splits)


def test_files_are_cut_only_between_shares_and_not_near_their_ends():
    large = 100 << 20
    assert share_boundaries([10, 20], 4) == [[], []]
    assert share_boundaries([700_000] * 4, 8) == [[], [], [], []]
    assert share_boundaries([large], 1) == [[]]
    assert share_boundaries([large], 4) == [[large // 4, large // 2, large * 3 // 4]]
    assert share_boundaries([large] * 4, 2) == [[], [], [], []]
    assert share_boundaries([large, large + 1000], 2) == [[], []]
    assert share_boundaries([large] * 3, 2) == [[], [large // 2], []]
    assert share_boundaries([3 << 20], 64) == [[1 << 20, 2 << 20]]


@given(st.lists(st.integers(0, 1 << 30), max_size=20), st.integers(1, 16))
def test_shares_of_the_cut_files_differ_little(sizes, parallelism):
    cuts = share_boundaries(sizes, parallelism)
    splits = [
        SourceSplit("x", begin, end, end - begin)
        for size, inner in zip(sizes, cuts, strict=True)
        for begin, end in pairwise([0, *inner, size])
    ]
    shares = [sum(split.size_bytes for split in run) for run in assign_splits(splits, parallelism)]
    share_count = max(1, min(parallelism, round(sum(sizes) / SHARE_BYTES_MIN)))
    assert max(shares) <= 1.05 * sum(sizes) / share_count + SHARE_BYTES_MIN


def test_a_quote_just_behind_a_cut_is_seen(tmp_path):
    path = tmp_path / "x.csv"
    rows = "1,a\n" * (3 << 18)
    target = len(rows)
    path.write_text(rows + '2,"x\n9,y"\n' + rows)
    assert record_boundaries(str(path), [target], CsvDialect.of(",", '"')) == [target + len('2,"x\n9,y"\n')]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_another_delimiter_is_asked_about(tmp_path, delimiter, header):
    (tmp_path / "x.csv").write_text(f"a{delimiter}b\n1{delimiter}2,5\n")
    with pytest.raises(
        SchemaError, match=rf"Expected 1 columns, got 2.*; pass delimiter={re.escape(repr(delimiter))}, or"
    ):
        csv_source(tmp_path / "x.csv", options=CsvOptions(header=header))


@pytest.mark.parametrize(
    ("text", "header", "place"),
    [
        ("a,b\n1,2\n\n1,2,3\n", True, "line 4"),
        ("1,2\n1,2,3\n", False, "line 2"),
        ('a,b\n"1",2\n1,2,3\n', True, "record 2 behind the header"),
        ('"1",2\n1,2,3\n', False, "record 2"),
    ],
)
def test_a_record_that_no_schema_comes_from_is_named_by_its_line(tmp_path, text, header, place):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(SchemaError, match=rf"no schema can be inferred: CSV parse error: {place}: Expected 2 columns"):
        csv_source(tmp_path / "x.csv", options=CsvOptions(header=header))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a,b\n1,2\n3\n", "pass ragged_rows='fit', or on_bad_row='skip'"),
        ("# of March\na,b\n1,2\n", "pass comment='#'"),
        ("a\n1;5\n2;5;7\n1,3\n", "pass delimiter=';'"),
    ],
)
def test_the_option_to_pass_is_named_where_no_schema_can_be_inferred(tmp_path, text, advice):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(SchemaError, match=re.escape(advice)):
        csv_source(tmp_path / "x.csv", options=CsvOptions(header=True))
