"""What is found out about files before a job comes from all over them: types and members of later files, too."""

import pyarrow as pa
import pytest

from engine import col


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
