"""Link: a TCP proxy on loopback whose bytes can be held back, in one direction or both, as a cut network does.

    link = Link(port) ─► clients connect to link.port ─► bytes go on to ``port``
    link.cut("out")  what clients send stays here;  link.cut("in")  what they would get;  link.cut("out", "in")
    link.heal()      everything goes on, with what was held back

No connection breaks: whoever is behind a cut link hears nothing, as with lost packets. New connections come about when
the link is whole. ``held_bytes`` counts what was held back, so a test can see that its cut was one.
"""

import asyncio
import contextlib
import threading

DIRECTIONS = frozenset({"out", "in"})


class Link:
    """A proxy to a port of loopback; runs in a thread of its own until ``close``."""

    def __init__(self, target_port):
        self._target_port = target_port
        self.held_bytes = 0
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="link", daemon=True)
        self._thread.start()
        assert started.wait(30)

    def cut(self, *directions):
        assert DIRECTIONS.issuperset(directions)
        self._loop.call_soon_threadsafe(self._change, set(directions))

    def heal(self):
        self._loop.call_soon_threadsafe(self._change, set())

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        assert not self._thread.is_alive()

    # ---- the thread ----

    def _run(self, started):
        asyncio.set_event_loop(self._loop)
        self._open = {direction: asyncio.Event() for direction in DIRECTIONS}
        self._change(set())
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _change(self, cut):
        for direction, is_open in self._open.items():
            (is_open.clear if direction in cut else is_open.set)()

    async def _serve(self, reader, writer):
        for is_open in self._open.values():  # TCP's handshake needs both directions
            await is_open.wait()
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, server_writer, "out"), self._pump(server_reader, writer, "in"))

    async def _pump(self, reader, writer, direction):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if not self._open[direction].is_set():
                    self.held_bytes += len(data)
                    await self._open[direction].wait()
                writer.write(data)
                await writer.drain()
        await self._open[direction].wait()
        writer.close()
