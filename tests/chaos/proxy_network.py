"""ProxyNetwork: the faults of a network for whoever is not root: a proxy before each port of each process.

    network = ProxyNetwork(["jm", "tm1"], seed) ─► address("jm")                what others are told
    network.open("jm", port)                                                    address:port ─► 127.0.0.1:port
    network.know("tm1", pid)                                                    whose connections come from there
    cut  isolate  delay_s  heal                                                 as of a TapNetwork, but silent links
    damage("tm1", port, kind, count)      kind: break, truncate, flip           so many chunks to and from that port

Each place has an address of its own in 127.0.0.0/8. A link that is cut holds bytes back, and new connections as well,
until it is healed, as TCP would. A chunk is what one read from a socket brings.
"""

import asyncio
import collections
import contextlib
import random
import threading

import psutil

_CHUNK = 65536
#: of the chunks that may be damaged
_DAMAGED_SHARE = 0.3


class ProxyNetwork:
    def __init__(self, names, seed):
        self._random = random.Random(seed)
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._pids = {}
        self._cut = set()
        self.delay_s = 0.0, 0.0
        self.counts = collections.Counter()
        #: (place, port) -> (kind, chunks still to be damaged)
        self._damage = {}
        self._writers = set()
        self._work = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._thread.start()
        self._healed = self._call(self._event())
        self._servers = []

    async def _event(self):
        return asyncio.Event()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def address(self, name):
        return f"127.78.0.{self._numbers[name]}"

    def command(self, name):
        return []

    def inside(self, name):
        return contextlib.nullcontext()

    def open(self, name, port):
        async def serve():
            return await asyncio.start_server(
                lambda reader, writer: self._connected(name, port, reader, writer), self.address(name), port
            )

        self._servers.append(self._call(serve()))

    def know(self, name, pid):
        self._pids[name] = pid

    # ---- faults ----

    def cut(self, source, target, *, both=True):
        self._cut |= {(source, target)} | ({(target, source)} if both else set())

    def isolate(self, name):
        for other in self._numbers:
            if other != name:
                self.cut(name, other)

    def heal(self):
        self._cut = set()
        self.delay_s = 0.0, 0.0
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self):
        self._healed.set()
        self._healed.clear()

    def damage(self, name, port, kind, count):
        self._damage[name, port] = kind, count

    # ---- the proxy: on its loop ----

    async def _connected(self, target, port, reader, writer):
        task = asyncio.current_task()
        self._work.add(task)
        self._writers.add(writer)
        try:
            source = _Source(self._pids, writer.get_extra_info("peername")[1])
            await asyncio.to_thread(source.find)
            await self._passable(source, target, False)
            await self._passable(source, target, True)
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
            self._writers.add(there_writer)
            self.counts["connections"] += 1
            await asyncio.gather(
                self._pump((source, target, False), (target, port), reader, there_writer),
                self._pump((source, target, True), (target, port), there_reader, writer),
            )
            there_writer.close()
            self._writers.discard(there_writer)
        except OSError:
            self.counts["refused"] += 1
        finally:
            writer.close()
            self._writers.discard(writer)
            self._work.discard(task)

    def _is_cut(self, source, target, is_back):
        here = source.find()
        return ((target, here) if is_back else (here, target)) in self._cut

    async def _passable(self, source, target, is_back):
        if self._is_cut(source, target, is_back):
            self.counts["cut"] += 1
        while self._is_cut(source, target, is_back):
            await self._healed.wait()

    async def _pump(self, link, where, reader, writer):
        """Carry bytes one way until their end or an error, which is passed on."""
        try:
            while chunk := await reader.read(_CHUNK):
                if self.delay_s[1]:
                    self.counts["delayed"] += 1
                    await asyncio.sleep(self._random.uniform(*self.delay_s))
                await self._passable(*link)
                writer.write(self._damaged(where, chunk, writer))
                await writer.drain()
        except OSError:
            self.counts["broken"] += 1
        await self._passable(*link)
        with contextlib.suppress(OSError):
            if writer.can_write_eof() and not writer.is_closing():
                writer.write_eof()

    def _damaged(self, where, chunk, writer):
        if where not in self._damage or self._random.random() > _DAMAGED_SHARE:
            return chunk
        kind, count = self._damage.pop(where)
        if count > 1:
            self._damage[where] = kind, count - 1
        self.counts[kind] += 1
        if kind == "flip":
            flipped = bytearray(chunk)
            flipped[self._random.randrange(len(chunk))] ^= 1 << self._random.randrange(8)
            return bytes(flipped)
        if kind == "truncate":
            writer.write(chunk[: self._random.randrange(len(chunk))])
            writer.close()
        else:
            writer.transport.abort()
        raise ConnectionAbortedError

    def close(self):
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self):
        for server in self._servers:
            server.close()
        self.heal()
        for writer in tuple(self._writers):
            writer.transport.abort()
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)


class _Source:
    """The place whose process has a connection from that port; "" as long as it is not known."""

    def __init__(self, pids, port):
        self._pids = pids
        self._port = port
        self._name = ""
        self._tried_count = 0

    def find(self):
        if not self._name and self._tried_count < len(self._pids):
            self._tried_count = len(self._pids)
            for name, pid in self._pids.items():
                with contextlib.suppress(psutil.Error):
                    if any(
                        one.laddr.port == self._port for one in psutil.Process(pid).net_connections("tcp") if one.raddr
                    ):
                        self._name = name
        return self._name
