"""A proxy before a store: it notes requests, and answers 503, loses answers, cuts and slows as it is told."""

import contextlib
import http.client
import http.server
import socket
import threading
import time

_DROPPED = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length", "date", "server"})
BUSY = b"<Error><Code>SlowDown</Code><Message>slow down</Message><RequestId>REQ-503</RequestId></Error>"


class Proxy:
    """The proxy. ``fault(number, method, path)`` says what becomes of a request.

    None: it is passed on. "busy": 503, and the store does not see it. "refused": the connection ends before the store
    sees it. "lost": the store has done it, and its answer is lost. "cut": half of the answer. A number: so many seconds
    before it is passed on.
    """

    def __init__(self, endpoint):
        self.requests, self.fault = [], lambda number, method, path: None
        self._lock, self._connections = threading.Lock(), set()
        self._store = endpoint.rpartition("://")[2]
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            #: seconds after which an idle connection ends
            timeout = 1
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                proxy._connections.add(self.connection)

            def finish(self):
                proxy._connections.discard(self.connection)
                super().finish()

            def log_message(self, *_):
                pass

            def _pass_on(self):
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                what = proxy._next(self.command, self.path)
                if what == "busy":
                    self._answer(503, {"Content-Type": "application/xml"}, BUSY)
                    return
                if what == "refused":
                    self.close_connection = True
                    return
                if isinstance(what, float | int):
                    time.sleep(what)
                status, headers, body = proxy.answered(self.command, self.path, dict(self.headers), content)
                if what == "lost":
                    self.close_connection = True
                    return
                self._answer(status, headers, body, is_cut=what == "cut")

            def _answer(self, status, headers, body, *, is_cut=False):
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in _DROPPED:
                        self.send_header(name, value)
                length = headers.get("Content-Length") if self.command == "HEAD" else len(body)
                self.send_header("Content-Length", str(length or 0))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body[: len(body) // 2] if is_cut else body)
                self.close_connection = self.close_connection or is_cut

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815 - the server's names

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answered(self, method, path, headers, content=b""):
        """Return what the store answers: status, headers, content."""
        connection = http.client.HTTPConnection(self._store, timeout=30)
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def _next(self, method, path):
        with self._lock:
            self.requests.append((method, path))
            number = len(self.requests) - 1
        return self.fault(number, method, path)

    @contextlib.contextmanager
    def running(self):
        """Serve until the end of the block."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
            for connection in tuple(self._connections):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
