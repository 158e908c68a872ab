"""Lines of JSON one by one, for blocks that Arrow's parser refuses: which are bad, and values that are to be texts.

    LineReader(schema).read(line) -> line, with texts in place of what is a text in the schema, and entries in place of
                                     what is a map, wherever they are; None: certainly bad
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
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
        self._rewriters = {field.name: each for field in schema if (each := _rewriter(field.type)) is not None}
        self._bounds = {field.name: _bounds(field.type) for field in schema if pa.types.is_integer(field.type)}

    @property
    def rewrites(self) -> bool:
        """Whether a line may be read as another one."""
        return bool(self._rewriters)

    def read(self, line: bytes) -> bytes | None:
        """Return the line as Arrow is to read it; None where it would refuse it."""
        return self._read(line, refuses=True)

    def rewritten(self, line: bytes) -> bytes:
        """Return the line as Arrow is to read it, or to refuse it."""
        return self._read(line, refuses=False) or line

    def fault(self, line: bytes) -> str:
        """Return the fault of a line if this message is better than Arrow's; else nothing."""
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
        return _replaced(text, 0, len(text), found).encode() if found else line

    def _changes(self, text: str) -> tuple[list[_Change], bool]:
        """Return the changes of values by place, and whether all fit. ValueError: no object."""
        found: list[_Change] = []
        all_fit = True
        for name, value, begin, end in _members(text, 0):
            if value is None:
                continue
            rewriter = self._rewriters.get(name)
            other = None if rewriter is None else rewriter(text, begin, end, value)
            if other is not None:
                found.append((begin, end, other))
            kind = self._kinds.get(name)
            all_fit = all_fit and (kind is None or self._fits(name, kind, value))
        return found, all_fit

    def _fits(self, name: str, kind: str, value: Any) -> bool:
        if kind == "whole":
            low, high = self._bounds.get(name, (value, value))
            return type(value) is int and low <= value <= high
        if kind == "moment":
            return isinstance(value, str) and any(map(str.isdigit, value))
        return type(value) in ((bool,) if kind == "truth" else (int, float))


def _kind(data_type: pa.DataType) -> str:
    """Return the kind of JSON that a column needs; empty: Arrow decides."""
    types = pa.types
    if types.is_integer(data_type):
        return "whole"
    if types.is_floating(data_type):
        return "number"
    if types.is_boolean(data_type):
        return "truth"
    return "moment" if types.is_date(data_type) or types.is_time(data_type) or types.is_timestamp(data_type) else ""


#: function that returns the new text of a value at a place, given as Python has it; None: it stays
_Rewriter = Callable[[str, int, int, Any], "str | None"]
#: begin, end and what comes there
_Change = tuple[int, int, str]


def _rewriter(data_type: pa.DataType) -> _Rewriter | None:
    """Return the rewriter of a type's values; None if all stay as they are."""
    types = pa.types
    if types.is_string(data_type) or types.is_large_string(data_type):
        return _text
    if types.is_map(data_type):
        return partial(_entries, _rewriter(data_type.item_type))
    if types.is_struct(data_type):
        within = {each.name: found for each in data_type if (found := _rewriter(each.type)) is not None}
        return partial(_object, within) if within else None
    if types.is_nested(data_type):
        element = _rewriter(data_type.value_type)
        return None if element is None else partial(_list, element)
    return None


def _text(text: str, begin: int, end: int, value: Any) -> str | None:
    return None if value is None or isinstance(value, str) else _quoted(text[begin:end])


def _object(within: Mapping[str, _Rewriter], text: str, begin: int, end: int, value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    members = (each for each in _members(text, begin) if each[0] in within)
    changed = ((first, last, within[name](text, first, last, each)) for name, each, first, last in members)
    found = [(first, last, other) for first, last, other in changed if other is not None]
    return _replaced(text, begin, end, found) if found else None


def _list(element: _Rewriter, text: str, begin: int, end: int, value: Any) -> str | None:
    if not isinstance(value, list):
        return None
    changed = ((first, last, element(text, first, last, each)) for each, first, last in _elements(text, begin))
    found = [(first, last, other) for first, last, other in changed if other is not None]
    return _replaced(text, begin, end, found) if found else None


def _entries(item: _Rewriter | None, text: str, begin: int, _end: int, value: Any) -> str | None:
    """Return an object as a list of its keys and values."""
    if not isinstance(value, dict):
        return None
    entries: dict[str, str] = {}
    for name, each, first, last in _members(text, begin):
        if name in entries:
            raise _RepeatedKeyError(f"the map has the key {name!r} twice")
        other = None if item is None else item(text, first, last, each)
        entries[name] = text[first:last] if other is None else other
    return "[" + ",".join(f'{{"key":{_quoted(name)},"value":{each}}}' for name, each in entries.items()) + "]"


def _replaced(text: str, begin: int, end: int, changes: Sequence[_Change]) -> str:
    """Return a part of a text with others in place of parts of it, which come in order."""
    pieces, at = [], begin
    for first, last, other in changes:
        pieces += [text[at:first], other]
        at = last
    return "".join([*pieces, text[at:end]])


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


def _elements(text: str, at: int) -> Iterator[tuple[Any, int, int]]:
    """Yield value and place of each element of the list at a place, which was read before."""
    at = _behind_space(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield value, at, end
        at = _behind_space(text, end)
        if text[at] == ",":
            at = _behind_space(text, at + 1)


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None, "no space is space too"
    return match.end()


def line_with(path: Sequence[str], block: bytes) -> int | None:
    """Return the first line of a block, from 0, whose object has a member at a path; None where it is not found."""
    for index, line in enumerate(block.split(b"\n")):
        try:
            if line.strip() and _has(json.loads(line), path):
                return index
        except (ValueError, RecursionError):
            continue
    return None


def _has(value: Any, path: Sequence[str]) -> bool:
    """Return whether a value has a member at a path, in which elements of lists and values of maps are no part."""
    if isinstance(value, list):
        return any(_has(each, path) for each in value)
    if not isinstance(value, dict):
        return False
    if path[0] in value:
        return len(path) == 1 or _has(value[path[0]], path[1:])
    return any(_has(each, path) for each in value.values())


def _open_ends(line: bytes) -> tuple[int, int]:
    """Return the numbers of earlier brackets that a line closes, and of those that it leaves open."""
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
    """Return the nesting depth of lists and objects on a line."""
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
