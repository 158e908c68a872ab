"""Calls between processes in virtual time: late, in their order, or held up where the network is cut.

    network.rpc(process, host) ─► an RpcService, whose endpoints are at host/name
    network.cut(host, other, seconds)      what is on its way arrives after that, or its caller has given up

A process that is not there refuses calls at once; one that dies while it answers breaks them off; one that is stopped
lets its callers wait. The handler of a message is a task of the process that is called.
"""

from __future__ import annotations

import asyncio

from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.local_gateway import LocalRpcService


class Network:
    """The processes of a cluster by host."""

    def __init__(self, loop, chance, mean_delay_s):
        self.loop, self.chance, self.mean_delay_s = loop, chance, mean_delay_s
        self.services = {}
        #: (from, to) -> when the next packet arrives at the earliest
        self._arrivals = {}
        #: pair of hosts -> until when it is cut
        self._cuts = {}

    def rpc(self, process, host):
        service = self.services[host] = ModelRpc(self, process, host)
        return service

    def cut(self, host, other, seconds):
        self._cuts[frozenset((host, other))] = self.loop.time() + seconds

    async def travel(self, source, target):
        """Wait until a packet has arrived."""
        delay_s = self.chance.expovariate(1 / self.mean_delay_s) if self.mean_delay_s else 0.0
        arrival_s = max(
            self._arrivals.get((source, target), 0.0),
            self._cuts.get(frozenset((source, target)), 0.0),
            self.loop.time() + delay_s,
        )
        self._arrivals[source, target] = arrival_s
        await asyncio.sleep(arrival_s - self.loop.time())


class ModelRpc(LocalRpcService):
    """The RpcService of one process."""

    def __init__(self, network, process, host):
        super().__init__()
        self._network, self.process, self.host = network, process, host

    def address_of(self, name):
        return f"{self.host}/{name}"

    async def deliver(self, address, epoch, message):
        host, mark, name = address.rpartition("/")
        if not mark or host == self.host:
            return await super().deliver(name, epoch, message)
        await self._network.travel(self.host, host)
        target = self._network.services.get(host)
        if target is None or target.process.is_dead:
            raise EndpointUnreachableError(f"nothing answers at {address}")
        reply = asyncio.get_running_loop().create_future()
        target.process.task(target.answer(name, epoch, message, reply))
        broken_off = lambda: target.process.is_dead and self._break_off(reply, address)  # noqa: E731
        target.process.watchers.append(broken_off)
        try:
            answer, error = await reply
        finally:
            target.process.watchers.remove(broken_off)
        await self._network.travel(host, self.host)
        if error is not None:
            raise error
        return answer

    def _break_off(self, reply, address):
        if not self.process.is_dead:
            error = EndpointUnreachableError(f"{address} has broken the connection off")
            self.process.begin(self._network.loop.call_soon, _reply, reply, None, error)

    async def answer(self, name, epoch, message, reply):
        """Answer a call of another process."""
        try:
            value, error = await super().deliver(name, epoch, message), None
        except Exception as raised:
            value, error = None, raised
        _reply(reply, value, error)


def _reply(reply, value, error):
    if not reply.done():
        reply.set_result((value, error))
