"""Sources of the leader's address: one JobManager, several that are tried in turn, or ZooKeeper.

source.address() ─► host:port, or None while no JobManager leads
    ─ no answer from there, or not as a leader ─► source.failed(address) ─► source.wait(seconds) ─► address() ...

Held by: tests/client/test_following_the_leader.py
"""

from __future__ import annotations

import time
from typing import Protocol

from engine.client.deployments import why_refused
from engine.errors import ConfigurationError
from engine.network_address import split_address


class LeaderSource(Protocol):
    """A source of the leader's address. For one thread."""

    @property
    def count(self) -> int:
        """Addresses that are worth a try at once."""
        ...

    def address(self) -> str | None:
        """Return ``host:port``, or None while no leader is known."""
        ...

    def failed(self, address: str) -> None:
        """Handle an address where no leader answers."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait for a time, or until the address changes."""
        ...

    def close(self) -> None:
        """Look no more; idempotent."""
        ...


class FixedAddresses:
    """``host:port``, or several separated by commas: one after the other until one is the leader."""

    def __init__(self, text: str) -> None:
        self._addresses = [address.strip() for address in text.split(",") if address.strip()]
        if not self._addresses:
            raise ConfigurationError(f"{text!r} is not an address: write host:port")
        for address in self._addresses:
            try:
                split_address(address)
            except ValueError as error:
                raise ConfigurationError(f"{address!r} is not an address: {why_refused(address) or error}") from None

    @property
    def count(self) -> int:
        """All of them."""
        return len(self._addresses)

    def address(self) -> str:
        """Return the one whose turn it is."""
        return self._addresses[0]

    def failed(self, address: str) -> None:
        """Advance to the next address."""
        if address == self._addresses[0]:
            self._addresses.append(self._addresses.pop(0))

    def wait(self, seconds: float) -> None:
        """Wait for the time."""
        time.sleep(seconds)

    def close(self) -> None:
        """Do nothing."""
