"""The page of rooms has every room once, with its layer and what it is."""

import re

from docs.generators.room_page import rooms_page
from tests.tidy.imports import ROOT, room_of, source_files
from tests.tidy.layers import LAYERS

_ROW = re.compile(r"(?m)^\| ([\w ]+) \| `(\w+)` \| (.+) \|$")


def test_every_room_has_a_row_that_says_what_it_is():
    rows = _ROW.findall(rooms_page(ROOT, LAYERS))
    rooms = {room_of(path) for path in source_files()} - {"__init__", "examples"}
    assert sorted(room for _, room, _ in rows) == sorted(rooms)
    assert [room for _, room, what in rows if len(what) < 20] == []


def test_the_highest_layer_comes_first(tmp_path):
    for room in ("low", "high"):
        (tmp_path / "engine" / room).mkdir(parents=True)
        (tmp_path / "engine" / room / "__init__.py").write_text(f'"""Rooms that are {room}.\n\nMore."""\n')
    (tmp_path / "engine" / "one.py").write_text('"""One module."""\n')
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "__init__.py").write_text('"""Leaders."""\n')
    assert _ROW.findall(rooms_page(tmp_path, (("low", "one"), ("high",)))) == [
        ("1", "high", "Rooms that are high."),
        ("0", "low", "Rooms that are low."),
        ("0", "one", "One module."),
        ("beside them", "ha", "Leaders."),
    ]
