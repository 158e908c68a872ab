"""Fuzzing: what strangers and broken peers send to ports, from a seed: one connection for each call of an attack.

    HttpFuzz(address, credentials, targets, random)    .attacks: name -> call, which returns how it was answered
    DataFuzz(address, credentials, random)             the same for the port of rows
    SlowLoris(addresses)                               holds connections and sends a byte now and then

The attacker that signs has the secret of the cluster: what it sends gets past the credential, and must be stopped by
the decoders. It names no job, slot or TaskManager that exists.
"""

import asyncio
import collections
import contextlib
import hashlib
import http.client
import secrets
import socket
import threading

import msgspec

from engine.errors import EngineError
from engine.gateways.messages import (
    MESSAGE_TYPES,
    CancelJob,
    FreeSlot,
    Heartbeat,
    ListJobs,
    NotifySlotFree,
    ReleaseJob,
    RequestJobStatus,
    RequestLeader,
    RequestSlotOverview,
)
from engine.gateways.protocol import this_program
from engine.gateways.task_executors import ListTaskExecutors
from engine.ids import AllocationId, JobId, ResourceId
from engine.rpc.codec import MessageCodec
from engine.rpc.frames import Call, FrameReader, FrameWriter, call_payload
from engine.rpc.greeting import Asked, greet
from engine.rpc.program import PROGRAM_HEADER
from engine.transport.frames import HEADER_BYTES, FrameKind, decode_header, encode_frame
from engine.transport.greeting_channel import GreetingChannel
from engine.transport.handshake import Greeting, greet_as_reader
from engine.transport.read_request import ReadRequest

TIMEOUT_S = 20.0
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + secrets.token_bytes(190)
CODEC = MessageCodec(MESSAGE_TYPES)
MESSAGES = [
    CODEC.encode(message)
    for message in (
        Heartbeat("nobody"),
        ListTaskExecutors(),
        RequestSlotOverview(),
        RequestLeader(),
        ListJobs(),
        RequestJobStatus(JobId.random()),
        CancelJob(JobId.random()),
        FreeSlot(AllocationId.random()),
        ReleaseJob(JobId.random()),
        NotifySlotFree(ResourceId.random(), 0, AllocationId.random()),
    )
]
#: program that the attackers say they are: others are refused before their bodies are looked at
PROGRAM = this_program("client")


def mutated(random_, content):
    """Return bytes that differ from valid ones in some places."""
    damaged = bytearray(content)
    for _ in range(random_.choice([1, 1, 1, 2, 5])):
        at = random_.randrange(len(damaged) + 1)
        kind = random_.randrange(5)
        if kind == 0 and damaged:
            damaged[at % len(damaged)] ^= 1 << random_.randrange(8)
        elif kind == 1:
            damaged[at:at] = random_.randbytes(random_.choice([1, 4, 100]))
        elif kind == 2:
            del damaged[at : at + random_.choice([1, 3, 50])]
        elif kind == 3:
            # msgpack's heads of huge texts, arrays and maps, and of deep nesting
            huge = [b"\xdb\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\x91" * 3000]
            damaged[at:at] = random_.choice(huge)
        else:
            damaged = damaged[:at]
    return bytes(damaged)


