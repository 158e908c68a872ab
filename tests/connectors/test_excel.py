"""Sheets of Excel: against xlsxwriter, python-calamine and pandas, and what they do not keep is refused."""

import datetime as dt
import re
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
import python_calamine
import xlsxwriter

from engine import Environment, col
from engine.errors import ConfigurationError, DataError, PlanError, SchemaError

TABLE = pa.table(
    {
        "n": pa.array([1, None, -(2**53)]),
        "x": pa.array([1.5, 2.0, None]),
        "s": pa.array(["=1+1", None, "http://a"]),
        "b": pa.array([True, None, False]),
        "d": pa.array([dt.date(1900, 1, 1), dt.date(2024, 2, 29), None]),
        "t": pa.array([dt.datetime(2024, 2, 29, 12, 30, 1), None, dt.datetime(1999, 12, 31)], pa.timestamp("us")),
        "c": pa.array([dt.time(1, 2, 3), None, dt.time(23, 59)], pa.time64("us")),
    }
)


def book(path, rows, name="Data", others=()):
    with xlsxwriter.Workbook(path) as made:
        for other in others:
            made.add_worksheet(other)
        sheet = made.add_worksheet(name)
        day = made.add_format({"num_format": "yyyy-mm-dd"})
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                if isinstance(cell, dt.date):
                    sheet.write_datetime(row, column, cell, day)
                elif cell is not None:
                    sheet.write(row, column, cell)
    return path


def test_what_is_written_reads_back(tmp_path):
    with Environment() as env:
        env.from_arrow(TABLE).write_excel(tmp_path / "a.xlsx", sheet="First")
        env.execute()
        assert [each.name for each in tmp_path.iterdir()] == ["a.xlsx"]
        found = env.read_excel(tmp_path / "a.xlsx", "First")
        assert found.to_arrow().equals(TABLE)
        assert found.filter(col("n") < 5).select("s").to_arrow().to_pydict() == {"s": ["=1+1", "http://a"]}
        assert found.count() == 3
        assert "objects of Python" in found.explain()
    rows = python_calamine.load_workbook(tmp_path / "a.xlsx").get_sheet_by_name("First").to_python()
    assert rows[0] == TABLE.schema.names
    assert rows[1] == [1, 1.5, "=1+1", True, dt.date(1900, 1, 1), dt.datetime(2024, 2, 29, 12, 30, 1), dt.time(1, 2, 3)]


def test_types_are_those_of_all_cells_and_sheets_are_named_or_numbered(tmp_path):
    rows = [["report"], ["k", "n", "n", None, "d"], ["a", 1, 2.5, None, dt.date(2024, 1, 1)], ["b", 2, 3, None, None]]
    book(tmp_path / "a.xlsx", rows, others=["Empty"])
    with Environment() as env:
        for sheet in ("Data", 2):
            found = env.read_excel(tmp_path / "a.xlsx", sheet, skip_rows=1)
            assert found.schema == pa.schema(
                [
                    ("k", pa.string()),
                    ("n", pa.int64()),
                    ("n_1", pa.float64()),
                    ("column_3", pa.string()),
                    ("d", pa.date32()),
                ]
            )
            assert found.to_arrow()["n_1"].to_pylist() == [2.5, 3.0]
        plain = env.read_excel(tmp_path / "a.xlsx", 2, header=False, skip_rows=2)
        assert plain.columns[:2] == ["column_0", "column_1"] and plain.count() == 2
        with pytest.raises(SchemaError, match="sheet 'Empty' is empty"):
            env.read_excel(tmp_path / "a.xlsx")
        with pytest.warns(match="texts and other values are in m, read as text"):
            book(tmp_path / "b.xlsx", [["m"], ["x"], [3], [2.5], [True]])
            mixed = env.read_excel(tmp_path / "b.xlsx")
        assert mixed.to_arrow()["m"].to_pylist() == ["x", "3", "2.5", "true"]


def test_files_of_a_list_go_by_the_names_of_their_columns(tmp_path):
    book(tmp_path / "a.xlsx", [["k", "n"], ["a", 1]])
    book(tmp_path / "b.xlsx", [["n", "k"], [2.5, "b"]])
    book(tmp_path / "c.xlsx", [["n"], [2.5]])
    with Environment() as env:
        found = env.read_excel([tmp_path / "a.xlsx", tmp_path / "b.xlsx"], file_name_column="file").sort("k").to_arrow()
        assert found["n"].to_pylist() == [1.0, 2.5]
        assert [name[-6:] for name in found["file"].to_pylist()] == ["a.xlsx", "b.xlsx"]
        with pytest.raises(SchemaError, match=r"c\.xlsx, sheet 'Data' has no k; its columns are n"):
            env.read_excel([tmp_path / "a.xlsx", tmp_path / "c.xlsx"])
        assert env.sql(f"SELECT sum(n) AS s FROM read_excel('{tmp_path}/b.xlsx', sheet = 1)").collect()[0].s == 2.5


