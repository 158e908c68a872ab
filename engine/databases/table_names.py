"""Names of tables as users write them: with a schema in front of them, and in quotes where they have dots or blanks.

    table_names('sales."a.b"')  ─►  ["sales", "a.b"]
    named_in_from("SELECT 1")   ─►  None: it is a query

Held by: tests/databases/test_written_tables.py
Held by: tests/databases/test_database_queries.py
"""

from __future__ import annotations

import re
from typing import Final

#: parts of a table's name: in quotes; of a place that may be a query; of a table alone
_IN_QUOTES: Final = r'"(?:[^"]|"")+"'
_BARE: Final = r'[^\s"();.]+'
_ANY: Final = r'[^".][^.]*'


def table_names(table: str) -> list[str] | None:
    """Return the parts of a table's name, taken out of their quotes; None: it is none."""
    return _names(table, _ANY)


def named_in_from(text: str) -> list[str] | None:
    """Return the parts of the name of a table; None: the text is a query."""
    return _names(text, _BARE)


def _names(text: str, bare: str) -> list[str] | None:
    part = f"{_IN_QUOTES}|{bare}"
    if not re.fullmatch(rf"(?:{part})(?:\.(?:{part}))*", text):
        return None
    found: list[str] = re.findall(part, text)
    return [each[1:-1].replace('""', '"') if each.startswith('"') else each for each in found]
