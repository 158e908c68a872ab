"""Cells of a sheet that are errors of Excel, such as #DIV/0!: the library gives them as empty ones.

    error_cells(path or file, "Data") -> (2, ["A3", "A4"])      of .xlsx and .xlsm; of other files (0, [])

The text of the sheet is searched as it is unpacked, for cells of the type "e".

Held by: tests/connectors/test_excel_errors.py
"""

from __future__ import annotations

import html
import re
import zipfile
from collections.abc import Iterator
from typing import BinaryIO, Final

_CELL: Final = re.compile(rb"<(?:\w+:)?c\s[^<>]*?\bt=[\"']e[\"'][^<>]*>")
_PLACE: Final = re.compile(rb"\br=[\"'](\w+)[\"']")
_CHUNK_BYTES: Final = 1 << 20
#: limit of cells that are named
_NAMED_MAX: Final = 5


def error_cells(book: str | BinaryIO, sheet: str) -> tuple[int, list[str]]:
    """Return the number of cells of a sheet that are errors, and the names of the first."""
    count = 0
    named: list[str] = []
    try:
        with zipfile.ZipFile(book) as files, files.open(_member(files, sheet)) as text:
            rest = b""
            while chunk := text.read(_CHUNK_BYTES):
                rest += chunk
                end = rest.rfind(b">") + 1
                for cell in _CELL.findall(rest, 0, end):
                    count += 1
                    place = _PLACE.search(cell)
                    named += [place[1].decode()] if place and len(named) < _NAMED_MAX else []
                rest = rest[end:]
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError):
        return 0, []  # .xls, .xlsb and .ods
    return count, named


def _member(files: zipfile.ZipFile, sheet: str) -> str:
    """Return the file of a sheet in an archive. Raises: KeyError."""
    sheets = _elements(files.read("xl/workbook.xml"), "sheet")
    relation = next((one.get("r:id") for one in sheets if one.get("name") == sheet), None)
    for one in _elements(files.read("xl/_rels/workbook.xml.rels"), "Relationship"):
        if relation is not None and one.get("Id") == relation:
            return one["Target"][1:] if one["Target"].startswith("/") else f"xl/{one['Target']}"
    raise KeyError(sheet)


def _elements(text: bytes, name: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of elements."""
    for found in re.findall(rf"<(?:\w+:)?{name}\s([^<>]*)>", text.decode()):
        yield {key: html.unescape(value) for key, value in re.findall(r"([\w:]+)=\"([^\"]*)\"", found)}
