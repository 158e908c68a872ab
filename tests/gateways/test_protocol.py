"""The protocol is that of all messages, however deep."""

from __future__ import annotations

from msgspec import inspect

from engine import __version__
from engine.gateways.messages import MESSAGE_TYPES
from engine.gateways.protocol import protocol, this_program
from engine.graph.deployment import TaskDeploymentDescriptor
from engine.rpc.fingerprint import fingerprint, travelling
from engine.versions import PROTOCOL


def structs_of(types):
    """What the library itself finds in messages."""
    found, todo = set(), list(inspect.multi_type_info(types))
    while todo:
        info = todo.pop()
        if isinstance(info, inspect.StructType | inspect.EnumType):
            if info.cls in found:
                continue
            found.add(info.cls)
            todo += [field.type for field in getattr(info, "fields", ())]
            continue
        for name in info.__struct_fields__:
            part = getattr(info, name)
            todo += [each for each in (part if isinstance(part, tuple) else (part,)) if isinstance(each, inspect.Type)]
    return found


def test_every_struct_that_travels_counts():
    assert travelling(MESSAGE_TYPES) == structs_of(MESSAGE_TYPES) and TaskDeploymentDescriptor in travelling(
        MESSAGE_TYPES
    )
    assert protocol() == f"{PROTOCOL.oldest}-{PROTOCOL.newest}:{fingerprint(MESSAGE_TYPES)}"
    assert fingerprint(MESSAGE_TYPES) != fingerprint(MESSAGE_TYPES[1:])


def test_a_process_says_its_version_protocol_host_and_role():
    version, said, host, role = this_program("TaskManager").header.split(" ")
    assert (version, said, role) == (__version__, protocol(), "TaskManager") and host
