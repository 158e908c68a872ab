"""Limits of every state store: names of hexadecimal digits, contents that ZooKeeper can hold.

Held by: tests/ha/test_state_store.py
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[0-9a-f]{1,64}")
#: limit of a node's content: a megabyte breaks the connection to ZooKeeper; a handle has far less than half of it
CONTENT_MAX_BYTES = 512 << 10


def is_name(name: str) -> bool:
    """Return whether a content may be called so."""
    return _NAME.fullmatch(name) is not None


def check_write(name: str, content: bytes = b"") -> None:
    """Raise ValueError for what no store takes."""
    if not is_name(name):
        raise ValueError(f"{name!r} is not a name for a content: write 1 to 64 hexadecimal digits")
    if len(content) > CONTENT_MAX_BYTES:
        raise ValueError(f"the content of {name} has {len(content)} bytes, more than {CONTENT_MAX_BYTES}")
