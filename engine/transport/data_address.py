"""Data address: the place of a TaskManager's result partitions, as text that travels with its slots.

    "unix:/tmp/drey-data-1a2b/socket|127.0.0.1:40123"      both, or one of them

A reader on the same host, which sees the UNIX socket, uses it; others use TCP.

Held by: tests/transport/test_remote_channels.py
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from engine.errors import ConfigurationError
from engine.network_address import address_text, split_address

_UNIX: Final = "unix:"


class DataAddress(NamedTuple):
    """Parts of a data address; "" and 0 where there is none."""

    unix_path: str = ""
    host: str = ""
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the parts.

        Raises:
            ConfigurationError: not a data address.
        """
        unix_path, host, port = "", "", 0
        for part in text.split("|"):
            if part.startswith(_UNIX):
                unix_path = part.removeprefix(_UNIX)
                continue
            try:
                host, port = split_address(part)
            except ValueError as error:
                raise ConfigurationError(f"no data address: {text!r} (unix:PATH|HOST:PORT): {error}") from None
            if not port:
                raise ConfigurationError(f"no data address: {text!r} (unix:PATH|HOST:PORT): port 0")
        if not unix_path and not host:
            raise ConfigurationError(f"no data address: {text!r} (unix:PATH|HOST:PORT)")
        return cls(unix_path, host, port)

    def __str__(self) -> str:
        parts = [f"{_UNIX}{self.unix_path}"] if self.unix_path else []
        if self.host:
            parts.append(address_text(self.host, self.port))
        return "|".join(parts)