class HttpFuzz:
    def __init__(self, address, credentials, targets, random_):
        self.address = address
        self._credentials = credentials
        #: (method, path) that may be called by whoever has the secret, with bodies of anything
        self._targets = targets
        self._random = random_
        names = [
            "noise",
            "tls_hello",
            "odd_heads",
            "truncated",
            "huge_lengths",
            "unsigned",
            "replayed",
            "signed",
            "called",
        ]
        self.attacks = {name: getattr(self, name) for name in names}

    @contextlib.contextmanager
    def _connected(self):
        with socket.create_connection(self.address, TIMEOUT_S) as connection:
            yield connection

    def _answer(self, content, is_all=False):
        """Send bytes and return the status of the answer; "closed" when there is none."""
        with self._connected() as connection:
            try:
                connection.sendall(content)
                if is_all:
                    connection.shutdown(socket.SHUT_WR)
                response = http.client.HTTPResponse(connection)
                response.begin()
                # events do not end: a part of them is an answer
                is_stream = response.headers.get("Content-Type", "").startswith("text/event-stream")
                response.read1(65536) if is_stream else response.read(65536)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                return "closed"
            return response.status

    def _drop(self, content):
        """Send bytes and go away, without waiting for an answer."""
        with self._connected() as connection, contextlib.suppress(ConnectionError):
            connection.sendall(content)
        return "dropped"

    def _request(self, method, path, body, header=None, length=None):
        host, port = self.address
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", "X-Drey-Epoch: 1", "Connection: close"]
        lines += [f"{PROGRAM_HEADER}: {PROGRAM.header}"]
        lines += [f"Content-Length: {len(body) if length is None else length}"]
        lines += [f"Authorization: {header}"] if header else []
        return "\r\n".join([*lines, "", ""]).encode() + body

    def _signed(self, method, path, body):
        header = self._credentials.sign(method, path, hashlib.sha256(body).hexdigest(), "1")
        return self._request(method, path, body, header)

    def _target(self, *, changes=False):
        """Return a method and a path; ``changes``: one that is never open to everybody."""
        return self._random.choice([one for one in self._targets if one[0] != "GET"] if changes else self._targets)

    def noise(self):
        return self._drop(self._random.randbytes(self._random.choice([1, 10, 100, 5000])))

    def tls_hello(self):
        return self._answer(TLS_HELLO)

    def odd_heads(self):
        chunked = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        heads = [
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /%00%ff/../../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
            chunked + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
            chunked + b"\r\nffffffffffffffff\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
            b"\r\n" * 1000,
        ]
        return self._answer(mutated(self._random, self._random.choice(heads)), is_all=True)

    def truncated(self):
        content = self._signed(*self._target(), self._random.choice(MESSAGES))
        return self._drop(content[: self._random.randrange(len(content))])

    def huge_lengths(self):
        method, path = self._target()
        length = self._random.choice([2**31, 2**40, 2**63, 10**30])
        header = self._credentials.sign(method, path, "0" * 64, "1")
        return self._answer(self._request(method, path, b"x", header, length))

    def called(self):
        """Make calls of wrong messages, to anybody, in good frames; then send frames that are wrong themselves."""
        return asyncio.run(asyncio.wait_for(self._call(), TIMEOUT_S))

    async def _call(self):
        host, port = self.address
        stream, keys = await greet(Asked(f"{host}:{port}", self._credentials, PROGRAM, None))
        writer, reader, random_ = FrameWriter(keys[0]), FrameReader(keys[1]), self._random
        calls = []
        for number in range(1, 6):
            message = mutated(random_, random_.choice(MESSAGES))
            name = random_.choice(["resourcemanager", "dispatcher", "leader", "nobody", "\0"])
            calls.append(
                writer.frame(
                    call_payload(
                        Call(number, random_.choice([0, 1, 2**62]), 5.0, name, message, self._credentials.now_ms())
                    )
                )
            )
        try:
            stream.writelines(calls)
            await stream.drain()
            seen = 0
            while seen < len(calls):
                data = await stream._reader.read(65536)
                if not data:
                    return "closed early"
                seen += len(list(reader.feed(data)))
            wrong = mutated(random_, writer.frame(call_payload(Call(6, 1, None, "leader", MESSAGES[0]))))
            stream.write(wrong)
            stream.write_eof()
            while await stream._reader.read(65536):
                pass
        finally:
            stream.close()
        return "called"

    def unsigned(self):
        return self._answer(self._request(*self._target(changes=True), self._random.choice(MESSAGES)))

    def replayed(self):
        content = self._signed(*self._target(changes=True), b"\xc0")
        return "not even once" if self._answer(content) in (401, "closed") else f"once, then {self._answer(content)}"

    def signed(self):
        body = mutated(self._random, self._random.choice(MESSAGES))
        return self._answer(self._signed(*self._target(changes=self._random.random() < 0.9), body))


