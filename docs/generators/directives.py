"""The table of directives of dates and times, with what each writes of one moment."""

from __future__ import annotations

import datetime
from typing import Final

import pyarrow as pa

from engine import col
from engine.expressions.evaluate import evaluate
from engine.expressions.time_directives import DIRECTIVES

_MOMENT: Final = datetime.datetime(2024, 2, 9, 12, 5, 7, 89, tzinfo=datetime.UTC)
#: by strptime of Python 3.11
_READ_BY_PYTHON: Final = frozenset("aAbBcdfHIGjmMpSuUVwWxXyYzZ%")
_HEAD: Final = """## Directives of dates and times

What the formats of `.dt.strftime`, `.str.to_date` and `.str.to_timestamp`, and of SQL's `strftime`, `strptime` and
`try_strptime` have: those of Python on Linux. Anything else after a `%` is an error when the plan is made. *written* is
the 9th of February 2024, five past one in the afternoon in Berlin. *read* tells what a text may be parsed by; those in
brackets are read here and not by Python's `strptime`.

| directive | means | written | read |
|---|---|---|---|
"""
_TAIL: Final = """
- **Flags** stand behind the `%`: `%-d` is the day without a zero, `%_d` with a space, `%^a` a name in upper case, `%#p`
  `am` or `pm`; a number after them is the least width, `%5Y`. In a format that is read they change nothing: `%d` reads
  `9` and `09`. `%E` and `%O`, as in `%Ey`, write the same as without.
- **Names** are English, whatever the locale. In texts they may be in upper or lower case, and a space of the format
  stands for any number of them.
- **What is not said** is 1900, January, the 1st, midnight, as in Python. `%I` without `%p` is the morning.
- **What is read must be true**: 31 February is no date, `2023-366` no `%Y-%j`, and a Tuesday that is called Monday is
  not read, where Python's `strptime` ignores the name.
- **Zones**: a timestamp without a zone has empty `%z` and `%Z`, and `%s` counts it as UTC. With `%z` the timestamp
  that is read is one of UTC. `%Z` reads UTC and GMT, and the timestamp has no zone, as in Python.
- **Years** before 1000 have four digits (Python before 3.14 writes fewer); `%f` of nanoseconds is cut to six.
"""


def directives() -> str:
    """Return the section of the page of functions, in Markdown."""
    moments = pa.array([_MOMENT], pa.timestamp("us", "Europe/Berlin"))
    batch = pa.RecordBatch.from_arrays([moments], ["x"])
    lines = []
    for name, each in DIRECTIVES.items():
        written = evaluate(col("x").dt.strftime(f"%{name}").expression, batch)[0].as_py()
        shown = repr(written)[1:-1].replace(" ", "\u00a0")
        short = f", `{each.short_for}`" if each.short_for and each.short_for.isprintable() else ""
        lines.append(f"| `%{name}` | {each.meaning}{short} | `{shown}` | {_read(name, is_read=each.is_read)} |")
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _read(name: str, *, is_read: bool) -> str:
    if not is_read:
        return "no"
    return "yes" if name in _READ_BY_PYTHON else "(yes)"
