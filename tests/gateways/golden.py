"""Golden forms: all that processes tell and keep for each other, as fields and sample bytes, by protocol.

    python -m tests.gateways.golden      writes those of the protocol now: when it is released, and before, to see it

A sample has a value other than its default in each field; structs within it have only those that they need, since
each of them has a sample of its own.
"""

import base64
import enum
import functools
import json
import sys
import types
import typing
from inspect import get_annotations
from pathlib import Path

import msgspec
from msgspec import inspect

from engine import __version__
from engine.client.cluster_client import JobLine, Overview
from engine.commit.decision import Decision
from engine.dispatcher.job_archive import EndedJob
from engine.dispatcher.job_handle import JobHandle
from engine.gateways.messages import MESSAGE_TYPES
from engine.graph.plan import Plan
from engine.jobmaster.job_commit import JobEnd
from engine.jobmaster.job_event import JobEvent
from engine.profile.job_profile import JobProfile
from engine.rpc.codec import RemoteError
from engine.rpc.fingerprint import fingerprint, travelling
from engine.transport.handshake import Hello
from engine.transport.read_request import ReadRequest
from engine.versions import FORMS, PROTOCOL

FOLDER = Path(__file__).parent / "golden"
ROOTS = (
    *MESSAGE_TYPES,
    *typing.get_args(JobEvent),
    Decision,
    EndedJob,
    Hello,
    JobEnd,
    JobHandle,
    JobLine,
    JobProfile,
    Overview,
    Plan,
    ReadRequest,
    RemoteError,
)


def key_of(kind):
    return f"{kind.__module__.removeprefix('engine.')}.{kind.__name__}"


def all_types():
    """Return every struct and enum, by a name of its own."""
    return {key_of(kind): kind for kind in travelling(ROOTS)}


def fields_of(kind):
    """Return the types of a struct's fields as they are written, by the names that travel."""
    written = {}
    for each in reversed(kind.__mro__):
        written |= get_annotations(each)
    return {
        name: str(written[own]) for name, own in zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    }


@functools.cache
def fields_known(kind):
    """Return what the library knows of a struct's fields."""
    return inspect.type_info(kind).fields


def sample(kind, is_whole=True):
    """Return an instance of a struct with a value in each field, or in those that it needs."""
    values = {}
    for field in fields_known(kind):
        if is_whole or field.required:
            avoided = {field.default} if _is_plain(field.default) else frozenset()
            values[field.name] = _FIXED.get((kind.__name__, field.name)) or _value(field.type, is_whole, avoided)
    return kind(**values)


#: values that constructors accept, where any would not do
_FIXED = {}


def _is_plain(value):
    return isinstance(value, bool | int | float | str | bytes | types.NoneType)


def _value(info, is_whole=True, avoided=frozenset()):
    match info:
        case inspect.BoolType():
            return True not in avoided
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 2.5
        case inspect.StrType():
            return "text"
        case inspect.BytesType():
            return b"bytes"
        case inspect.NoneType() | inspect.AnyType():
            return None
        case inspect.LiteralType():
            return next((value for value in info.values if value not in avoided), info.values[0])
        case inspect.EnumType():
            return next((member for member in info.cls if member not in avoided), next(iter(info.cls)))
        case inspect.VarTupleType():
            return (_value(info.item_type),) if is_whole else ()
        case inspect.TupleType():
            return tuple(_value(each, is_whole) for each in info.item_types)
        case inspect.ListType():
            return [_value(info.item_type)] if is_whole else []
        case inspect.FrozenSetType():
            return frozenset({_value(info.item_type)}) if is_whole else frozenset()
        case inspect.DictType():
            return {_value(info.key_type): _value(info.value_type)} if is_whole else {}
        case inspect.UnionType():
            others = [each for each in info.types if not isinstance(each, inspect.NoneType)]
            return _value(min(others, key=_size), is_whole, avoided)
        case inspect.StructType():
            return sample(info.cls, is_whole=False)
    raise TypeError(f"no sample of {info}")


def _size(info):
    """Order the members of a union: those first that need no others."""
    if not isinstance(info, inspect.StructType):
        return 0, str(info)
    needed = [field for field in fields_known(info.cls) if field.required]
    return 1 + sum(isinstance(field.type, inspect.StructType | inspect.UnionType) for field in needed), str(info.cls)


def golden_of(kind):
    """Return what is kept of one type."""
    if issubclass(kind, enum.Enum):
        return {"values": {member.name: member.value for member in kind}}
    content = msgspec.msgpack.encode(sample(kind))
    return {"tag": kind.__struct_config__.tag, "fields": fields_of(kind), "bytes": base64.b64encode(content).decode()}


def record(released):
    """Write the forms of the protocol now."""
    found = {
        "released": released,
        "messages": fingerprint(MESSAGE_TYPES),
        "forms": {name: form.newest for name, form in FORMS.items()},
        "types": {name: golden_of(kind) for name, kind in sorted(all_types().items())},
    }
    lines = json.dumps({**found, "types": {}}, indent=1).removesuffix("{}\n}")
    types_text = ",\n".join(f"  {json.dumps(name)}: {json.dumps(kept)}" for name, kept in found["types"].items())
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"protocol-{PROTOCOL.newest}.json").write_text(f"{lines}{{\n{types_text}\n }}\n}}\n")


if __name__ == "__main__":
    record(__version__ if "--release" in sys.argv[1:] else "")
