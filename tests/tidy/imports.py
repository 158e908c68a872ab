"""A reader of import and cimport statements in .py, .pyx and .pxd files."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FROM = re.compile(r"^\s*from\s+([\w.]+)\s+c?import\s+(.+)$")
_IMPORT = re.compile(r"^\s*c?import\s+([\w., ]+)$")


def source_files(*folders: str) -> list[Path]:
    """Return the sources below the folders, or of the whole product."""
    found = []
    for folder in folders or ("engine", "ha"):
        for suffix in ("py", "pyx", "pxd", "pyi"):
            found.extend(sorted((ROOT / folder).rglob(f"*.{suffix}")))
    return found


def _statements(text: str) -> Iterator[str]:
    """Yield logical lines outside strings: parentheses are joined, docstrings dropped."""
    text = re.sub(r'(?s)("""|\'\'\').*?\1', '""', text)
    pending = ""
    for line in text.splitlines():
        pending += line.split("#", 1)[0] + " "
        if pending.count("(") <= pending.count(")") and not pending.rstrip().endswith("\\"):
            yield pending.replace("\\", " ")
            pending = ""


def imported_modules(path: Path) -> set[str]:
    """Return the dotted names a file imports or cimports (``from a import b`` gives both ``a`` and ``a.b``)."""
    modules: set[str] = set()
    for statement in _statements(path.read_text(encoding="utf-8")):
        if match := _FROM.match(statement):
            modules.add(match[1])
            names = match[2].strip("() ").split(",")
            modules.update(f"{match[1]}.{name.split()[0]}" for name in names if name.strip())
        elif match := _IMPORT.match(statement):
            modules.update(name.split()[0] for name in match[1].split(",") if name.strip())
    return modules


def room_of(path: Path) -> str:
    """Return the room of a product file: ``records``, ``minicluster``, ``ha`` ..."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "ha" if parts[0] == "ha" else parts[1]