class DataFuzz:
    def __init__(self, address, credentials, random_):
        self.address = address
        self._credentials = credentials
        self._random = random_
        #: frames behind a greeting that were sent
        self.frames = 0
        names = ["noise", "tls_hello", "http", "truncated", "huge", "replayed", "greeted"]
        self.attacks = {name: getattr(self, name) for name in names}
        self._greeting = self._recorded_greeting()

    def _connected(self):
        return socket.create_connection(self.address, TIMEOUT_S)

    def _send(self, content):
        """Send bytes and return how many frames came back: the second one would be a welcome."""
        answer = b""
        with self._connected() as connection:
            try:
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    answer += piece
            except TimeoutError:
                raise
            except OSError:  # it is closed already
                pass
        return f"{hello_count(answer)} frames"

    def _hello(self):
        return encode_frame(FrameKind.HELLO, payload=msgspec.msgpack.encode(("drey", bytes(32), b"")), kind=1)

    def noise(self):
        return self._send(self._random.randbytes(self._random.choice([1, 39, 40, 41, 5000])))

    def tls_hello(self):
        return self._send(TLS_HELLO)

    def http(self):
        return self._send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def truncated(self):
        return self._send(self._hello()[: self._random.randrange(60)])

    def huge(self):
        """A head that is sealed well and announces gigabytes."""
        payload = self._random.randbytes(64)
        frame = bytearray(encode_frame(FrameKind.HELLO, payload=payload, kind=1))
        frame[20:24] = self._random.choice([2**31, 2**32 - 1, 1 << 20]).to_bytes(4, "little")
        return self._send(bytes(frame))

    def _recorded_greeting(self):
        """What a reader with the secret sends, as it was overheard."""
        sent = []

        class Tap:
            def sendall(self, content):
                sent.append(bytes(content))
                connection.sendall(content)

            def recv(self, size):
                return connection.recv(size)

            def settimeout(self, seconds):
                connection.settimeout(seconds)

        with self._connected() as connection:
            greet_as_reader(GreetingChannel(Tap(), TIMEOUT_S), Greeting("drey", self._credentials, PROGRAM))
        return b"".join(sent)

    def replayed(self):
        return self._send(self._greeting)

    def _frame(self):
        random_ = self._random
        request = msgspec.msgpack.encode(ReadRequest("nobody", 0, 32768))
        kind = random_.choice([2, 2, 2, 5, 5, 7, 8, 3, 4, 6, 9, 1])
        payload = mutated(random_, request)[:60_000] if kind in (1, 2, 3, 4) else b""
        channel = random_.choice([0, 1, 2, 3, 70_000, 2**32 - 1])
        amount = random_.choice([0, 1, 2, 1000, 2**31, 2**32 - 1])
        frame = encode_frame(kind, channel, payload, random_.randrange(256), random_.randrange(9), amount, 7)
        return mutated(random_, frame) if random_.random() < 0.05 else frame

    def greeted(self):
        """Frames of one who has the secret, until the other side has enough of them."""
        with self._connected() as connection:
            try:
                greet_as_reader(GreetingChannel(connection, TIMEOUT_S), Greeting("drey", self._credentials, PROGRAM))
            except (EngineError, OSError) as error:
                return f"not greeted: {type(error).__name__}"
            with contextlib.suppress(ConnectionError):
                for _ in range(20):
                    self.frames += 1
                    connection.sendall(self._frame())
        return "greeted"


def hello_count(content):
    count = 0
    while content:
        content = content[HEADER_BYTES + decode_header(content)["size"] :]
        count += 1
    return count


class SlowLoris(threading.Thread):
    """Holds so many connections to each address and sends a byte to each now and then."""

    def __init__(self, addresses, count):
        super().__init__()
        self._addresses = addresses * count
        self._ends = threading.Event()
        #: connections that the other side closed
        self.closed = collections.Counter()
        self.start()

    def run(self):
        held = {}
        text = b"POST /jobs HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000
        with contextlib.ExitStack() as stack:
            position = 0
            while not self._ends.wait(0.2):
                for number, address in enumerate(self._addresses):
                    if number not in held:
                        held[number] = stack.enter_context(socket.create_connection(address, TIMEOUT_S))
                    try:
                        held[number].send(text[position : position + 1])
                    except OSError:
                        held.pop(number).close()
                        self.closed[address] += 1
                position += 1

    def close(self):
        self._ends.set()
        self.join()