def test_a_cell_of_another_type_is_named(tmp_path):
    book(tmp_path / "a.xlsx", [["k", "n"], ["a", 1], ["b", "many"], ["c", 1.5]])
    with Environment() as env:
        for data_type in (pa.int64(), pa.float64(), pa.date32(), pa.decimal128(9, 2)):
            schema = pa.schema([("n", data_type)])
            cell = r"B2 \(n\): 1.0" if data_type == pa.date32() else r"B3 \(n\): 'many'"
            with pytest.raises(DataError, match=rf"sheet 'Data', cell {cell} is not {re.escape(str(data_type))}"):
                env.read_excel(tmp_path / "a.xlsx", schema=schema).collect()
        assert env.read_excel(tmp_path / "a.xlsx", schema=pa.schema([("k", pa.string())])).count() == 3


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([2**53 + 1]), "has more digits than a number of Excel; cast it to string"),
        (pa.array([Decimal("0.12345678901234567891")]), "has more digits than a number of Excel"),
        (pa.array([float("nan")]), "is no number of Excel"),
        (pa.array([dt.date(1899, 12, 31)]), "is before 1900"),
        (pa.array(["x" * 32_768]), "has more than the 32,767 characters of a cell"),
    ],
)
def test_what_excel_does_not_keep_fails(tmp_path, column, said):
    with Environment() as env:
        env.from_arrow(pa.table({"v": column})).write_excel(tmp_path / "a.xlsx")
        with pytest.raises(DataError, match=said):
            env.execute()
    assert not list(tmp_path.iterdir())


def test_empty_rows_above_a_table_and_numbers_as_names(tmp_path):
    rows = [[None], [None], [None, 2019, 2.5, True, dt.date(2024, 1, 1)], [None, 1], [None], [None, 3, 4, "x"]]
    book(tmp_path / "a.xlsx", rows)
    names = ["2019", "2.5", "true", "2024-01-01"]
    with Environment() as env:
        found = env.read_excel(tmp_path / "a.xlsx")
        assert found.schema.names == names
        assert found.to_arrow()["2019"].to_pylist() == [1, None, 3]
        for skip_rows in (1, 2):
            assert env.read_excel(tmp_path / "a.xlsx", skip_rows=skip_rows).to_dicts() == found.to_dicts()
        schema = pa.schema([(name, pa.int64()) for name in names])
        with pytest.raises(DataError, match=r"cell D6 \(true\): 'x' is not int64"):
            env.read_excel(tmp_path / "a.xlsx", schema=schema).collect()


def test_without_a_header_a_schema_names_columns_by_position(tmp_path):
    book(tmp_path / "a.xlsx", [["a", 1], ["b", 2]])
    schema = pa.schema([("k", pa.string()), ("n", pa.float64())])
    with Environment() as env:
        found = env.read_excel(tmp_path / "a.xlsx", schema=schema, header=False)
        assert found.select("n").to_dict() == {"n": [1.0, 2.0]}
        assert found.to_dicts() == [{"k": "a", "n": 1.0}, {"k": "b", "n": 2.0}]
        with pytest.raises(SchemaError, match="has 2 columns, and schema= 1; without a header each column needs"):
            env.read_excel(tmp_path / "a.xlsx", schema=schema.remove(0), header=False)


def test_numbers_keep_all_digits(tmp_path):
    values = [0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e22, 123456789.123456789]
    exact = [Decimal("0.1234567890123456"), Decimal("-12345678901234.56"), *[None] * 5]
    table = pa.table({"x": values, "m": pa.array(exact, pa.decimal128(38, 16))})
    with Environment() as env:
        env.from_arrow(table).write_excel(tmp_path / "a.xlsx")
        env.execute()
        assert env.read_excel(tmp_path / "a.xlsx", schema=table.schema).to_arrow().equals(table)
        with pytest.raises(
            ConfigurationError, match=r"a\.xls'\): programs know the file by its ending; name it \.xlsx"
        ):
            env.from_arrow(table).write_excel(tmp_path / "a.xls")


def test_mistakes_say_what_to_do(tmp_path, monkeypatch):
    book(tmp_path / "a.xlsx", [["k"], ["a"]])
    (tmp_path / "b.xlsx").write_bytes(b"no")
    with Environment() as env:
        for sheet in ("data", 0, 2):
            with pytest.raises(PlanError, match=f"has no sheet {sheet!r}; it has 'Data', and numbers count from 1"):
                env.read_excel(tmp_path / "a.xlsx", sheet)
        with pytest.raises(PlanError, match=r"b\.xlsx is not a whole file of Excel or OpenDocument"):
            env.read_excel(tmp_path / "b.xlsx")
        with pytest.raises(ConfigurationError, match="skip_rows=-1: must be a number of rows, 0 or more"):
            env.read_excel(tmp_path / "a.xlsx", skip_rows=-1)
        with pytest.raises(TypeError, match=r"has no option sheet_name=: write sheet=, a name, or a number"):
            env.read_excel(tmp_path / "a.xlsx", sheet_name="x")
        rows = env.from_arrow(pa.table({"l": [[1]], "z": pa.array([0], pa.timestamp("us", "UTC"))}))
        with pytest.raises(SchemaError, match="'l' is list<item: int64>, which Excel has not; drop or cast it"):
            rows.select("l").write_excel(tmp_path / "c.xlsx")
        with pytest.raises(SchemaError, match=r"'z' is timestamp.*, and Excel has no time zones"):
            rows.select("z").write_excel(tmp_path / "c.xlsx")
        monkeypatch.setitem(sys.modules, "python_calamine", None)
        with pytest.raises(ConfigurationError, match=r"calamine; install it: pip install 'drey-engine\[excel\]'"):
            env.read_excel(tmp_path / "a.xlsx")
        monkeypatch.setitem(sys.modules, "xlsxwriter", None)
        with pytest.raises(ConfigurationError, match=r"xlsxwriter; install it: pip install 'drey-engine\[excel\]'"):
            rows.select(x=1).write_excel(tmp_path / "c.xlsx")
