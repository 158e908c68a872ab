"""The protocol of a cluster: the fingerprint of all messages between its processes.

    protocol() ─► eight hexadecimal digits      this_program("TaskManager") ─► what a process says of itself

Held by: tests/gateways/test_protocol.py
"""

from __future__ import annotations

from functools import cache

from engine.gateways.messages import MESSAGE_TYPES
from engine.rpc.fingerprint import fingerprint
from engine.rpc.program import Program, own_program


@cache
def protocol() -> str:
    """Return the fingerprint of the messages."""
    return fingerprint(MESSAGE_TYPES)


def this_program(role: str) -> Program:
    """Return the program that a process of that role reports."""
    return own_program(role, protocol())
