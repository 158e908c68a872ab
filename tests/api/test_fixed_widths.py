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
