"""Values out of JSON texts by a path: ``.str.json_get("$.user.names[0]")``.

    $ or nothing, then .name, ['name'] and [0], negative from the end

Arrow reads JSON by a schema only, so each text is read by Python's json, a row after another: this is the one function
whose cost is Python's, about a microsecond for each row and more for long texts.

A text is returned as it is, anything else as JSON; null where there is nothing, where it is JSON's null, and where the
text is no JSON. With the option ``as_json`` texts and null are JSON, too.

Held by: tests/expressions/test_json_texts.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from engine.expressions.argument_kinds import text
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.number_functions import of_array

_STEP: Final = re.compile(r"\.?([^.\[\]'\"]+)|(?:\['([^']*)'\]|\.\"([^\"]*)\")|\[(-?[0-9]+)\]")


def path_steps(path: str) -> list[str | int]:
    """Return the names and positions of a path; NoMatchError where it is none."""
    rest = path.removeprefix("$")
    steps: list[str | int] = []
    while rest:
        found = _STEP.match(rest)
        if found is None or (found.group(1) is not None and steps and rest[0] != "."):
            raise NoMatchError(f"{path!r} is no path: write it as '$.name.list[0]'")
        *names, position = found.groups()
        steps.append(int(position) if position is not None else next(one for one in names if one is not None))
        rest = rest[found.end() :]
    return steps


def bind_json_get(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind what lies at the option ``path``, as text."""
    steps = path_steps(str(options.get("path")))
    data_type, as_json = text(operands[0].type), bool(options.get("as_json"))

    def found(texts: pa.Array) -> pa.Array:
        values = [None if one is None else _value_at(one, steps, as_json) for one in texts.to_pylist()]
        return pa.array(values, data_type)

    return Binding(of_array(found), (data_type,))


def _value_at(written: str, steps: Sequence[str | int], as_json: bool) -> str | None:
    try:
        value: Any = json.loads(written)
    except (ValueError, RecursionError):
        return None
    for step in steps:
        try:
            if not isinstance(value, list if isinstance(step, int) else dict):
                return None
            value = value[step]  # type: ignore[index]
        except (KeyError, IndexError):
            return None
    if value is None and not as_json:
        return None
    found = (
        value
        if isinstance(value, str) and not as_json
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
    # half of a surrogate pair can be written in JSON, but is no text
    return found.encode("utf-8", "replace").decode()
