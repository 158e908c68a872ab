"""Names of CSV columns in whole jobs: none, twice, in another order; delimiters that end lines; marks, encodings."""

import gzip
import io
import warnings

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from engine.errors import DataError, DreyWarning, JobExecutionError, PlanError

TWO = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.fixture
def read(environment, tmp_path):
    """Return a function (text, or texts by name) -> data set."""

    def read_it(files, schema=None, header=True, **options):
        folder = tmp_path / f"in{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for name, data in (files if isinstance(files, dict) else {"a.csv": files}).items():
            (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return environment.read_csv(folder, schema, header=header, **options)

    return read_it


def rows(data):
    return [tuple(row) for row in data.collect()]


def failure(data):
    with pytest.raises((JobExecutionError, DataError)) as caught:
        data().collect()
    return str(caught.value)


def test_the_index_of_pandas_is_a_column_with_a_name(read):
    text = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_csv()
    data = read(text)
    assert data.columns == ["column_0", "a", "b"]
    assert rows(data) == [(0, 1, "x"), (1, 2, "y")]
    assert "named column_0 for no name" in data.explain()
    assert rows(read(text, TWO)) == [(1, "x"), (2, "y")]
    assert rows(read(text).select("b")) == [("x",), ("y",)]


def test_a_name_that_is_there_twice_gets_a_number_and_is_told(read):
    text = "a,b,a,a\n1,x,2,3\n"
    with pytest.warns(
        DreyWarning, match="the header has names twice, and columns are called a_1 for a second 'a', a_2"
    ):
        data = read(text)
    assert data.columns == duckdb.read_csv(io.StringIO(text)).columns == ["a", "b", "a_1", "a_2"]
    assert rows(data) == [(1, "x", 2, 3)]
    with pytest.warns(DreyWarning, match="names twice"):
        assert rows(read(text, pa.schema([("a_2", pa.int64()), ("a", pa.int64())]))) == [(3, 1)]


ENDED = {
    "header and rows": "a,b,\n1,x,\n2,y,\n",
    "rows": "a,b\n1,x,\n2,y,\n",
    "no header": "1,x,\n2,y,\n",
    "returns": "a,b\r\n1,x,\r\n2,y,\r\n",
    "other delimiter": "a;b\n1;x;\n2;y;\n",
}


@pytest.mark.parametrize("case", ENDED)
def test_a_delimiter_may_end_each_line(read, case):
    options = {"header": case != "no header", "delimiter": ";" if case == "other delimiter" else ","}
    assert rows(read(ENDED[case], TWO, **options)) == [(1, "x"), (2, "y")]
    assert rows(read(ENDED[case], TWO, **options).select("b")) == [("x",), ("y",)]
    assert read(ENDED[case], TWO, **options).count() == 2
    inferred = rows(read(ENDED[case], **options))
    assert [row[:2] for row in inferred] == [(1, "x"), (2, "y")]
    assert all(len(row) == 2 or row[2] is None for row in inferred)


@pytest.mark.parametrize("wanted", [["a", "b"], ["b"]])
def test_what_stands_behind_the_last_delimiter_is_never_lost(read, wanted):
    text = "a,b\n" + "1,x,\n" * 40 + "2,y,lost\n" + "3,z,\n"
    assert "line 42, 3 fields, expected 2: 2,y,lost" in failure(lambda: read(text, TWO).select(*wanted))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DreyWarning)
        assert read(text, TWO, on_bad_row="skip").select(*wanted).count() == 41


@pytest.mark.parametrize("schema", [None, TWO, pa.schema(list(reversed(TWO)))])
def test_files_are_read_by_the_names_of_their_headers(read, schema):
    files = {"1.csv": "a,b\n1,x\n", "2.csv": "b,a\ny,2\n", "3.csv": "", "4.csv": 'b,a\n"z\n",3\n'}
    data = read(files, schema)
    assert data.columns == (["a", "b"] if schema is None else schema.names)
    assert sorted(rows(data.select("a", "b"))) == [(1, "x"), (2, "y"), (3, "z\n")]
    assert sorted(rows(data.select("b"))) == [("x",), ("y",), ("z\n",)]


def test_every_part_of_a_large_file_knows_the_order_of_its_header(environment, tmp_path):
    count = 150_000
    (tmp_path / "1.csv").write_text("a,b\n0,x\n")
    (tmp_path / "2.csv").write_text("b,a\n" + "".join(f"t{index % 7},{index}\n" for index in range(1, count)))
    data = environment.read_csv(tmp_path, TWO, header=True)
    assert max(environment.read_csv(tmp_path / "2.csv", TWO, header=True).to_arrow()["a"].to_pylist()) == count - 1
    found = data.sort("a").to_arrow()
    assert found["a"].to_pylist() == list(range(count))
    assert found["b"].to_pylist()[1:] == [f"t{index % 7}" for index in range(1, count)]


