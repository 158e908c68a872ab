"""Versions of tables in FROM: a number, a name, or a moment.

    FROM lake.sales.orders FOR VERSION AS OF 42          a snapshot; of a Delta table its version
    FROM lake.sales.orders FOR VERSION AS OF 'audit'     a branch or a tag
    FROM delta."orders/" FOR TIMESTAMP AS OF '2026-11-01'

    version_of(node, values, text)      Version(number=42), None for the table as it is

Held by: tests/sql/test_versions.py
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from sqlglot import exp

from engine.dialects.parser import sentence
from engine.errors import PlanError

_FORMS: Final = "write FOR VERSION AS OF 3, FOR VERSION AS OF 'name' or FOR TIMESTAMP AS OF '2026-11-01 12:00:00'"


class Version(NamedTuple):
    """The version that is read: one of the three."""

    number: int | None = None
    name: str | None = None
    moment: str | datetime | None = None


def version_of(node: exp.Table, values: Mapping[str, Any], text: str) -> Version | None:
    """Return the version of a table; ``values``: of parameters. Raises: PlanError for what is none."""
    found = node.args.get("version") or node.args.get("when")
    if found is None:
        return None
    kind, word = str(found.args.get("kind")).upper(), str(found.name).upper()
    if isinstance(found, exp.HistoricalData):
        is_moment, is_one = kind == "TIMESTAMP", word == "AT" and kind in ("TIMESTAMP", "VERSION")
    else:
        is_moment, is_one = word == "TIMESTAMP", kind == "AS OF"
    value = _value(found.args.get("expression"), values) if is_one else None
    if is_moment and isinstance(value, str) and not _is_moment(value):
        said = f"{value!r} is no moment; write FOR TIMESTAMP AS OF '2026-11-01 12:00:00'"
        raise PlanError(sentence(node, said, text))
    if is_moment and isinstance(value, str | date):
        return Version(moment=value if isinstance(value, str | datetime) else value.isoformat())
    if not is_moment and isinstance(value, str):
        return Version(name=value)
    if not is_moment and isinstance(value, int) and not isinstance(value, bool):
        return Version(number=value)
    raise PlanError(sentence(node, f"this is no version of a table; {_FORMS}", text))


def _is_moment(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _value(node: exp.Expr | None, values: Mapping[str, Any]) -> object:
    """Return the value of a constant or a parameter, None for others."""
    inner = node.unnest() if node is not None else None
    if isinstance(inner, exp.Cast):
        inner = inner.this
    if isinstance(inner, exp.Placeholder | exp.Parameter):
        return values[inner.name]
    if not isinstance(inner, exp.Literal):
        return None
    return inner.name if inner.is_string else int(inner.name) if inner.name.isdecimal() else None
