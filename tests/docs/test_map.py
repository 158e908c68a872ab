"""The map of mechanisms is made from chapters and headers, and misses no module and no test."""

import re

from docs.generators.flink_mechanisms import MECHANISMS, Mechanism
from docs.generators.mechanisms import first_line, header_of, held_by, map_page, named_tests, own_test
from tests.tidy.imports import ROOT


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_room_is_its_chapter_and_a_row_for_each_module(tmp_path):
    _write(tmp_path / "engine" / "__init__.py", '"""The engine."""')
    _write(tmp_path / "engine" / "join" / "__init__.py", '"""Joins.\n\n    probe   looks rows up\n"""')
    _write(tmp_path / "engine" / "join" / "probe.pyx", '"""Probe: ``a | b``, a < b.\n\nHeld by: tests/x/test_y.py\n"""')
    _write(tmp_path / "engine" / "join" / "probe.pxd", "# What others see of it.\n")
    _write(tmp_path / "engine" / "join" / "bits.pxd", "# Bits: as words.\n#\n#     1010\n\ncdef int x\n")
    _write(tmp_path / "ha" / "__init__.py", '"""Leaders."""')
    _write(tmp_path / "tests" / "__init__.py", "")
    _write(tmp_path / "tests" / "join" / "__init__.py", "")
    _write(tmp_path / "tests" / "join" / "test_probe.py", '"""Each row finds its matches."""\n')
    lines = map_page(tmp_path, {}).splitlines()
    join, leaders, tests = lines.index("## engine/join"), lines.index("## ha"), lines.index("## The tests")
    assert [line for line in lines[join:leaders] if line] == [
        "## engine/join",
        "```text",
        "Joins.",
        "    probe   looks rows up",
        "```",
        "| module | what it is | held by |",
        "| --- | --- | --- |",
        "| `bits.pxd` | Bits: as words. |  |",
        "| `probe.pyx` | Probe: `a \\| b`, a &lt; b. | `tests/join/test_probe.py` `tests/x/test_y.py` |",
    ]
    assert "| `test_probe.py` | Each row finds its matches. |" in lines[tests:]


def test_headers_are_read_wherever_they_stand():
    assert header_of('# cython: language_level=3\n\n"""Header.\n\nMore.\n"""\nx = 1\n') == "Header.\n\nMore."
    assert header_of('import os\n\n\ndef f():\n    """No header."""\n') == ""
    assert first_line("A ``x*`` of all*\nsecond") == "A `x*` of all\\*"
    assert named_tests("Header.\n\nHeld by: tests/a.py\nHeld by: tests/b.py\n") == ["tests/a.py", "tests/b.py"]
    assert own_test("ha/embedded.py") == "tests/ha/test_embedded.py"
    assert own_test("engine/closing.py") == "tests/test_closing.py"
    assert own_test("engine/optimizer/rules/one.py") == "tests/optimizer/test_one.py"


def test_the_map_tells_something_of_every_module_and_every_test():
    rows = [line for line in map_page(ROOT, MECHANISMS).splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.split(" | ")[1].strip(" |") == ""] == []
    assert held_by(ROOT, "engine/transport/data_plane.py") == ["tests/transport/test_remote_channels.py"]


def test_a_mechanism_has_modules_that_tests_hold_or_a_decision_that_says_why_not():
    rows = [each for of_part in MECHANISMS.values() for each in of_part]
    assert len({each.name for each in rows}) == len(rows)
    assert [each.name for each in rows if not each.modules and not each.decision] == []
    assert [module for each in rows for module in each.modules if not held_by(ROOT, module)] == []
    lines = map_page(ROOT, {"Exchange": [Mechanism("Credits", ("engine/transport/credit.pyx",), 28)]}).splitlines()
    where = "`engine/transport/credit.pyx` [decision 28](../decisions/0028-credits-in-place-of-watermarks.md)"
    assert f"| Credits | {where} | `tests/transport/test_credit_machine.py` |" in lines


def test_departures_from_flink_are_rows_of_the_map():
    text = (ROOT / "docs" / "pages" / "decisions" / "index.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"Departures from Flink are ([^.]*)\.", text)
    departures = set()
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", said):
        departures |= set(range(int(first), int(last or first) + 1))
    assert departures <= {each.decision for of_part in MECHANISMS.values() for each in of_part}
