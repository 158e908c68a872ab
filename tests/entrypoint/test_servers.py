"""``ProcessServer``: its parts end together."""

import asyncio
import logging
import socket

import pytest

from engine.config.loader import configuration_from_texts
from engine.entrypoint.servers import ProcessServer, advertised_host, load_credentials
from engine.errors import ConfigurationError
from engine.rpc.credentials import Credentials


class Part:
    def __init__(self, name, ended):
        self.name, self.ended = name, ended

    async def stop(self):
        self.ended.append(self.name)
        raise OSError(f"{self.name} does not end")

    close = stop


def test_every_part_ends_when_the_first_cannot():
    server, ended = ProcessServer.__new__(ProcessServer), []
    server._further = None
    server.http, server.forwarder, server.rpc = (Part(name, ended) for name in ("http", "forwarder", "rpc"))
    with pytest.raises(OSError, match="http does not end") as raised:
        asyncio.run(server.stop())
    assert ended == ["http", "forwarder", "rpc"] and len(raised.value.__notes__) == 2


@pytest.mark.parametrize(
    ("bind_host", "has_secret", "has_tls", "starts"),
    [
        ("localhost", False, False, True),
        ("127.0.0.1", False, False, True),
        ("0.0.0.0", False, False, False),
        ("10.0.0.7", False, False, False),
        ("::", False, False, False),
        ("0.0.0.0", True, False, True),
        ("0.0.0.0", False, True, True),
    ],
)
def test_beyond_its_machine_a_process_wants_a_secret_that_others_know(tmp_path, bind_host, has_secret, has_tls, starts):
    path = tmp_path / "cluster.secret"
    texts = {"security.secret-file": str(path), "security.ssl.enabled": str(has_tls).lower()}
    configuration = configuration_from_texts(texts)
    if has_secret:
        Credentials.load_or_create(path)
    if starts:
        load_credentials(configuration, bind_host)
        assert path.exists()
        return
    with pytest.raises(ConfigurationError, match="without the cluster's secret") as refused:
        load_credentials(configuration, bind_host)
    assert bind_host in str(refused.value) and f"> {path})" in str(refused.value) and not path.exists()


@pytest.mark.parametrize(
    ("host", "bind_host", "told"),
    [
        *[(None, "localhost", "localhost"), (None, "10.0.0.7", "10.0.0.7"), ("tm-1", "0.0.0.0", "tm-1")],
        *[("fd00::1", "::", "fd00::1"), ("tm-1", "localhost", "tm-1"), (None, "0.0.0.0", "127.0.0.1")],
    ],
)
def test_others_are_told_what_is_set_or_where_a_process_listens(host, bind_host, told, caplog):
    with caplog.at_level(logging.WARNING):
        assert advertised_host("taskmanager.host", host, bind_host, ("127.0.0.1", 6123)) == told
    assert not caplog.records


def test_a_process_that_listens_everywhere_and_faces_nobody_is_told_by_the_name_of_its_machine(caplog):
    with caplog.at_level(logging.WARNING):
        told = advertised_host("taskmanager.host", None, "0.0.0.0", ("no-such-host.invalid", 1))
    assert told == socket.gethostname()
    assert "no way to no-such-host.invalid yet" in caplog.text and "set taskmanager.host" in caplog.text


@pytest.mark.parametrize(("host", "bind_host"), [("0.0.0.0", "0.0.0.0"), ("::", "10.0.0.7"), ("localhost", "10.0.0.7")])
def test_a_host_under_which_none_would_be_found_is_refused(host, bind_host):
    with pytest.raises(ConfigurationError, match=r"set jobmanager\.rpc\.address to"):
        advertised_host("jobmanager.rpc.address", host, bind_host)


@pytest.mark.parametrize("bind_host", ["0.0.0.0", "::", "jm-1"])
def test_localhost_beyond_this_machine_is_warned_of(bind_host, caplog):
    with caplog.at_level(logging.WARNING):
        assert advertised_host("jobmanager.rpc.address", "localhost", bind_host) == "localhost"
    assert "for processes of other machines, set jobmanager.rpc.address" in caplog.text
