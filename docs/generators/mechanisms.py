"""The map of mechanisms, made from the sources. Pure but for reading them.

Flink's names         the table of ``flink_mechanisms``, with the tests of the modules and the pages of decisions
a room's chapter      the docstring of its ``__init__.py``
a module              the first line of its header, and the tests that hold it: the one of its own name, and those
                      that its header names in lines "Held by: tests/..."
a file of the tests   the first line of its header
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from docs.generators.flink_mechanisms import Mechanism

_DOCSTRING = re.compile(r'(?s)\A(?:#[^\n]*\n|\s)*"""(.*?)"""')
_COMMENT = re.compile(r"(?m)\A(?:#[^\n]*\n)+")
_HELD_BY = re.compile(r"(?m)^Held by: (\S+)$")
_HEAD = """# The map of mechanisms

Where each mechanism is, and the tests that show it. This page is made from the sources: the chapter of each room from
its `__init__.py`, the tables from the headers of modules and tests. How one works is further down in its header.

"""
_BY_NAME = """## By Flink's names

What Flink's documents name: where it is here, and where it is otherwise or is not, the decision that says why.
"""


def header_of(text: str) -> str:
    """Return the docstring of a module, or the comment at the head of a file of declarations; "" without one."""
    if found := _DOCSTRING.match(text):
        return found[1].strip()
    found = _COMMENT.match(text)
    return re.sub(r"(?m)^# ?", "", found[0]).strip() if found else ""


def first_line(header: str) -> str:
    """Return what a header says first, as a cell of a table."""
    line = header.partition("\n")[0].replace("``", "`").replace("|", "\\|")
    parts = line.split("`")  # every second one is code, in which nothing is escaped
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def named_tests(header: str) -> list[str]:
    """Return the tests that a header says hold its module."""
    return _HELD_BY.findall(header)


def own_test(module: str) -> str:
    """Return the test of a module's own name, be it there or not."""
    parts = module.split("/")
    room = parts[:1] if parts[0] == "ha" else parts[1:-1][:1]
    return "/".join(["tests", *room, f"test_{parts[-1].partition('.')[0]}.py"])


def held_by(root: Path, module: str) -> list[str]:
    """Return the tests that hold a module."""
    own = own_test(module)
    named = named_tests(header_of((root / module).read_text(encoding="utf-8")))
    return ([own] if (root / own).is_file() else []) + [name for name in named if name != own]


def modules_of(folder: Path) -> Iterator[Path]:
    """Yield the modules of one room in the order of their names; of a native one, the file that has its code."""
    for path in sorted(folder.iterdir()):
        is_chapter = path.stem == "__init__"
        if path.suffix == ".pxd" and path.with_suffix(".pyx").is_file():
            continue
        if path.suffix in (".py", ".pyx", ".pxd") and not is_chapter:
            yield path


def _rooms(folder: Path) -> list[Path]:
    return [folder, *sorted(path.parent for path in folder.rglob("__init__.py") if path.parent != folder)]


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (titles, ("---" for _ in titles), *rows)]
    return [*lines, ""]


def _room(root: Path, folder: Path) -> list[str]:
    name = str(folder.relative_to(root))
    chapter = header_of((folder / "__init__.py").read_text(encoding="utf-8"))
    rows = []
    for path in modules_of(folder):
        tests = " ".join(f"`{test}`" for test in held_by(root, str(path.relative_to(root))))
        rows.append((f"`{path.name}`", first_line(header_of(path.read_text(encoding="utf-8"))), tests))
    lines = [f"## {name}", "", "```text", chapter, "```", ""]
    return lines + (_table(("module", "what it is", "held by"), rows) if rows else [])


def _tests(root: Path, folder: Path) -> list[str]:
    files = [(path, header_of(path.read_text(encoding="utf-8"))) for path in modules_of(folder)]
    rows = [(f"`{path.name}`", first_line(header)) for path, header in files]
    return [f"### {folder.relative_to(root)}", "", *_table(("file", "what it shows"), rows)] if rows else []


def _decision(root: Path, number: int) -> str:
    """Return a link to the page of a decision; IndexError when there is none of that number."""
    page = sorted((root / "docs" / "pages" / "decisions").glob(f"{number:04d}-*.md"))[0]
    return f"[decision {number}](../decisions/{page.name})"


def _by_name(root: Path, mechanisms: Mapping[str, Sequence[Mechanism]]) -> list[str]:
    lines = [_BY_NAME]
    for part, of_part in mechanisms.items():
        rows = []
        for each in of_part:
            where = [f"`{module}`" for module in each.modules]
            where += [_decision(root, each.decision)] if each.decision else []
            tests = dict.fromkeys(test for module in each.modules for test in held_by(root, module))
            rows.append((each.name, " ".join(where), " ".join(f"`{test}`" for test in tests)))
        lines += [f"### {part}", "", *_table(("mechanism", "where", "held by"), rows)]
    return lines


def map_page(root: Path, mechanisms: Mapping[str, Sequence[Mechanism]]) -> str:
    """Return the page: mechanisms by Flink's names, rooms of the engine, then the tests."""
    lines = [_HEAD, *_by_name(root, mechanisms)]
    for folder in (*_rooms(root / "engine"), root / "ha"):
        lines += _room(root, folder)
    lines += ["## The tests", ""]
    for folder in _rooms(root / "tests"):
        lines += _tests(root, folder)
    return "\n".join(lines)
