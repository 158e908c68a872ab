"""Lines of JSON one by one, for blocks that Arrow's parser refuses: which are bad, and values that are to be texts.

    LineReader(schema).read(line) -> line, with texts in place of what is a text in the schema, and entries in place of
                                     what is a map; None: certainly bad
    objects_over_lines(lines) -> [(first, last)]       the lines of objects that go over line ends, each with its places
    goes_over(line) -> bool                            whether the line ends within an object, or ends another line's

    {"a": 1, "items": [      an object of three lines: it is one bad row. The second line looks like a row of its own,
    {"a": -1}                and is none
    ]}
    {"a": 2                  no line behind it makes it an object: it is bad, and it alone

Arrow reads no maps, but lists of structs: {"a": 1} becomes [{"key":"a","value":1}]. An object that has a key twice is
no map, as it is no row.

JSON lines means one object a line. A line is certainly bad if Python's decoder refuses it, or if a value is of another
kind than its column (a text for a number): Arrow would refuse it too. All else is left to Arrow, which is asked for
many lines at once. An object that goes over lines is looked for within SPAN_BYTES, so that what a line is does not
depend on where blocks and splits end.

Held by: tests/connectors/test_json_lines.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

#: an object over several lines is one up to this size; longer ones are lines of their own, most of them bad
SPAN_BYTES: Final = 256 << 10

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL)
_NO_BRACKET: Final = re.compile(rb"[^][{}]+")
_OPENING: Final = b"[{"


class _RepeatedKeyError(ValueError):
    """An object that is to be a map has a key twice."""


class LineReader:
    """Looks at the members of a line's object that are columns of a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._kinds = {field.name: kind for field in schema if (kind := _kind(field.type))}
        self._map_kinds = {field.name: _kind(field.type.item_type) for field in schema if pa.types.is_map(field.type)}
        self._bounds = {field.name: _bounds(field.type) for field in schema if pa.types.is_integer(field.type)}

    @property
    def rewrites(self) -> bool:
        """Whether a line may be read as another one."""
        return not {"text", "map"}.isdisjoint(self._kinds.values())

    def read(self, line: bytes) -> bytes | None:
        """Return the line as Arrow is to read it; None where it would refuse it."""
        return self._read(line, refuses=True)

    def rewritten(self, line: bytes) -> bytes:
        """Return the line as Arrow is to read it, or to refuse it."""
        return self._read(line, refuses=False) or line

    def fault(self, line: bytes) -> str:
        """Return what is wrong with a line where this is said better here than by Arrow; else nothing."""
        try:
            self._changes(line.decode())
        except _RepeatedKeyError as error:
            return str(error)
        except RecursionError:
            return "lists and objects lie within each other too deep"
        except ValueError:
            pass
        return ""

    def _read(self, line: bytes, *, refuses: bool) -> bytes | None:
        if not line.strip():
            return line
        try:
            text = line.decode()
            found, all_fit = self._changes(text)
        except RecursionError:
            return line
        except ValueError:
            return line if b"Inf" in line or line.startswith(b"\xef\xbb\xbf") else None
        if refuses and not all_fit:
            return None
        for begin, end, other in reversed(found):
            text = f"{text[:begin]}{other}{text[end:]}"
        return text.encode() if found else line

    def _changes(self, text: str) -> tuple[list[tuple[int, int, str]], bool]:
        """Return where values are that become others, and these, and whether all fit. ValueError: no object."""
        found: list[tuple[int, int, str]] = []
        all_fit = True
        for name, value, begin, end in _members(text, 0):
            kind = self._kinds.get(name)
            if kind is None or value is None:
                continue
            if kind == "text":
                if not isinstance(value, str):
                    found.append((begin, end, _quoted(text[begin:end])))
            elif kind == "map":
                if isinstance(value, dict):
                    found.append((begin, end, _entries(text, begin, self._map_kinds[name])))
            else:
                all_fit = all_fit and self._fits(name, kind, value)
        return found, all_fit

    def _fits(self, name: str, kind: str, value: Any) -> bool:
        if kind == "whole":
            low, high = self._bounds.get(name, (value, value))
            return type(value) is int and low <= value <= high
        if kind == "moment":
            return isinstance(value, str) and any(map(str.isdigit, value))
        return type(value) in ((bool,) if kind == "truth" else (int, float))


