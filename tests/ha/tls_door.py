"""TLS in front of a ZooKeeper server that speaks none: a thread that unwraps connections and passes them on."""

import asyncio
import contextlib
import threading


class TlsDoor:
    def __init__(self, port, context):
        self._target, self._context = port, context
        self._loop = asyncio.new_event_loop()
        self._tasks = set()
        self.refused = 0
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,))
        self._thread.start()
        ready.wait()

    def _run(self, ready):
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda loop, context: None)  # handshakes that fail are what is tested
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._pass, "127.0.0.1", 0, ssl=self._context)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        self._server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    async def _pass(self, reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._target)

        async def pump(source, target):
            with contextlib.suppress(OSError, asyncio.CancelledError):
                while part := await source.read(65536):
                    target.write(part)
                    await target.drain()
            target.close()

        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
