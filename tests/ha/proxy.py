"""A TCP proxy in front of a ZooKeeper server that loses what a test says.

It knows where a request begins: a length of four bytes, then a number of the request (xid) and its type.
"""

import contextlib
import socket
import struct
import threading

TRANSACTION = 14


class Proxy:
    """``losing``: of the next request of a type, "request" or "answer": the connection is cut instead of passing it."""

    def __init__(self, port):
        self._target = ("127.0.0.1", port)
        self._lock = threading.Lock()
        self._sockets = set()
        self._threads = []
        self._losing = None
        self._is_open = True
        self._is_ended = False
        #: connections that were cut in place of a request or an answer
        self.lost = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def lose(self, what, kind=TRANSACTION):
        with self._lock:
            self._losing = (what, kind)

    def cut(self):
        """Cut all connections and refuse new ones."""
        with self._lock:
            self._is_open = False
            for end in self._sockets:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def heal(self):
        with self._lock:
            self._is_open = True

    def close(self):
        self._is_ended = True
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while not self._is_ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                is_open = self._is_open
            try:
                server = socket.create_connection(self._target) if is_open else None
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                is_open = self._is_open  # it may have been cut meanwhile, and this one with all others
                if is_open:
                    self.connections += 1
                    self._sockets |= {client, server}
            if not is_open:
                client.close()
                server.close()
                continue
            waiting = {}
            self._start(self._pass, client, server, waiting, "request")
            self._start(self._pass, server, client, waiting, "answer")

    def _pass(self, source, target, waiting, what):
        is_first = True
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(source)
                if not is_first and self._is_lost(frame, waiting, what):
                    break
                is_first = False
                target.sendall(struct.pack(">i", len(frame)) + frame)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._sockets.discard(source)
            source.close()

    def _is_lost(self, frame, waiting, what):
        number = struct.unpack_from(">i", frame)[0]
        with self._lock:
            if what == "request":
                kind = waiting[number] = struct.unpack_from(">i", frame, 4)[0]
            else:
                kind = waiting.get(number)
            if self._losing != (what, kind):
                return False
            self._losing = None
            self.lost += 1
            return True


def _frame(source):
    return _exactly(source, struct.unpack(">i", _exactly(source, 4))[0])


def _exactly(source, count):
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
