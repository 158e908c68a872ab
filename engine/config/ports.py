"""Ports as people write them: ``8081``, a range ``8081-8090`` of which the first free one is taken, ``0`` for any.

parse_ports("8081-8083,9000") -> (8081, 8082, 8083, 9000)

Source: the port ranges of Flink's configuration.
Held by: tests/config/test_loader.py
"""

from __future__ import annotations

import re

from engine.errors import ConfigurationError

_PART = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_PORT_MAX = 65535


def parse_ports(text: str) -> tuple[int, ...]:
    """Return the ports to try, in order; anything else raises ConfigurationError."""
    ports: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first = int(match[1]) if match else -1
        last = int(match[2] or match[1]) if match else -1
        if not 0 <= first <= last <= _PORT_MAX:
            raise ConfigurationError(f"{text!r} is not a port or a range of ports: write for example 8081 or 8081-8090")
        ports.extend(range(first, last + 1))
    return tuple(ports)
