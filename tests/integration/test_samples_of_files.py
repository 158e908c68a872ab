"""What is found out about files before a job comes from all over them: types and members of later files, too."""

import gzip
import json
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import col
from engine.errors import DreyWarning, JobExecutionError, SchemaError


def rows(data):
    return [tuple(row) for row in data.collect()]


@pytest.fixture
def place(tmp_path):
    """Return a function (name, texts) that makes a folder of files."""

    def place_it(name, texts, ending=".csv"):
        folder = tmp_path / name
        folder.mkdir()
        for index, text in enumerate(texts):
            (folder / f"{index:04d}{ending}").write_text(text)
        return folder

    return place_it


CSV = {
    "int and double": (["1\n", "2.5\n"], pa.float64(), [1.0, 2.5]),
    "int and text": (["1\n", "2\n", "x\n"], pa.string(), ["1", "2", "x"]),
    "nothing and int": (["a\n", "a\n7\n"], pa.int64(), [7]),
    "date and timestamp": (["2024-01-01\n", "2024-01-02T03:04:05\n"], pa.timestamp("s"), None),
    "bool and int": (["true\n", "1\n"], pa.string(), ["true", "1"]),
    "code": (["1\n", "2\n", "007\n"], pa.string(), ["1", "2", "007"]),
}


@pytest.mark.parametrize("case", CSV)
def test_types_of_csv_hold_what_any_file_begins_with(environment, place, case):
    texts, data_type, values = CSV[case]
    header = case == "nothing and int"
    data = environment.read_csv(place("in", texts), header=header)
    assert data.schema.types == [data_type]
    found = sorted(row[0] for row in rows(data))
    assert values is None or found == sorted(values)


def test_types_of_csv_come_from_the_last_of_many_files_too(environment, place):
    folder = place("in", ["1,x\n"] * 200 + ["2.5,y\n"])
    data = environment.read_csv(folder)
    assert data.schema.types == [pa.float64(), pa.string()]
    assert data.filter(col("column_0") > 2).count() == 1


# ---- members of JSON lines


def line(number, **more):
    return json.dumps({"a": number, **more}) + "\n"


def test_members_of_every_small_file_are_columns(environment, place):
    texts = [line(index) for index in range(150)]
    texts[101] += line(1, late="x", deep={"x": [{"y": 1}]})
    data = environment.read_json(place("in", texts, ".json"))
    assert data.columns == ["a", "late", "deep"]
    assert data.filter(col("late").is_not_null()).count() == 1


@pytest.mark.parametrize("form", ["ordinary", "escaped names", "compressed", "skipped"])
def test_a_member_outside_of_the_sample_is_told_with_file_and_line(environment, tmp_path, form):
    count = 40_000
    lines = [line(index, s={"x": index}) for index in range(count)]
    lines[23_456] = line(1, late=2, s={"x": 3, "y": 4}, list=[{"z": 5}])
    lines[30_000] = line(1, late=2)
    if form == "escaped names":
        lines = [text.replace('{"a"', '{"\\u00e9": 0, "a"') for text in lines]
    paths = [tmp_path / f"{index}.json" for index in range(40)]
    for path in paths:
        path.write_text(line(0, s={"x": 1}, **{"é": 0} if form == "escaped names" else {}) * 3000)
    big = tmp_path / ("20.json.gz" if form == "compressed" else "20.json")
    big.write_bytes(gzip.compress("".join(lines).encode()) if form == "compressed" else "".join(lines).encode())
    data = environment.read_json(tmp_path, on_bad_row="skip" if form == "skipped" else "fail")
    assert "late" not in data.columns
    with pytest.warns(DreyWarning) as told:
        table = data.to_arrow()
    assert table.num_rows == count + (40 if form == "compressed" else 39) * 3000
    texts = sorted(str(each.message) for each in told)
    assert [text.split("'")[1] for text in texts] == ["late", "list", "s.y"]
    assert all(f"it is in {big}, line 23457; pass schema= with it" in text for text in texts)
    with pytest.warns(DreyWarning, match="the member 'late' is not read"):
        assert data.count() == table.num_rows
    data.select("a").write_csv(tmp_path / "out")
    with pytest.warns(DreyWarning, match="the member 'late' is not read"):
        result = environment.execute()
    assert [note for note in result.notes if "'late'" in note]


def test_a_schema_says_which_members_are_meant(environment, place):
    folder = place("in", [line(1, b=2), line(3, c=4)], ".json")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DreyWarning)
        assert rows(environment.read_json(folder, pa.schema([("a", pa.int64())]))) == [(1,), (3,)]
        assert rows(environment.read_json(folder).select("a")) == [(1,), (3,)]


def test_malformed_lines_of_later_files_do_not_hide_what_is_in_them(environment, place):
    folder = place("in", [line(1), "no object\n" + line(2, b="x")], ".json")
    data = environment.read_json(folder, on_bad_row="skip")
    assert data.columns == ["a", "b"]
    with pytest.warns(DreyWarning, match="1 malformed rows"):
        assert sorted(rows(data)) == [(1, None), (2, "x")]
    with pytest.raises(SchemaError, match=r"0001\.json'\): no schema can be inferred: .* in line 1"):
        environment.read_json(folder)


def test_columns_of_every_parquet_file_are_in_a_union(environment, tmp_path):
    for index in range(130):
        table = pa.table({"a": [index], **({"late": ["x"]} if index == 77 else {})})
        (tmp_path / "in" / f"k={index % 3}").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, tmp_path / "in" / f"k={index % 3}" / f"{index}.parquet")
    data = environment.read_parquet(tmp_path / "in", schema_mode="union")
    assert data.columns == ["a", "late", "k"]
    assert data.filter(col("late").is_not_null()).count() == 1
    with pytest.raises((SchemaError, JobExecutionError), match="late"):
        environment.read_parquet(tmp_path / "in").to_arrow()
