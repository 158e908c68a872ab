"""The protocol of a cluster: the numbers and the fingerprint of all messages between its processes.

    protocol() ─► "1-2:9f31c2aa"      this_program("TaskManager") ─► what a process says of itself

Held by: tests/gateways/test_protocol.py
"""

from __future__ import annotations

from functools import cache

from engine.gateways.messages import MESSAGE_TYPES
from engine.rpc.fingerprint import fingerprint
from engine.rpc.program import Program, own_program
from engine.versions import PROTOCOL


@cache
def protocol() -> str:
    """Return the oldest and the newest form of messages that this program knows, and their fingerprint."""
    return f"{PROTOCOL.oldest}-{PROTOCOL.newest}:{fingerprint(MESSAGE_TYPES)}"


def this_program(role: str) -> Program:
    """Return the program that a process of that role reports."""
    return own_program(role, protocol())