def test_a_schema_says_which_columns_each_file_must_have(read):
    files = {"1.csv": "a,b\n1,x\n", "2.csv": "c,b,a\nu,y,2\n", "3.csv": "a\n3\n"}
    assert sorted(rows(read(files, TWO.remove(1)))) == [(1,), (2,), (3,)]
    assert "3.csv, line 1: the header has no b; it is a, expected a, b" in failure(lambda: read(files, TWO))
    more = {"1.csv": "a,b\n1,x\n", "2.csv": "c,b,a\nu,y,2\n"}
    assert "2.csv, line 1: the header has c, which the first file has not" in failure(lambda: read(more))


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    "values", [["\ufeff", "a"], ["\ufeff\ufeffx"], ['\ufeff"q"', "y"], ["\ufeffa,b"], [None, "\ufeff"]]
)
def test_a_value_that_looks_like_a_mark_comes_back(environment, tmp_path, values, header):
    for name, table in (
        ("one", pa.table({"v": values})),
        ("two", pa.table({"v": values, "n": range(len(values))})),
        ("name", pa.table({"\ufeffv": values})),
    ):
        environment.from_arrow(table).write_csv(tmp_path / name, header=header)
        environment.execute()
        assert environment.read_csv(tmp_path / name, table.schema, header=header).to_arrow() == table, name
    text = pa.table({"line": values})
    environment.from_arrow(text).write_text(tmp_path / "text")
    environment.execute()
    assert environment.read_text(tmp_path / "text").to_arrow()["line"].to_pylist() == [each or "" for each in values]


def test_bytes_that_look_like_a_mark_of_utf16_come_back(environment, tmp_path):
    table = pa.table({"v": pa.array([b"\xff\xfea", b"\xfe\xff"], pa.binary()), "n": [1, 2]})
    environment.from_arrow(table).write_csv(tmp_path / "out")
    environment.execute()
    assert environment.read_csv(tmp_path / "out", table.schema).to_arrow() == table


ENCODED = {
    "utf-16": (None, "utf-16"),
    "utf-16 said": ("utf-16", "utf-16"),
    "utf-16 without a mark": ("utf-16", "utf-16-le"),
    "utf-16-be": ("utf-16-be", "utf-16-be"),
    "utf-32": (None, "utf-32"),
    "iso2022_jp": ("iso2022_jp", "iso2022_jp"),
    "utf-7": ("utf-7", "utf-7"),
    "shift_jis": ("shift_jis", "shift_jis"),
}


@pytest.mark.parametrize("case", ENCODED)
@pytest.mark.parametrize("packed", [False, True])
def test_text_of_any_encoding_is_read(read, case, packed):
    encoding, written = ENCODED[case]
    text = 'a|b\n1|ア\n2|"ｘ\n|y"\n' + "3|z\n" * 5000
    data = text.encode(written)
    files = {"a.csv.gz": gzip.compress(data)} if packed else {"a.csv": data}
    found = rows(read(files, delimiter="|", encoding=encoding))
    assert found[:2] == [(1, "ア"), (2, "ｘ\n|y")]
    assert len(found) == 5002
    assert "line 5005, column 1 (a): 'no' is not int64" in failure(
        lambda: read({"a.csv": (text + "no|z\n").encode(written)}, TWO, delimiter="|", encoding=encoding)
    )


def test_damage_and_files_of_several_encodings_are_named(read):
    good = "a,b\n1,é\n".encode("utf-16")
    assert "its bytes are not utf-16: " in failure(lambda: read(good + b"\x00\xd8\x00", TWO))
    with pytest.raises(
        PlanError, match=r"1\.csv is utf-16, \S+2\.csv is not utf-16; read them as two sources, or convert"
    ):
        read({"1.csv": good, "2.csv": b"a,b\n1,x\n"})
    assert "encoding='utf-16-le'" in failure_of_schema(lambda: read("a,b\n1,x\n".encode("utf-16-le")))


def failure_of_schema(call):
    with pytest.raises(Exception, match="no schema can be inferred") as caught:
        call()
    return str(caught.value)


def test_lines_and_json_in_utf16_are_read_too(environment, tmp_path):
    (tmp_path / "a.json").write_bytes('{"a": "é"}\n{"a": "ア"}\n'.encode("utf-16"))
    (tmp_path / "a.txt").write_bytes("é\nア\n".encode("utf-16"))
    assert rows(environment.read_json(tmp_path / "a.json")) == [("é",), ("ア",)]
    assert rows(environment.read_text(tmp_path / "a.txt")) == [("é",), ("ア",)]
