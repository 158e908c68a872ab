"""Request: the base of all messages between components.

A ``Request[R]`` is a frozen struct that names the type of its reply, so that a call is type-checked from end to end
without stubs. ``Acknowledge`` answers what needs no other answer.

Held by: tests/rpc/test_local_gateway.py
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

R_co = TypeVar("R_co", covariant=True)


class Request(msgspec.Struct, Generic[R_co], frozen=True):
    """Base of all messages; ``R_co`` is what answers it."""


class Acknowledge(msgspec.Struct, frozen=True):
    """The reply of what has nothing to say."""


ACKNOWLEDGE = Acknowledge()
