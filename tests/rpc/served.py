"""An HTTP server on a loop of its own thread, and requests to it as bytes."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import socket
import threading
import time
from contextlib import contextmanager

from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route, json_response
from engine.rpc.http_server import HttpServer
from engine.rpc.principal import Role

SECRET = b"a secret of the tests, 32 bytes!"
WAIT_S = 60.0


def until(condition, what="it"):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.01)


class Served:
    """A started server and what its handlers saw."""

    def __init__(self, loop, credentials=None, bind_host="127.0.0.1", **arguments) -> None:
        self.loop = loop
        self.credentials = credentials
        self.server = HttpServer(bind_host, (0,), credentials, **arguments)
        self.seen: list[HttpRequest] = []
        self.cancelled = threading.Event()
        self.waiting = threading.Event()

    def routes(self):
        return [
            Route("GET", "/open/{name}", self.open, Access.OPEN_GET, 0),
            Route("GET", "/for-submit", self.fixed, Access.OPEN_GET, 0, role=Role.SUBMIT),
            Route("POST", "/echo", self.echo, Access.SECRET, 1000),
            Route("POST", "/echo-soon", self.echo, Access.SECRET, 1000, body_timeout_s=0.5),
            Route("PUT", "/streamed", self.streamed, Access.SECRET, 1000, is_streamed=True),
            Route("POST", "/fail", self.fail, Access.SECRET),
            Route("POST", "/wait", self.wait, Access.SECRET),
            Route("POST", "/parts", self.parts, Access.SECRET),
        ]

    async def open(self, request):
        self.seen.append(request)
        return json_response({"name": request.variables["name"], "query": dict(request.query)})

    async def fixed(self, request):
        return json_response({})

    async def echo(self, request):
        self.seen.append(request)
        return json_response({"length": len(request.body)})

    async def streamed(self, request):
        self.seen.append(request)
        return json_response({"length": sum([len(chunk) async for chunk in request.chunks])})

    async def fail(self, request):
        self.seen.append(request)
        if request.body == b"known":
            raise HttpError(409, "not now")
        raise KeyError("secrets of the inside")

    async def parts(self, request):
        async def parts():
            yield b"first"
            if request.body == b"fails":
                raise KeyError("second")

        return HttpResponse(parts=parts())

    async def wait(self, request):
        self.waiting.set()
        try:
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S)

    # ---- requests ----

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=WAIT_S)

    def raw(self, data: bytes, ends: bool = False) -> tuple[int, bytes]:
        """Send bytes (and nothing ever after), return status and body of the first answer; status 0: none came."""
        with self.connect() as connection:
            try:
                connection.sendall(data)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                return answer_of(connection)
            except (ConnectionResetError, BrokenPipeError):
                return 0, b""

    def ask(self, method, target, body=b"", headers=None, signed=True, credentials=None):
        """Return status and body of one request, signed unless told otherwise."""
        headers = dict(headers or {})
        credentials = credentials or self.credentials
        if signed and AUTHORIZATION not in headers and credentials is not None:
            headers[AUTHORIZATION] = credentials.sign(method, target, hashlib.sha256(body).hexdigest())
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=WAIT_S)
        try:
            connection.request(method, target, body or None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.HTTPException, ValueError):
        return 0, b""
    finally:
        response.close()


@contextmanager
def served(credentials=True, routes=(), **arguments):
    """A server with the routes of ``Served``; checks that it leaves no task behind."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        own = Credentials(SECRET) if credentials is True else credentials
        running = Served(loop, own or None, **arguments)
        running.server.add_routes([*running.routes(), *routes])
        running.call(running.server.start())
        try:
            yield running
        finally:
            running.call(running.server.stop())
            until(lambda: not asyncio.all_tasks(loop), "the end of all tasks")
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
