"""Text whose columns have fixed widths: against pandas, and lines that are passed over whatever the splits."""

import gzip

import pandas as pd
import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import ConfigurationError, DataError, SchemaError


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 4}) as made:
        yield made


LINES = ["id   name    price", "1    Ä b     1.50", "2    x", "", "30000y y y y 2.25 more", "   4        -", "  "]
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


def test_columns_are_those_of_pandas(env, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(LINES) + "\n")
    found = env.read_fwf(path, [5, 8, 5], SCHEMA, skip_rows=1, null_values=["-", "n/a"]).to_arrow()
    frame = pd.read_fwf(path, widths=[5, 8, 5], header=None, names=SCHEMA.names, skiprows=1, na_values=["-", "n/a"])
    expected = pa.Table.from_pandas(frame, SCHEMA, preserve_index=False)
    assert found.equals(expected.replace_schema_metadata(None))
    rest = env.read_fwf(path, colspecs=[(13, None), (0, 2)]).to_arrow()
    assert rest.to_pydict() == {
        "column_0": ["price", "1.50", None, "2.25 more", None],
        "column_1": ["id", "1", "2", "30", None],
    }


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("skip_rows", [0, 1, 9_999, 10_000, 20_000])
def test_first_lines_are_passed_over_whatever_the_splits(env, tmp_path, skip_rows, ending):
    text = "\ufeff" + "".join(f"{number:5d}\r\n" for number in range(10_000))
    data = text.encode()
    (tmp_path / f"a.txt{ending}").write_bytes(gzip.compress(data) if ending else data)
    found = env.read_fwf(tmp_path / f"a.txt{ending}", [5], pa.schema([("n", pa.int64())]), skip_rows=skip_rows)
    assert sorted(found.to_arrow()["n"].to_pylist()) == list(range(10_000))[skip_rows:]


def test_mistakes_say_what_to_do(env, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 a\n")
    for options, said in (
        ({}, r"pass widths=\[7, 6\], or colspecs="),
        ({"widths": [1], "colspecs": [(0, 1)]}, r"pass widths=\[7, 6\], or colspecs="),
        ({"widths": [1, 0]}, "widths= has 0, which is no number of characters"),
        ({"widths": []}, "there is no column"),
        ({"colspecs": [(3, 2)]}, r"colspecs= has \(3, 2\): expected begin and end"),
        ({"widths": [1], "skip_rows": -1}, "skip_rows=-1: must be a number of lines"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            env.read_fwf(path, **options)
    with pytest.raises(SchemaError, match="schema= has 3 columns, and 1 have a width"):
        env.read_fwf(path, [1], SCHEMA)
    with pytest.raises(DataError, match="'a'"):
        env.read_fwf(path, [2, 1], pa.schema([("n", pa.int64()), ("m", pa.int64())])).collect()
    with pytest.raises(TypeError, match=r"read_fwf\(\) has no option skiprows=: write skip_rows="):
        env.read_fwf(path, [1], skiprows=1)


KINDS = {
    "int64": ["1", "-20", "300"],
    "double": ["1.5", "1e3", "-.25"],
    "string": ["007", "12", "8"],
    "bool": ["true", "FALSE", "True"],
    "date32[day]": ["2024-02-29", "1999-01-01", "0001-01-01"],
    "timestamp[s]": ["2024-02-29 10:11:12", "2024-02-29T10:11", "1970-01-01 00:00"],
    "timestamp[s, tz=UTC]": ["2024-02-29T10:11:12Z", "2024-02-29 10:11:12+02:00", "1970-01-01T00:00:00Z"],
    "time": ["10:11:12", "23:59:59", "00:00:00"],
}


@pytest.mark.parametrize("nulls", [(), ("-", "n/a")])
def test_types_are_those_that_read_csv_infers(env, tmp_path, nulls):
    rows = [*zip(*KINDS.values(), strict=True), [*nulls, *[""] * len(KINDS)][: len(KINDS)]]
    (tmp_path / "a.txt").write_text("".join("".join(each.ljust(27) for each in row) + "\n" for row in rows))
    (tmp_path / "a.csv").write_text("".join(";".join(row) + "\n" for row in rows))
    found = env.read_fwf(tmp_path / "a.txt", [27] * len(KINDS), null_values=nulls).to_arrow()
    expected = env.read_csv(tmp_path / "a.csv", delimiter=";", null_values=("", *nulls)).to_arrow()
    assert [str(each) for each in found.schema.types] == [*[*KINDS][:-1], "string"]  # a time of day stays text
    expected = expected.set_column(len(KINDS) - 1, f"column_{len(KINDS) - 1}", expected[-1].cast(pa.string()))
    kept = expected.filter(pa.array([True] * 3 + [bool(nulls)]))  # a line of blanks alone is no row
    assert found.equals(kept)


def test_so_many_rows_decide_and_those_behind_them_must_be_of_the_types(env, tmp_path):
    (tmp_path / "a.txt").write_text("x y\n\n1 2\n3 4\n5 a\n")
    assert env.read_fwf(tmp_path / "a.txt", [2, 1], skip_rows=1, infer_rows=0).schema.types == [pa.string()] * 2
    three = env.read_fwf(tmp_path / "a.txt", [2, 1], skip_rows=1)
    assert three.to_dict() == {"column_0": [1, 3, 5], "column_1": ["2", "4", "a"]}
    two = env.read_fwf(tmp_path / "a.txt", [2, 1], skip_rows=1, infer_rows=2)
    assert two.schema.types == [pa.int64()] * 2
    with pytest.raises(DataError, match="line='5 a'"):
        two.collect()
    with pytest.raises(ConfigurationError, match="infer_rows=-1: must be a number of rows, 0 for texts alone"):
        env.read_fwf(tmp_path / "a.txt", [2, 1], infer_rows=-1)


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_what_is_behind_the_first_megabyte_has_a_say(env, tmp_path, ending):
    data = "".join(f"{number:{'0' if number > 150_000 else ''}8d}\n" for number in range(300_000)).encode()
    (tmp_path / f"a.{ending}").write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    types = env.read_fwf(tmp_path / f"a.{ending}", [8]).schema.types
    assert types == [pa.int64() if ending.endswith("gz") else pa.string()]
    (tmp_path / "b.txt").write_text("     1.5\n")
    assert env.read_fwf([tmp_path / f"a.{ending}", tmp_path / "b.txt"], [8], infer_rows=5).schema.types == [pa.int64()]


@pytest.mark.parametrize("encoding", ["cp1252", "cp500", "utf-16-le"])
def test_encodings_and_folders_of_values(env, tmp_path, encoding):
    (tmp_path / "k=3").mkdir()
    (tmp_path / "k=3" / "a.txt").write_bytes("Zürich   12\nÄ\n".encode(encoding))
    found = env.read_fwf(tmp_path, [7, 4], encoding=encoding)
    assert found.to_dict() == {"column_0": ["Zürich", "Ä"], "column_1": [12, None], "k": [3, 3]}
    assert env.read_text(tmp_path, encoding=encoding).to_dict()["line"] == ["Zürich   12", "Ä"]
    if encoding == "cp1252":
        with pytest.raises(DataError, match=r"read_fwf\(.*a line of the files is not UTF-8 .*; pass encoding='cp1252'"):
            env.read_fwf(tmp_path, [7, 4])
    with pytest.raises(ConfigurationError, match="encoding='klingon': Python knows none of this name"):
        env.read_fwf(tmp_path, [7, 4], encoding="klingon")
