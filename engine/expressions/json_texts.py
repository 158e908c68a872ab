"""Values out of JSON texts by a path: ``.str.json_get("$.user.names[0]")``.

    $ or nothing, then .name, ['name'] and [0], negative from the end

Arrow reads JSON by a schema only, so each text is read by Python's json, a row after another: this is the one function
whose cost is Python's, about a microsecond for each row and more for long texts.

A text is returned as it is, anything else as JSON; null where there is nothing, where it is JSON's null, and where the
text is no JSON. With the option ``as_json`` texts and null are JSON, too. ``bind_json_about`` tells of what is there.

Held by: tests/expressions/test_json_texts.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.expressions.argument_kinds import text
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: value at a path that leads nowhere
_NOTHING: Final = object()
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


def bind_json_about(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind what the option ``about`` asks of the value at ``path``: valid, type, length of a list, keys."""
    steps, about = path_steps(str(options.get("path", "$"))), str(options.get("about"))
    text_type = text(operands[0].type)
    if about not in _ABOUT:
        raise NoMatchError(f"about={about!r}: choose one of {', '.join(_ABOUT)}")
    made, answer = _ABOUT[about]

    def told(texts: pa.Array) -> pa.Array:
        parts = (_NOTHING if one is None else _part_at(one, steps) for one in texts.to_pylist())
        found = pa.array([None if part is _NOTHING else answer(part) for part in parts], made)
        if about == "valid":
            return pc.if_else(pc.is_valid(texts), pc.is_valid(found), scalar_of(None, made))
        return found

    return Binding(of_array(told), (text_type,))


def _part_at(written: str, steps: Sequence[str | int]) -> Any:
    """Return the value at a path of a JSON text, ``_NOTHING`` where there is none."""
    try:
        value: Any = json.loads(written)
        for step in steps:
            if not isinstance(value, list if isinstance(step, int) else dict):
                return _NOTHING
            value = value[step]  # type: ignore[index]
    except (ValueError, RecursionError, LookupError):
        return _NOTHING
    return value


def _value_at(written: str, steps: Sequence[str | int], as_json: bool) -> str | None:
    value = _part_at(written, steps)
    if value is _NOTHING or (value is None and not as_json):
        return None
    is_text = isinstance(value, str) and not as_json
    return _text(value if is_text else json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _text(value: str) -> str:
    # half of a surrogate pair can be written in JSON, but is no text
    return value.encode("utf-8", "replace").decode()


def _type_name(value: object) -> str:
    """Return the type of a value as DuckDB calls it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "DOUBLE" if not -(2**63) <= value < 2**64 else "UBIGINT" if value >= 0 else "BIGINT"
    return _TYPE_NAMES[type(value)]


_TYPE_NAMES: Final[dict[type, str]] = {
    **{dict: "OBJECT", list: "ARRAY", str: "VARCHAR"},
    **{bool: "BOOLEAN", float: "DOUBLE", type(None): "NULL"},
}
#: question -> type of the answer, function of a value
_ABOUT: Final[dict[str, tuple[pa.DataType, Callable[[Any], object]]]] = {
    "valid": (pa.bool_(), lambda _value: True),
    "type": (pa.string(), _type_name),
    "length": (pa.int64(), lambda value: len(value) if isinstance(value, list) else 0),
    "keys": (pa.list_(pa.string()), lambda value: [*map(_text, value)] if isinstance(value, dict) else []),
}
