"""Calls between processes in virtual time: late, in their order, or held up where the network is cut.

    network.rpc(process, host) ─► an RpcService, whose endpoints are at host/name
    network.cut(host, other, seconds)      what is on its way arrives after that, or its caller has given up
    network.reset(host, other)             connections break: calls under way fail, whether they have arrived or not

A process that is not there refuses calls at once; one that dies while it answers breaks them off; one that is stopped
lets its callers wait. The handler of a message is a task of the process that is called.

A rough network does what the real one may: calls to two endpoints of one process pass each other, and so do answers;
what a caller has given up, and sends once more, arrives late all the same; its handler is cancelled, soon.
"""

from __future__ import annotations

import asyncio

from engine.rpc.errors import EndpointUnreachableError
from engine.rpc.local_gateway import LocalRpcService
from tests.cluster_model.virtual_threads import NOWHERE


class Network:
    """The processes of a cluster by host."""

    def __init__(self, loop, chance, mean_delay_s, is_rough=False):
        self.loop, self.chance, self.mean_delay_s, self.is_rough = loop, chance, mean_delay_s, is_rough
        self.services = {}
        #: (from, to) -> when the next packet arrives at the earliest
        self._arrivals = {}
        #: pair of hosts -> until when it is cut
        self._cuts = {}
        #: pair of hosts -> how often connections between them have broken
        self._resets = {}
        #: calls that are being answered: reply -> pair of hosts
        self._answered = {}

    def rpc(self, process, host):
        service = self.services[host] = ModelRpc(self, process, host)
        return service

    def cut(self, host, other, seconds):
        self._cuts[frozenset((host, other))] = self.loop.time() + seconds

    def reset(self, host, other):
        pair = frozenset((host, other))
        self._resets[pair] = self._resets.get(pair, 0) + 1
        for reply in [each for each, of in self._answered.items() if of == pair]:
            _reply(reply, None, EndpointUnreachableError("the connection broke"))

    def resets(self, host, other):
        return self._resets.get(frozenset((host, other)), 0)

    def end_soon(self, work):
        """Cancel what answers a caller that has gone, as the server does that finds the connection closed."""
        if self.is_rough and not work.done():
            self.loop.call_later(self.chance.expovariate(1 / self.mean_delay_s), work.cancel, context=NOWHERE)

    async def travel(self, source, target, way=None):
        """Wait until a packet has arrived; those of one ``way`` arrive in their order."""
        way = target if way is None else way
        delay_s = self.chance.expovariate(1 / self.mean_delay_s) if self.mean_delay_s else 0.0
        arrival_s = max(
            self._arrivals.get((source, way), 0.0),
            self._cuts.get(frozenset((source, target)), 0.0),
            self.loop.time() + delay_s,
        )
        self._arrivals[source, way] = arrival_s
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
        network = self._network
        resets = network.resets(self.host, host)
        try:
            await network.travel(self.host, host, name if network.is_rough else None)
        except asyncio.CancelledError:
            self._arrive_late(host, name, epoch, message)
            raise
        if network.resets(self.host, host) > resets:
            self._arrive_late(host, name, epoch, message)
            raise EndpointUnreachableError(f"the connection to {address} broke")
        answer, error = await self._answered(host, name, epoch, message, address)
        await network.travel(host, self.host, object() if network.is_rough else None)
        if network.resets(self.host, host) > resets:
            raise EndpointUnreachableError(f"the connection to {address} broke")
        if error is not None:
            raise error
        return answer

    async def _answered(self, host, name, epoch, message, address):
        """Have the process at a host answer; return its answer and its error."""
        network = self._network
        target = network.services.get(host)
        if target is None or target.process.is_dead:
            raise EndpointUnreachableError(f"nothing answers at {address}")
        reply = asyncio.get_running_loop().create_future()
        work = target.process.task(target.answer(name, epoch, message, reply))
        broken_off = lambda: target.process.is_dead and self._break_off(reply, address)  # noqa: E731
        target.process.watchers.append(broken_off)
        network._answered[reply] = frozenset((self.host, host))
        try:
            return await reply
        finally:
            del network._answered[reply]
            target.process.watchers.remove(broken_off)
            network.end_soon(work)

    def _arrive_late(self, host, name, epoch, message):
        """Have a call arrive of which its caller knows nothing any more, now and then."""
        network = self._network
        if network.is_rough and not self.process.is_dead and network.chance.random() < 0.5:
            after_s = network.chance.expovariate(0.5)
            network.loop.call_later(after_s, self._arrived, host, name, epoch, message, context=NOWHERE)

    def _arrived(self, host, name, epoch, message):
        target = self._network.services.get(host)
        if target is not None and not target.process.is_dead:
            reply = self._network.loop.create_future()
            self._network.end_soon(target.process.task(target.answer(name, epoch, message, reply)))

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
