"""Cells that are errors of Excel: told where the plan is made, since they are read as null."""

import io
import re
import warnings

import pytest
import xlsxwriter

from engine import Environment
from engine.connectors.excel_errors import error_cells
from engine.errors import DreyWarning


@pytest.fixture
def book(tmp_path):
    """Return a file whose second sheet has errors, and whose first has none."""
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as made:
        clean, sheet = made.add_worksheet("Clean"), made.add_worksheet("Data & more")
        clean.write_column(0, 0, ["n", 't="e"', '<c r="A1" t="e">'])
        sheet.write_row(0, 0, ["n", "m"])
        for row in range(1, 8):
            sheet.write_formula(row, 0, "=1/0", None, "#DIV/0!" if row > 1 else 7)
            sheet.write(row, 1, row)
        sheet.write_formula(3, 1, "=NA()", None, "#N/A")
    return tmp_path / "a.xlsx"


def test_errors_are_counted_and_the_first_are_named(book):
    assert error_cells(str(book), "Data & more") == (7, ["A3", "A4", "B4", "A5", "A6"])
    assert error_cells(io.BytesIO(book.read_bytes()), "Data & more")[0] == 7
    assert error_cells(str(book), "Clean") == (0, [])
    assert error_cells(str(book), "missing") == (0, [])
    assert error_cells(io.BytesIO(b"an old file"), "Data") == (0, [])


def test_cells_between_two_chunks_are_found(book, monkeypatch):
    monkeypatch.setattr("engine.connectors.excel_errors._CHUNK_BYTES", 7)
    assert error_cells(str(book), "Data & more") == (7, ["A3", "A4", "B4", "A5", "A6"])


def test_errors_are_told_and_are_null(book):
    with Environment() as env:
        told = "sheet 'Data & more': 7 cells are errors, read as null: A3, A4, B4, A5, A6, ..."
        with pytest.warns(DreyWarning, match=re.escape(told)):
            data = env.read_excel(book, "Data & more")
        assert data.to_dict() == {"n": [7] + [None] * 6, "m": [1, 2, None, 4, 5, 6, 7]}
        with warnings.catch_warnings():
            warnings.simplefilter("error", DreyWarning)
            env.read_excel(book, "Clean")
