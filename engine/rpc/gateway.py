"""Gateway: a component as its callers see it, an address that takes typed requests.

    service.connect(address, epoch) ──► Gateway ── await ask(Request[Reply]) ──► Reply, or the error the other raised

Every call carries the epoch with which the gateway was connected; the other end refuses it under another leader.
Transports (one process, HTTP) differ only in the RpcService that components are given.

Thread: gateways are used on the event loop only.

Held by: tests/rpc/test_local_gateway.py
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.request import Request

R = TypeVar("R")

#: seconds until an unanswered call raises RpcTimeoutError
ASK_TIMEOUT_S = 10.0


class Gateway(Protocol):
    """One component, seen from another."""

    @property
    def address(self) -> str:
        """The address of the component."""
        ...

    async def ask(self, request: Request[R], timeout_s: float | None = ASK_TIMEOUT_S) -> R:
        """Send a request and return the reply.

        Raises: FencedError for another epoch, RpcTimeoutError after ``timeout_s`` (None: never),
        EndpointUnreachableError when no endpoint is there, and what the component raised.
        """
        ...


class RpcService(Protocol):
    """The transport of a process."""

    def start(self, endpoint: RpcEndpoint) -> None:
        """Make an endpoint reachable at its address."""
        ...

    def stop(self, endpoint: RpcEndpoint) -> None:
        """Make it unreachable."""
        ...

    def address_of(self, name: str) -> str:
        """Return the address under which other processes reach the endpoint of that name."""
        ...

    def connect(self, address: str, epoch: int) -> Gateway:
        """Return a gateway to an address; does not wait for it to be there."""
        ...
