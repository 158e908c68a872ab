"""A session is closed by whoever knows its number and password, over whichever server answers."""

import socket
import threading
import uuid

import pytest
from kazoo.client import KazooClient

from ha.session_end import SessionHandle, end_session
from ha.zookeeper_hosts import parse_hosts, server_text
from tests.ha.candidate import settings_of
from tests.ha.leading import Leading, zookeeper
from tests.ha.quorum import WAIT_S, needs_quorum, until


class Clients:
    """A client whose session is ended, and one that looks on."""

    def __init__(self, hosts):
        self.first, self.second = (KazooClient(hosts, timeout=60.0) for _ in range(2))
        for client in (self.first, self.second):
            client.start()
        self.path = f"/{uuid.uuid4().hex}"
        self.first.create(self.path, b"", ephemeral=True)
        self.handle = SessionHandle(hosts, *self.first.client_id, 60.0)

    def close(self):
        for client in (self.first, self.second):
            client.stop()
            client.close()


@pytest.fixture
def clients(server):
    made = Clients(server.hosts)
    yield made
    made.close()


@pytest.fixture
def chatterer():
    """A server of another kind: it says something to everyone."""
    listener = socket.create_server(("127.0.0.1", 0))
    met = []

    def chat():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                met.append(connection.recv(1000))
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=chat)
    thread.start()
    yield "127.0.0.1:%d" % listener.getsockname()[1], met  # noqa: UP031
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@needs_quorum
def test_the_nodes_of_an_ended_session_are_gone_at_once_and_ending_it_again_is_no_error(clients):
    assert end_session(clients.handle, WAIT_S)
    clients.second.sync(clients.path)
    assert clients.second.exists(clients.path) is None
    assert end_session(clients.handle, WAIT_S)


@needs_quorum
def test_servers_that_are_gone_or_speak_another_language_are_passed_over(clients, chatterer):
    address, met = chatterer
    hosts = f"127.0.0.1:1,{address},no-such-host.invalid:2181,{clients.handle.hosts}"
    until(lambda: end_session(SessionHandle(**vars(clients.handle) | {"hosts": hosts}), WAIT_S) and met, "both met")
    clients.second.sync(clients.path)
    assert clients.second.exists(clients.path) is None


@needs_quorum
def test_a_wrong_password_ends_nobodys_session(clients):
    wrong = SessionHandle(**vars(clients.handle) | {"password": bytes(16)})
    end_session(wrong, 0.5)
    clients.second.sync(clients.path)
    assert clients.second.exists(clients.path) is not None


def test_without_a_server_it_gives_up_in_time(chatterer):
    address, met = chatterer
    assert not end_session(SessionHandle(f"127.0.0.1:1,{address}", 7, bytes(16), 6.0), 1.0)
    until(lambda: met, "the one that answers")


@needs_quorum
def test_a_process_tells_its_guardian_of_each_session(server):
    told, pipe = socket.socketpair()
    settings = settings_of(server.hosts, uuid.uuid4().hex, session_timeout_s=20.0, guardian_pipe=pipe.fileno())
    leading = Leading(zookeeper(settings)).lead()
    line = told.recv(65536)
    handle = SessionHandle.decode(line.strip())
    assert handle.session_id == leading.services.session.session_id and len(handle.password) == 16
    assert SessionHandle.decode(handle.encode()) == handle
    assert handle.password.hex() not in repr(handle) and repr(handle.password) not in repr(handle)
    old_epoch = leading.epoch
    leading.granted.clear()
    assert end_session(handle, WAIT_S)
    assert leading.granted.wait(WAIT_S)
    assert leading.calls[:2] == [old_epoch, "revoked"] and leading.epoch > old_epoch
    assert SessionHandle.decode(told.recv(65536).strip()).session_id not in (0, handle.session_id)
    leading.close()
    told.close()
    pipe.close()


def test_a_guardian_that_is_gone_or_does_not_listen_holds_nobody_up():
    told, pipe = socket.socketpair()
    told.close()
    session = zookeeper(settings_of("127.0.0.1:1", "none", guardian_pipe=pipe.fileno())).session
    session._hand_over(7, bytes(16))
    pipe.close()


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a:1", (("a", 1),)),
        ("a:1, b:2 ,", (("a", 1), ("b", 2))),
        ("a", (("a", 2181),)),
        ("[::1]:5,[::1]", (("::1", 5), ("::1", 2181))),
        ("[fd00::1]:5,zk-2:6", (("fd00::1", 5), ("zk-2", 6))),
    ],
)
def test_servers_are_read(text, servers):
    assert parse_hosts(text) == servers


@pytest.mark.parametrize("text", ["", ",", "a:b", "a:0", "a:65536", ":1"])
def test_what_is_no_server_is_said(text):
    with pytest.raises(ValueError, match="host:port"):
        parse_hosts(text)


@pytest.mark.parametrize("text", ["fd00::1:2181", "::1", "a:1,fd00::2:2181", "[fd00::1:2181"])
def test_an_address_of_ipv6_without_brackets_is_refused_since_its_port_is_not_known(text):
    with pytest.raises(ValueError, match=r"write \[address\]:port"):
        parse_hosts(text)


def test_servers_are_shown_as_they_are_written():
    assert [server_text(*server) for server in parse_hosts("[fd00::1]:5,a")] == ["[fd00::1]:5", "a:2181"]
