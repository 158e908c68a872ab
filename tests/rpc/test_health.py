"""/healthz and /readyz: open to all, with no word too many."""

import socket

import pytest

from engine.rpc.health import Health, NotReady
from tests.rpc.served import WAIT_S, answer_of, served

HOSTS = ("localhost", "evil.example", "10.1.2.3:80", "")


def asked(port, target, host, method="GET", header=""):
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{header}\r\n".encode())
        return answer_of(connection)


@pytest.mark.parametrize("bind_host", ["127.0.0.1", "0.0.0.0"])
def test_whoever_asks_under_any_name_hears_ok_or_a_word(bind_host):
    health = Health()
    with served(bind_host=bind_host, routes=health.routes) as one:
        port = one.server.port
        for host in HOSTS:
            assert asked(port, "/healthz", host) == (200, b"ok\n")
            assert asked(port, "/readyz", host) == (503, b"not ready: starting\n")
        for reason in NotReady:
            health.why_not_ready = lambda reason=reason: reason
            assert asked(port, "/readyz", "x") == (503, f"not ready: {reason.value}\n".encode())
        health.why_not_ready = lambda: None
        assert asked(port, "/readyz", "x", header="Authorization: Bearer nonsense\r\n") == (200, b"ok\n")


def test_nothing_else_is_open_with_them():
    with served(bind_host="0.0.0.0", routes=Health().routes) as one:
        port = one.server.port
        assert asked(port, "/healthz", "x", "POST", "Content-Length: 0\r\n")[0] in (403, 405)
        assert asked(port, "/healthz/", "x")[0] in (403, 404)
        assert asked(port, "/healthz/../open/x", "evil.example")[0] in (403, 404)
        assert asked(port, "/open/x", "localhost")[0] == 401


def test_a_load_balancer_of_the_old_protocol_names_no_host():
    health = Health()
    health.why_not_ready = lambda: None
    with served(routes=health.routes) as one, socket.create_connection(("127.0.0.1", one.server.port)) as connection:
        connection.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert answer_of(connection) == (200, b"ok\n")
