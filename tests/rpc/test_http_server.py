"""The checks in front of every handler, over real sockets."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import logging
import os
import socket
import threading
import time

import psutil
import pytest
from aiohttp import ClientConnectionResetError, web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ConfigurationError
from engine.rpc.credentials import AUTHORIZATION, EMPTY_DIGEST, Credentials
from engine.rpc.http_connection import ConnectionLimits
from engine.rpc.http_messages import Access, Route, json_response
from engine.rpc.http_server import HttpServer
from tests.rpc.served import SECRET, WAIT_S, answer_of, served, until


@pytest.fixture(scope="module")
def running():
    with served() as one:
        yield one


@pytest.fixture(autouse=True)
def forget(request):
    if "running" in request.fixturenames:
        request.getfixturevalue("running").seen.clear()


def head(method="POST", target="/echo", host="localhost", **headers):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


# ---- who may call what ----


def test_an_open_route_answers_everybody_on_loopback(running):
    status, body = running.ask("GET", "/open/x%2Fy?a=1", signed=False)
    assert (status, body) == (200, b'{"name": "x/y", "query": {"a": "1"}}')
    assert running.ask("HEAD", "/open/x", signed=False) == (200, b"")


def test_a_signed_request_is_answered_with_its_whole_body(running):
    assert running.ask("POST", "/echo", b"x" * 1000) == (200, b'{"length": 1000}')
    assert running.ask("PUT", "/streamed", b"y" * 1000) == (200, b'{"length": 1000}')
    assert running.ask("POST", "/echo") == (200, b'{"length": 0}')


@pytest.mark.parametrize(("method", "target"), [("POST", "/echo"), ("PUT", "/streamed"), ("POST", "/fail")])
@pytest.mark.parametrize("kind", ["none", "wrong", "scheme", "other secret", "old", "other target", "replayed"])
def test_without_a_good_credential_nothing_is_reached_and_no_body_is_read(running, method, target, kind):
    own = running.credentials

    class Past:
        def wall_ms(self):
            return int(time.time() * 1000) - 61_000

        def monotonic_s(self):
            return time.monotonic()

    header = {
        "none": None,
        "wrong": own.sign(method, target)[:-1] + "x",
        "scheme": "Bearer abc",
        "other secret": Credentials(b"another secret!!!").sign(method, target),
        "old": Credentials(SECRET, Past()).sign(method, target),
        "other target": own.sign(method, target + "?x"),
        "replayed": own.sign(method, target),
    }[kind]
    if kind == "replayed":
        own.verify(method, target, header)
    headers = {} if header is None else {AUTHORIZATION: header}
    # A body is announced and never sent: the answer does not wait for it.
    with running.connect() as connection:
        connection.sendall(head(method, target, **{"Content-Length": "900"}, **headers))
        status, body = answer_of(connection)
    assert status == 401 and b"errors" in body
    assert running.seen == []


def test_a_body_that_is_not_the_signed_one_reaches_no_handler(running):
    header = running.credentials.sign("POST", "/echo", hashlib.sha256(b"signed").hexdigest())
    status, body = running.ask("POST", "/echo", b"forged", {AUTHORIZATION: header})
    assert status == 401 and b"not the one that was signed" in body
    assert running.seen == []


def test_a_streamed_body_that_is_not_the_signed_one_is_refused_at_its_end(running):
    header = running.credentials.sign("PUT", "/streamed", hashlib.sha256(b"signed").hexdigest())
    assert running.ask("PUT", "/streamed", b"forged", {AUTHORIZATION: header})[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "127.0.0.1.nip.io"])
def test_a_foreign_host_header_is_refused_whatever_is_signed(running, host):
    signed = {AUTHORIZATION: running.credentials.sign("GET", "/open/x")}
    assert running.raw(head("GET", "/open/x", host=host, **signed))[0] in (400, 403)
    assert running.raw(b"GET /open/x HTTP/1.0\r\n\r\n")[0] == 403
    assert running.seen == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8081", "[::1]:8081", "[::1]"])
def test_names_of_this_machine_are_no_foreign_hosts(running, host):
    assert running.raw(head("GET", "/open/x", host=host))[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *[(host, 200) for host in ("jm.example", "JM.Example.:8081", "rest.example", "[fd00::7]", "[FD00:0:0::7]:1")],
        *[(host, 403) for host in ("fd00::7", "[fd00::8]", "0.0.0.0", "example", "jm.example.evil")],
    ],
)
def test_a_server_on_all_interfaces_answers_to_each_name_that_it_has_however_it_is_spelled(host, status):
    with served(bind_host="0.0.0.0", hosts=["jm.example", "fd00::7", "rest.example"]) as one:
        assert one.server.address == f"jm.example:{one.server.port}"
        signed = {AUTHORIZATION: one.credentials.sign("GET", "/open/x")}
        assert one.raw(head("GET", "/open/x", host=host, **signed))[0] == status


def test_off_loopback_everything_needs_the_secret():
    with served(bind_host="0.0.0.0") as one:
        assert one.ask("GET", "/open/x", signed=False)[0] == 401
        assert one.ask("GET", "/open/x")[0] == 200
        assert one.ask("POST", "/echo", b"a", signed=False)[0] == 401
        assert one.ask("POST", "/echo", b"a")[0] == 200
        assert one.seen != []


@pytest.mark.parametrize("bind_host", ["0.0.0.0", "", "::", "192.0.2.1", "example.org"])
def test_a_server_that_anybody_could_call_does_not_start(bind_host):
    async def start():
        await HttpServer(bind_host, (0,)).start()

    with pytest.raises(ConfigurationError, match=r"open to the network: set security\.secret-file"):
        asyncio.run(start())


def test_a_server_without_a_secret_answers_open_routes_only():
    with served(credentials=False) as one:
        assert one.ask("GET", "/open/x")[0] == 200
        assert one.ask("POST", "/echo", b"a", {AUTHORIZATION: Credentials(SECRET).sign("POST", "/echo")})[0] == 401
        assert len(one.seen) == 1


def test_only_a_get_may_be_open(running):
    with pytest.raises(ValueError, match="only a GET may be open"):
        Route("POST", "/x", running.open, Access.OPEN_GET)
    assert {route.access for route in running.server.routes if route.method != "GET"} == {Access.SECRET}


# ---- bounds ----


def test_a_body_beyond_the_limit_is_refused_by_its_announcement_and_by_its_length(running):
    header = running.credentials.sign("POST", "/echo", hashlib.sha256(bytes(1001)).hexdigest())
    with running.connect() as connection:
        connection.sendall(head(**{"Content-Length": "1001", AUTHORIZATION: header}))
        assert answer_of(connection)[0] == 413
    header = running.credentials.sign("POST", "/echo", hashlib.sha256(bytes(1001)).hexdigest())
    chunked = (
        head(**{"Transfer-Encoding": "chunked", AUTHORIZATION: header}) + b"3e9\r\n" + bytes(1001) + b"\r\n0\r\n\r\n"
    )
    assert running.raw(chunked)[0] == 413
    assert running.seen == []


def test_an_open_route_takes_no_body(running):
    assert running.ask("GET", "/open/x", b"body", signed=False)[0] == 413


def test_a_body_that_does_not_come_is_not_waited_for(running):
    header = running.credentials.sign("POST", "/echo-soon", hashlib.sha256(b"a" * 10).hexdigest())
    with running.connect() as connection:
        connection.sendall(head("POST", "/echo-soon", **{"Content-Length": "10", AUTHORIZATION: header}) + b"a")
        assert answer_of(connection)[0] == 408
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        b"GET /open/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /open/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"GET /open/x HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /open/x HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET /" + b"y" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /open/x HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /open/\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_a_malformed_frame_is_refused_and_the_server_goes_on(running, data):
    status, body = running.raw(data, ends=True)
    assert status in (0, 400) and b"Traceback" not in body
    assert running.ask("GET", "/open/x", signed=False)[0] == 200


def test_unknown_paths_and_methods_are_errors_of_the_same_form(running):
    for method, target, expected in (("GET", "/none", 404), ("DELETE", "/echo", 405), ("GET", "/echo", 405)):
        status, body = running.ask(method, target)
        assert status == expected and body.startswith(b'{"errors": [')


def test_a_method_that_a_path_does_not_have_is_told_those_it_has(running):
    connection = http.client.HTTPConnection("127.0.0.1", running.server.port, timeout=WAIT_S)
    try:
        connection.request("DELETE", "/open/x")
        response = connection.getresponse()
        response.read()
        assert (response.status, response.headers["Allow"]) == (405, "GET,HEAD")
    finally:
        connection.close()


def test_what_a_handler_raises_is_told_only_when_it_is_meant_to_be(running, caplog):
    assert running.ask("POST", "/fail", b"known") == (409, b'{"errors": ["not now"]}')
    with caplog.at_level(logging.ERROR):
        status, body = running.ask("POST", "/fail", b"unknown")
    assert status == 500 and b"secrets of the inside" not in body
    assert "POST /fail failed" in caplog.text


def test_refused_requests_are_logged_without_what_they_carried(running, caplog):
    good = running.credentials.sign("POST", "/echo")
    with caplog.at_level(logging.DEBUG):
        running.ask("POST", "/echo?q=1", b"planted-in-body", {AUTHORIZATION: good, "X-Planted": "planted-in-header"})
        running.raw(head("POST", "/echo?planted=query", **{AUTHORIZATION: "planted-in-credential"}))
        running.raw(head(host="planted.example"))
    assert "POST /echo from 127.0.0.1 is refused: the request's credential is" in caplog.text
    assert "from 127.0.0.1 is refused with 403" in caplog.text
    assert "planted-in" not in caplog.text and good.split(":")[-1] not in caplog.text
    assert "planted=query" not in caplog.text and SECRET.decode() not in caplog.text


def test_no_path_of_a_stranger_begins_a_line_of_the_log(running, caplog):
    with caplog.at_level(logging.DEBUG):
        running.raw(head("GET", "/none%0a2026-01-01%20ERROR%20forged%00%1b[31m"))
    refused = [record.getMessage() for record in caplog.records if "is refused with" in record.getMessage()]
    assert refused and all(text.isprintable() for text in refused)


# ---- those who hold connections ----


def test_a_caller_that_goes_away_ends_its_handler():
    with served() as one:
        connection = one.connect()
        signed = {AUTHORIZATION: one.credentials.sign("POST", "/wait", EMPTY_DIGEST)}
        connection.sendall(head("POST", "/wait", **{"Content-Length": "0"}, **signed))
        assert one.waiting.wait(WAIT_S)
        connection.close()
        assert one.cancelled.wait(WAIT_S)


def test_an_answer_that_fails_breaks_off_and_a_caller_that_has_gone_is_no_error(running, caplog, monkeypatch):
    assert running.ask("POST", "/parts") == (200, b"first")
    with pytest.raises(http.client.HTTPException):
        running.ask("POST", "/parts", b"fails")
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    caplog.clear()

    async def write(*_):
        raise ClientConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, "write", write)
    with caplog.at_level(logging.INFO, "engine.rpc"), pytest.raises((http.client.HTTPException, OSError)):
        running.ask("POST", "/parts")
    assert [(each.levelname, each.exc_info) for each in caplog.records] == [("INFO", None)]


def test_a_good_client_is_served_while_others_send_their_heads_slowly_and_those_are_closed():
    with served(limits=ConnectionLimits(head_timeout_s=1.5)) as one:
        slow = [one.connect() for _ in range(60)]
        try:
            for number, connection in enumerate(slow):
                connection.sendall((b"", b"G", b"GET /open/x HTTP/1.1\r\nHost: local")[number % 3])
            for _ in range(5):
                assert one.ask("POST", "/echo", b"abc")[0] == 200
            for connection in slow:
                assert connection.recv(1) == b""
        finally:
            for connection in slow:
                connection.close()
        until(lambda: len(one.server._guard) == 0, "the end of all connections")


def test_a_kept_connection_whose_next_head_never_ends_is_closed():
    with served(limits=ConnectionLimits(head_timeout_s=1.5)) as one, one.connect() as connection:
        connection.sendall(head("GET", "/open/x"))
        assert answer_of(connection)[0] == 200
        connection.sendall(b"GET /op")
        assert connection.recv(1) == b""


def test_the_number_of_connections_is_bounded_and_those_with_the_secret_stay():
    with served(limits=ConnectionLimits(connections=20)) as one:
        kept = one.connect()
        signed = {AUTHORIZATION: one.credentials.sign("POST", "/echo"), "Content-Length": "0"}
        kept.sendall(head(**signed))
        assert answer_of(kept)[0] == 200
        crowd = [one.connect() for _ in range(100)]
        try:
            until(lambda: sum(1 for c in crowd if _is_closed(c)) >= 81, "the end of most connections")
            assert len(one.server._guard) <= 20
            signed = {AUTHORIZATION: one.credentials.sign("POST", "/echo"), "Content-Length": "0"}
            kept.sendall(head(**signed))
            assert answer_of(kept)[0] == 200
            assert one.ask("POST", "/echo", b"abc")[0] == 200
        finally:
            for connection in (kept, *crowd):
                connection.close()


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_stop_closes_all_connections_and_descriptors_and_a_port_can_be_taken_again():
    before = psutil.Process().num_fds()
    with served() as one:
        idle = one.connect()
        busy = one.connect()
        signed = {AUTHORIZATION: one.credentials.sign("POST", "/wait"), "Content-Length": "0"}
        busy.sendall(head("POST", "/wait", **signed))
        assert one.waiting.wait(WAIT_S)
        one.call(one.server.stop())
        assert idle.recv(1) == b"" and one.cancelled.wait(WAIT_S)
        again = HttpServer("127.0.0.1", (one.server.port,))
        one.call(again.start())
        one.call(again.stop())
        one.call(again.stop())
        idle.close()
        busy.close()
    until(lambda: psutil.Process().num_fds() <= before, "the end of all descriptors")


def test_of_several_ports_the_first_free_one_is_taken_and_a_taken_one_is_named():
    with served() as one:
        taken = one.server.port
        other = HttpServer("127.0.0.1", (taken, 0))
        one.call(other.start())
        assert other.port not in (0, taken) and other.address == f"127.0.0.1:{other.port}"
        one.call(other.stop())
        with pytest.raises(ConfigurationError, match=rf"port {taken}: Address already in use"):
            one.call(HttpServer("127.0.0.1", (taken,)).start())


# ---- strangers ----

NAMES = st.sampled_from(["Content-Length", "Transfer-Encoding", "Host", "Authorization", "Connection", "Expect", "X"])
VALUES = st.one_of(
    st.sampled_from(
        ["chunked", "-1", "0", "5", "99999999999999999999", "close", "100-continue", "localhost", "upgrade"]
    ),
    st.text(st.characters(codec="latin-1"), max_size=30),
)
TARGETS = st.sampled_from(["/echo", "/open/x", "/streamed", "/../../etc/passwd", "/open/%2e%2e%2f", "*", "//x", "/%00"])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "POST", "PUT", "HEAD", "CONNECT", "\x00"]),
    TARGETS,
    st.lists(st.tuples(NAMES, VALUES), max_size=6),
    st.binary(max_size=100),
)
def test_whatever_strangers_send_reaches_no_route_that_needs_the_secret(running, method, target, headers, body):
    running.seen.clear()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    running.raw(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode("latin-1") + body, ends=True)
    assert all(request.path.startswith("/open/") for request in running.seen)
    assert running.ask("GET", "/open/x", signed=False)[0] == 200


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_random_bytes_do_no_harm(running, data):
    status, body = running.raw(data, ends=True)
    assert status in (0, 400, 403, 404) and b"Traceback" not in body


def test_memory_stays_where_it_is_under_refused_requests(running):
    for _ in range(300):
        running.raw(os.urandom(200), ends=True)
    before = psutil.Process().memory_info().rss
    threads = [threading.Thread(target=_many_refused, args=(running,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert psutil.Process().memory_info().rss - before < 32 * 1024 * 1024


def _many_refused(running):
    for _ in range(500):
        running.raw(head(**{"Content-Length": "999", AUTHORIZATION: "Drey-HMAC-SHA256 " + "x" * 500}))


def test_a_route_added_after_the_start_is_refused(running):
    async def handler(request):
        return json_response({})

    with pytest.raises(RuntimeError, match="before the server starts"):
        running.server.add_routes([Route("GET", "/late", handler)])
