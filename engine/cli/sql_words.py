"""Completions at a place of a statement: names of tables and columns, words of SQL.

    SELECT pr|                 columns of all tables, functions, words
    SELECT pr| FROM sales      columns of sales first
    ... FROM sa|               tables
    DESCRIBE sa|               tables, as behind the command d
    s.pr|                      columns of the table s, or of the one that s stands for

Held by: tests/cli/test_sql_words.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engine.sql_values.function_guide import FUNCTION_NAMES

_WORDS_TEXT: Final = """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT AS ON USING JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI
    UNION ALL INTERSECT EXCEPT WITH VALUES AND OR NOT IN EXISTS BETWEEN LIKE ILIKE IS NULL TRUE FALSE CASE WHEN THEN
    ELSE END CAST TRY_CAST INTERVAL DATE TIMESTAMP EXTRACT OVER PARTITION ROWS RANGE PRECEDING FOLLOWING UNBOUNDED
    CURRENT ROW ASC DESC NULLS FIRST LAST GROUPING SETS ROLLUP CUBE FILTER EXPLAIN ANALYZE CREATE REPLACE VIEW TABLE
    COPY TO FORMAT DESCRIBE SHOW TABLES SUMMARIZE INSERT INTO QUALIFY EXCLUDE WINDOW
"""
WORDS: Final = tuple(_WORDS_TEXT.split())

_WORD: Final = re.compile(r"[\w.]*\Z")
_AFTER_TABLE_WORD: Final = re.compile(r"(?:\b(?:FROM|JOIN|DESCRIBE|DESC|INTO)|\\d)\s+\Z", re.IGNORECASE)
_LISTED: Final = re.compile(r"\bFROM\s[\w\s,.\"]*,\s*\Z", re.IGNORECASE)
_USED: Final = re.compile(r"\b(?:FROM|JOIN|,)\s+\"?(\w+)\"?(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)


def completions(before: str, whole: str, tables: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield (typed, word, kind): what may stand in place of the characters ``typed`` that end ``before``.

    ``tables`` has the columns of each; ``whole`` is all of the statement, of which ``before`` is the beginning.
    """
    found = _WORD.search(before)
    typed = found[0] if found else ""
    before = before[: len(before) - len(typed)]
    if _AFTER_TABLE_WORD.search(before) or _LISTED.search(before):
        yield from _matching(typed, sorted(tables), "table")
        return
    if before.lstrip().startswith("\\") or (not typed and not before):
        return
    used = _tables_used(whole, tables)
    owner, dot, column = typed.rpartition(".")
    if dot:
        yield from _matching(column, tables.get(used.get(owner.lower(), owner), ()), "column")
        return
    if not typed:
        return
    first = [name for table in dict.fromkeys(used.values()) for name in tables[table]]
    others = [name for columns in tables.values() for name in columns]
    yield from _matching(typed, list(dict.fromkeys(first or others)), "column")
    yield from _matching(typed, FUNCTION_NAMES, "function")
    yield from _matching(typed, WORDS, "word")


def _matching(typed: str, names: Sequence[str], kind: str) -> Iterator[tuple[str, str, str]]:
    for name in names:
        if name.lower().startswith(typed.lower()):
            yield typed, _quoted(name) if kind in ("table", "column") else name, kind


def _quoted(name: str) -> str:
    """Return a name as a statement must write it."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else f'"{name}"'


def _tables_used(text: str, tables: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the tables of a statement by the names that it gives them."""
    used = {}
    for name, alias in _USED.findall(text):
        if name in tables:
            used[name] = name
            if alias and alias.upper() not in WORDS:
                used[alias.lower()] = name
    return used
