"""The 103 statements of TPC-DS: those that dsqgen, the specification's program, writes with the parameters of the
validation run. ``QUERIES`` has them by name: "1", ..., "14a", "14b", ..., "99".

The texts come with the package ``lakebench`` (extras ``test`` and ``bench``), of which nothing else is used. They are
in the SQL of twenty years ago; few words of it have changed since:

    SELECT TOP 100 ...                    SELECT ... LIMIT 100, at the end of the statement
    d + 30 days                           d + INTERVAL '30' DAY
    (SELECT ...) at                       the name of a query that is no word of SQL

Integers divide to integers in SQL, and to doubles in DuckDB: ``for_duckdb`` has ``//`` there.

Held by: tests/integration/test_tpcds.py
"""

import re
from importlib.util import find_spec
from pathlib import Path

_FOLDER = "benchmarks/tpcds/resources/queries/canonical/sf1000"
_TOP = re.compile(r"\bselect\s+top\s+(\d+)\b", re.IGNORECASE)
_DAYS = re.compile(r"([+-])\s*(\d+)\s+days\b", re.IGNORECASE)
_NUMBER = re.compile(r"q(\d+)([ab]?)")
#: what else a statement says otherwise than SQL does
_WORDS = {"90": ((") at,", ") am,"),)}

#: where a statement divides integers
_WHOLE = {
    "21": ("inv_after / inv_before",),
    "34": ("hd_dep_count/ household",),
    "73": ("hd_dep_count/ household",),
    "78": ("ss_qty/(",),
    "83": ("sr_item_qty/(", "cr_item_qty/(", "wr_item_qty/("),
}


def for_duckdb(name: str) -> str:
    """Return a statement as DuckDB understands it."""
    text = QUERIES[name]
    for division in _WHOLE.get(name, ()):
        text = text.replace(division, division.replace("/", "//"))
    return text


def _load() -> dict[str, str]:
    spec = find_spec("lakebench")
    if spec is None or spec.origin is None:
        raise SystemExit("the texts of TPC-DS are not installed: pip install 'drey-engine[test]'")
    paths = {path: _NUMBER.fullmatch(path.stem) for path in (Path(spec.origin).parent / _FOLDER).glob("q*.sql")}
    found = {(int(name[1]), name[2]): path for path, name in paths.items() if name}
    return {f"{number}{part}": _modern(f"{number}{part}", found[number, part]) for number, part in sorted(found)}


def _modern(name: str, path: Path) -> str:
    text = path.read_text().strip().rstrip(";").rstrip()
    counts = _TOP.findall(text)
    if counts:
        text = f"{_TOP.sub('select', text)}\nlimit {counts[0]}"
    text = _DAYS.sub(r"\1 interval '\2' day", text)
    for old, new in _WORDS.get(name, ()):
        if old not in text:
            raise ValueError(f"query {name} does not say {old!r}")
        text = text.replace(old, new)
    return text


QUERIES = _load()
