"""Everything a process can be asked for, from its own table of routes: nothing is reached without the secret."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import time
from types import SimpleNamespace

import pytest

from engine.config.loader import configuration_from_texts
from engine.entrypoint.jobmanager import JobManager
from engine.entrypoint.places import Places
from engine.entrypoint.readiness import Readiness
from engine.entrypoint.taskmanager import TaskManager
from engine.errors import ConfigurationError
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.http_messages import Access

WAIT_S = 60.0


class Past:
    """A clock that is a minute and a second late."""

    def wall_ms(self):
        return int(time.time() * 1000) - 61_000

    def monotonic_s(self):
        return time.monotonic()


def daemon_of(kind, tmp_path, bind_host, further=None):
    settings = {
        "rest.port": "0",
        "security.secret-file": str(tmp_path / "cluster.secret"),
        "security.read-token-file": str(tmp_path / "read.token"),
        "jobmanager.bind-host": bind_host,
        "taskmanager.bind-host": bind_host,
        "jobmanager.rpc.address": "localhost",
        "taskmanager.host": "localhost",
        "taskmanager.memory.process.size": "256mb",
        **(further or {}),
    }
    Credentials.load_or_create(tmp_path / "cluster.secret")
    context = SimpleNamespace(
        configuration=configuration_from_texts(settings, "test"),
        places=Places(tmp_path, tmp_path, tmp_path, "tester", "host"),
        readiness=Readiness(None),
        log_file=None,
        log_folder=None,
        on_fatal=lambda error: pytest.fail(f"fatal: {error}"),
    )
    return kind(context)


def asked(port, method, target, host="localhost", header=None):
    """Send a request with an announced body that never comes; return the status."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Content-Length: 3", "X-Drey-Epoch: 1"]
    lines += [f"{AUTHORIZATION}: {header}"] if header else []
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        body = response.read()
        assert method == "HEAD" or b'"errors"' in body
        return response.status


def headers(credentials, secret_file, method, target):
    """Credentials that are none, by what is wrong with them."""
    good = credentials.sign(method, target, epoch="1")
    return {
        "none": None,
        "wrong": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "other secret": Credentials(b"another secret!!!").sign(method, target, epoch="1"),
        "old": Credentials.load(secret_file, Past()).sign(method, target, epoch="1"),
        "other method": credentials.sign("X", target, epoch="1"),
        "other epoch": credentials.sign(method, target, epoch="2"),
    }


@pytest.mark.parametrize("kind", [JobManager, TaskManager])
@pytest.mark.parametrize("bind_host", ["127.0.0.1", "0.0.0.0"])
def test_no_route_is_reached_without_the_secret_or_with_a_foreign_host(kind, bind_host, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def walk(routes, port):
        secret_file = tmp_path / "cluster.secret"
        credentials = Credentials.load(secret_file)
        for route in routes:
            target = re.sub(r"\{[^}]*\}", "0" * 32, route.path)
            methods = (route.method, "HEAD") if route.method == "GET" else (route.method,)
            for method in methods:
                good = credentials.sign(method, target, epoch="1")
                if route.access is Access.ANYONE:
                    assert target in ("/healthz", "/readyz"), route
                    continue
                assert asked(port, method, target, "evil.example", good) == 403, route
                if route.access is Access.OPEN_GET and bind_host == "127.0.0.1":
                    continue
                for wrong, header in headers(credentials, secret_file, method, target).items():
                    assert asked(port, method, target, header=header) == 401, (route, wrong)

    async def scenario():
        daemon = daemon_of(kind, tmp_path, bind_host)
        server = daemon._server
        await server.start()
        try:
            routes = server.http.routes
            assert {"/rpc", "/rpc/{name}"} <= {route.path for route in routes}
            assert all(route.access is not Access.OPEN_GET for route in routes if route.method != "GET")
            await asyncio.to_thread(walk, routes, server.http.port)
        finally:
            await server.stop()
            daemon._blocking_work.shutdown()
            if hasattr(daemon, "_own_folder"):
                daemon._own_folder.close()

    asyncio.run(scenario())


def test_a_good_credential_opens_what_the_others_could_not(tmp_path):
    """The walk above would pass if every request were refused."""

    async def scenario():
        daemon = daemon_of(JobManager, tmp_path, "0.0.0.0")
        server = daemon._server
        await server.start()
        try:
            credentials = Credentials.load(tmp_path / "cluster.secret")
            target = f"/jobs/{'0' * 32}/blobs/{'0' * 64}"

            def status():
                connection = http.client.HTTPConnection("127.0.0.1", server.http.port, timeout=WAIT_S)
                try:
                    connection.request("GET", target, headers={AUTHORIZATION: credentials.sign("GET", target)})
                    return connection.getresponse().status
                finally:
                    connection.close()

            assert await asyncio.to_thread(status) == 503, "nobody leads"
        finally:
            await server.stop()
            daemon._blocking_work.shutdown()
            daemon._own_folder.close()

    asyncio.run(scenario())


def test_a_cluster_secret_that_others_may_read_stops_the_start(tmp_path):
    async def scenario():
        Credentials.load_or_create(tmp_path / "cluster.secret")
        (tmp_path / "cluster.secret").chmod(0o644)
        with pytest.raises(ConfigurationError, match="chmod 600"):
            daemon_of(JobManager, tmp_path, "127.0.0.1")

    asyncio.run(scenario())


@pytest.mark.parametrize("has_token", [True, False])
def test_a_task_manager_tells_its_metrics_to_readers_whose_token_it_was_given(has_token, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    token = tmp_path / "read.token"
    if has_token:
        token.write_text("f" * 64)
        token.chmod(0o600)

    def answer(port, method, target):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        try:
            connection.request(method, target, headers={"Host": "localhost", AUTHORIZATION: f"Bearer {'f' * 64}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    async def scenario():
        daemon = daemon_of(TaskManager, tmp_path, "0.0.0.0")
        await daemon._server.start()
        try:
            port = daemon._server.http.port
            status, text = await asyncio.to_thread(answer, port, "GET", "/metrics")
            assert (status, "drey_process_threads" in text) == ((200, True) if has_token else (401, False))
            for path in ("/rpc", "/rpc/x"):
                assert (await asyncio.to_thread(answer, port, "POST", path))[0] == 401
        finally:
            await daemon._server.stop()
            daemon._blocking_work.shutdown()

    asyncio.run(scenario())
    assert token.exists() == has_token, "a TaskManager makes none"