def _kind(data_type: pa.DataType) -> str:
    """Return what JSON must have for a column; empty: Arrow is asked."""
    types = pa.types
    if types.is_string(data_type) or types.is_large_string(data_type):
        return "text"
    if types.is_integer(data_type):
        return "whole"
    if types.is_floating(data_type):
        return "number"
    if types.is_boolean(data_type):
        return "truth"
    if types.is_map(data_type):
        return "map"
    return "moment" if types.is_date(data_type) or types.is_time(data_type) or types.is_timestamp(data_type) else ""


def _bounds(data_type: pa.DataType) -> tuple[int, int]:
    bits = data_type.bit_width
    return (0, 2**bits - 1) if pa.types.is_unsigned_integer(data_type) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _members(text: str, at: int) -> Iterator[tuple[str, Any, int, int]]:
    """Yield name, value and place of each member of the object at a place; ValueError where there is none."""
    at = _behind_space(text, at)
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    at = _behind_space(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = _DECODER.raw_decode(text, at)
        at = _behind_space(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("no colon")
        begin = _behind_space(text, at + 1)
        value, end = _DECODER.raw_decode(text, begin)
        yield name, value, begin, end
        at = _behind_space(text, end)
        if text[at : at + 1] != ",":
            break
        at = _behind_space(text, at + 1)
        if text[at : at + 1] != '"':
            raise ValueError("no name")
    if text[at : at + 1] != "}":
        raise ValueError("no end")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _entries(text: str, at: int, kind: str) -> str:
    """Return the object at a place as a list of its keys and values, which are texts where the kind says so."""
    entries: dict[str, str] = {}
    for name, value, begin, end in _members(text, at):
        if name in entries:
            raise _RepeatedKeyError(f"the map has the key {name!r} twice")
        is_other = kind == "text" and not isinstance(value, str | None)
        entries[name] = _quoted(text[begin:end]) if is_other else text[begin:end]
    return "[" + ",".join(f'{{"key":{_quoted(name)},"value":{value}}}' for name, value in entries.items()) + "]"


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None, "no space is space too"
    return match.end()


def _open_ends(line: bytes) -> tuple[int, int]:
    """Return how many brackets of lines before it a line closes, and how many it leaves open."""
    closed = opened = 0
    for bracket in _NO_BRACKET.sub(b"", _STRING.sub(b"", line)):
        if bracket in _OPENING:
            opened += 1
        elif opened:
            opened -= 1
        else:
            closed += 1
    return closed, opened


def depth_of(line: bytes) -> int:
    """Return how deep lists and objects lie within each other on a line."""
    depth = deepest = 0
    for bracket in _NO_BRACKET.sub(b"", _STRING.sub(b"", line)):
        depth += 1 if bracket in _OPENING else -1
        deepest = max(deepest, depth)
    return deepest


def goes_over(line: bytes) -> bool:
    """Return whether a line is a part of something that began before it, or ends behind it."""
    return _open_ends(line) != (0, 0)


def is_one_value(line: bytes) -> bool:
    """Return whether a line is one value and nothing behind it, or empty."""
    try:
        text = line.decode().strip()
        return not text or _DECODER.raw_decode(text)[1] == len(text)
    except (ValueError, RecursionError):
        return False


def is_one_a_line(block: bytes, row_count: int) -> bool:
    """Return whether each object of text that was parsed, into so many rows, lies on a line of its own."""
    # Between two objects a line ends behind a brace and before one; within an object it never does both.
    lines = [stripped for line in block.split(b"\n") if (stripped := line.strip())]
    return row_count == len(lines) and all(line.startswith(b"{") and line.endswith(b"}") for line in lines)


def objects_over_lines(lines: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the first and the last line of each object that goes over several; none lies within another.

    What is open at the end of a line is closed by the next line that closes as much; that is an object if Python's
    decoder says so, which a line that broke off, and another one that begins within, do not make.
    """
    found: list[tuple[int, int]] = []
    waiting: list[list[int]] = []
    places = [0]
    for number, line in enumerate(lines):
        places.append(places[-1] + len(line) + 1)
        closed, opened = _open_ends(line)
        while closed and waiting:
            taken = min(closed, waiting[-1][1])
            closed -= taken
            waiting[-1][1] -= taken
            if waiting[-1][1]:
                break
            first, _ = waiting.pop()
            if places[-1] - places[first] <= SPAN_BYTES and _is_json(b"\n".join(lines[first : number + 1])):
                while found and found[-1][0] >= first:
                    found.pop()
                found.append((first, number))
        if opened:
            waiting.append([number, opened])
    return found


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
