"""fingerprint: digits that tell messages of one form from those of another, wherever the same sources run.

Every struct counts, and those in its fields: name, tag, form, and of each field name, type as it is written and whether
it must be there; of an enum its values. So no version number has to be raised when they change.

Held by: tests/rpc/test_fingerprint.py
"""

from __future__ import annotations

import enum
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from inspect import get_annotations
from typing import Any

import msgspec

_NAME = re.compile(r"[A-Za-z_]\w*")
_DIGITS = 8


def fingerprint(types: Iterable[type]) -> str:
    """Return digits that differ where any of these structs and enums differs, or one that is part of it."""
    described = sorted(_described(each) for each in travelling(types))
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:_DIGITS]


def travelling(types: Iterable[type]) -> set[type]:
    """Return these structs and enums, and all types that they contain."""
    found: set[type] = set()
    todo = list(types)
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo.extend(_parts(each))
    return found


def _described(kind: Any) -> str:
    if issubclass(kind, enum.Enum):
        return f"{kind.__name__} {[(each.name, each.value) for each in kind]}"
    form, names = kind.__struct_config__, kind.__struct_encode_fields__
    needed = len(names) - len(kind.__struct_defaults__)
    written = {name: text for each in _bases(kind) for name, text in get_annotations(each).items()}
    fields = [
        f"{name}{'' if index < needed else '?'}: {written[own]}"
        for index, (name, own) in enumerate(zip(names, kind.__struct_fields__, strict=True))
    ]
    return f"{kind.__name__} {form.tag} {form.array_like} {fields}"


def _bases(kind: type) -> list[type]:
    """Return a struct's classes that say what its fields are, itself last."""
    return [each for each in reversed(kind.__mro__) if issubclass(each, msgspec.Struct) and each is not msgspec.Struct]


def _parts(kind: Any) -> Iterator[type]:
    for each in () if issubclass(kind, enum.Enum) else _bases(kind):
        known = vars(sys.modules[each.__module__])
        fields = kind.__struct_fields__
        written = " ".join(text for name, text in get_annotations(each).items() if name in fields)
        for name in {*_NAME.findall(written)}:
            yield from _kinds(known.get(name))


def _kinds(value: Any) -> Iterator[type]:
    """Return the structs and enums in a type, which may be a union or another one with arguments."""
    if isinstance(value, type) and issubclass(value, msgspec.Struct | enum.Enum):
        yield value
    for argument in getattr(value, "__args__", ()):
        yield from _kinds(argument)
