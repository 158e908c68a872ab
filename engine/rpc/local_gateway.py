"""Calls between endpoints of one process.

    ask ─► [codec round trip] ─► loop ─► endpoint.dispatch(epoch, message) ─► [codec round trip] ─► reply

A call never runs inside the caller's stack: it is queued on the loop, and calls start in the order they were made, as
over a connection. With ``codec`` every message, reply and error passes its byte form, so that nothing is shared by
accident and everything that works here works over the network. A deadline ends the waiting, not the work: as over a
network the called side goes on. Within one process no endpoint can be cut off, and a late answer only means a busy
machine. So in a service without ``ask_timeout_s`` callers that name no deadline wait.
"""

from __future__ import annotations

import asyncio
from types import EllipsisType
from typing import Any

import msgspec

from engine.rpc.codec import MessageCodec
from engine.rpc.endpoint import RpcEndpoint
from engine.rpc.errors import EndpointUnreachableError, RpcTimeoutError
from engine.rpc.gateway import ASK_TIMEOUT_S, Gateway, R
from engine.rpc.request import Request


class LocalRpcService:
    """Endpoints of this process by address.

    ``ask_timeout_s``: the deadline, in seconds, of calls that have none of their own; None: they wait.
    """

    def __init__(self, codec: MessageCodec | None = None, ask_timeout_s: float | None = ASK_TIMEOUT_S) -> None:
        self._codec = codec
        self.ask_timeout_s = ask_timeout_s
        self._endpoints: dict[str, RpcEndpoint] = {}

    def start(self, endpoint: RpcEndpoint) -> None:
        """Make an endpoint reachable; an address that is taken raises ValueError."""
        if endpoint.address in self._endpoints:
            raise ValueError(f"address {endpoint.address} is taken")
        self._endpoints[endpoint.address] = endpoint

    def stop(self, endpoint: RpcEndpoint) -> None:
        """Make it unreachable; idempotent."""
        if self._endpoints.get(endpoint.address) is endpoint:
            del self._endpoints[endpoint.address]

    def address_of(self, name: str) -> str:
        """Return the name, which has a meaning in this process only."""
        return name

    def connect(self, address: str, epoch: int) -> Gateway:
        """Return a gateway to an address."""
        return LocalGateway(self, address, epoch)

    async def deliver(self, address: str, epoch: int, message: object) -> object:
        """Answer a message at its endpoint, through the codec when there is one."""
        endpoint = self._endpoints.get(address)
        if endpoint is None:
            raise EndpointUnreachableError(f"nothing answers at {address}")
        if self._codec is None:
            return await endpoint.dispatch(epoch, message)
        try:
            reply = await endpoint.dispatch(epoch, self._codec.decode(self._codec.encode(message)))
        except Exception as error:
            raise self._codec.decode_error(self._codec.encode_error(error)) from error
        return self._codec.decode(self._codec.encode(reply))


class LocalGateway(msgspec.Struct, frozen=True, eq=False):
    """An endpoint of this process, under one epoch."""

    service: LocalRpcService
    address: str
    epoch: int

    async def ask(self, request: Request[R], timeout_s: float | EllipsisType | None = ...) -> R:
        """Send a request and return the reply (``Gateway.ask``); without ``timeout_s`` the service has one."""
        if isinstance(timeout_s, EllipsisType):
            timeout_s = self.service.ask_timeout_s
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[R] = loop.create_future()
        answering = loop.create_task(self._answer(request, reply))
        deadline = None if timeout_s is None else loop.call_later(timeout_s, self._too_late, request, reply, timeout_s)
        try:
            answer = await reply
        finally:
            if deadline is not None:
                deadline.cancel()
        del answering  # until here it is referred to: the loop alone keeps no task alive
        return answer

    def _too_late(self, request: Request[Any], reply: asyncio.Future[Any], timeout_s: float) -> None:
        """End the waiting for a reply, if there is none yet."""
        if not reply.done():
            what = type(request).__name__
            reply.set_exception(RpcTimeoutError(f"{self.address} did not answer {what} within {timeout_s} s"))

    async def _answer(self, request: Request[Any], reply: asyncio.Future[Any]) -> None:
        """Have a request answered; a caller that gave up, and cancelled its reply, does not look at the outcome."""
        try:
            answer = await self.service.deliver(self.address, self.epoch, request)
        except Exception as error:
            if not reply.done():
                reply.set_exception(error)
        except BaseException:
            reply.cancel()
            raise
        else:
            if not reply.done():
                reply.set_result(answer)
