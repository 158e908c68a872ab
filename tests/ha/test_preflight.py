"""What a process says that gets no session, and how ZooKeeper is set up: over TLS, wrongly, too slow."""

import dataclasses
import http.server
import logging
import socket
import ssl
import threading
import uuid

import pytest

from ha.session_end import SessionHandle, end_session
from ha.zookeeper_preflight import examine, limits, tls_context
from ha.zookeeper_services import ZooKeeperHaServices
from tests.ha.candidate import settings_of
from tests.ha.leading import Leading, zookeeper
from tests.ha.quorum import WAIT_S, Quorum, needs_quorum, until
from tests.ha.tls_door import TlsDoor
from tests.rpc.test_tls import made

pytestmark = pytest.mark.processes


@pytest.fixture
def closing():
    things = []
    yield lambda thing: things.append(thing) or thing
    for thing in reversed(things):
        thing.close()


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    made(folder)
    return folder


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    made(folder, "elsewhere.example")
    return folder


class Listener:
    """Takes connections, and says something, or nothing."""

    def __init__(self, text=None):
        self._text = text
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._open = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            if self._text is not None:
                connection.sendall(self._text)
                connection.shutdown(socket.SHUT_WR)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for connection in self._open:
            connection.close()


class WebServer:
    def __init__(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Quiet", (_Handler,), {}))
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def settings_at(port, **changes):
    """Settings with sessions that are short where none is to be had: kazoo waits for its end as long as for one."""
    return settings_of(f"127.0.0.1:{port}", uuid.uuid4().hex, **({"session_timeout_s": 2.0} | changes))


def refusal(settings):
    """Return what a contender is told that cannot lead."""
    leading = Leading(zookeeper(settings)).start()
    try:
        until(lambda: leading.errors, "the error")
        assert leading.calls == []
        assert isinstance(leading.errors[0], ConnectionError)
        return str(leading.errors[0])
    finally:
        leading.close()


def test_where_nobody_listens_that_is_said_when_the_time_is_over():
    text = refusal(settings_at(1, connection_timeout_s=0.3))
    assert text.startswith("no ZooKeeper of 127.0.0.1:1 has answered for 0.3 s: 127.0.0.1:1: Connection refused. Does")


def test_each_server_is_named_with_what_is_wrong_with_it(closing):
    silent = closing(Listener())
    settings = settings_at(1, connection_timeout_s=3.0)
    hosts = f"127.0.0.1:1,no-such-host.invalid:2181,127.0.0.1:{silent.port}"
    text = refusal(dataclasses.replace(settings, hosts=hosts))
    assert "127.0.0.1:1: Connection refused; no-such-host.invalid:2181: the name is not known" in text
    assert f"127.0.0.1:{silent.port}: it accepts connections and sends nothing" in text


def test_another_kind_of_server_is_told_at_once_and_not_when_the_time_is_over(closing):
    web = closing(WebServer())
    text = refusal(settings_at(web.port, connection_timeout_s=1000.0))
    assert text.startswith(f"no ZooKeeper at 127.0.0.1:{web.port}: 127.0.0.1:{web.port}: another kind of server")


def test_hope_for_one_server_is_patience_for_all(closing):
    web = closing(WebServer())
    settings = dataclasses.replace(settings_at(1), hosts=f"127.0.0.1:1,127.0.0.1:{web.port}")
    states = examine(settings, 2.0)
    assert [state.is_hopeless for state in states] == [False, True]


@needs_quorum
def test_a_server_without_a_quorum_says_so(tmp_path):
    quorum = Quorum(tmp_path, 3)
    try:
        assert quorum.run("zookeeper", "start", "1").returncode == 0
        told = f"127.0.0.1:{quorum.port}: it runs, but has no quorum: do the others run?"
        # A machine with much to do takes longer to start it: until then it accepts connections and is silent.
        assert any(told in refusal(settings_at(quorum.port, connection_timeout_s=5.0)) for _ in range(6))
    finally:
        quorum.stop()


# ---- TLS ----


def door_context(folder, wants_certificate=True):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cluster.pem", folder / "cluster.key")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED if wants_certificate else ssl.CERT_NONE
    return context


def tls_settings(port, folder, **changes):
    files = {"tls_ca": "ca.pem", "tls_certificate": "cluster.pem", "tls_key": "cluster.key"}
    return settings_at(port, **({name: str(folder / file) for name, file in files.items()} | changes))


@needs_quorum
def test_elections_contents_and_the_end_of_a_session_go_over_tls(server, own, closing):
    door = closing(TlsDoor(server.port, door_context(own)))
    settings = tls_settings(door.port, own, session_timeout_s=20.0)
    leading = closing(Leading(zookeeper(settings)).lead())
    assert leading.store.create(leading.epoch, "0a", b"{}")
    assert [state.text for state in examine(settings, 5.0)] == [""]
    session = leading.services.session
    files = settings.tls_ca, settings.tls_certificate, settings.tls_key
    assert end_session(SessionHandle(settings.hosts, *session._client.client_id, 20.0, *files), WAIT_S)
    assert leading.revoked.wait(WAIT_S)


@needs_quorum
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("authority", "its certificate is not trusted"),
        ("no certificate", "it wants another certificate"),
        ("foreign certificate", "it wants another certificate"),
        ("plain server", "it speaks no TLS"),
        ("plain client", "one that wants TLS"),
    ],
)
def test_tls_that_does_not_fit_is_told_in_words(server, own, foreign, closing, case, words):
    door = closing(TlsDoor(server.port, door_context(own)))
    changes = {
        "authority": {"tls_ca": str(foreign / "ca.pem")},
        "no certificate": {"tls_certificate": "", "tls_key": ""},
        "foreign certificate": {
            "tls_certificate": str(foreign / "cluster.pem"),
            "tls_key": str(foreign / "cluster.key"),
        },
        "plain server": {},
        "plain client": {"tls_ca": "", "tls_certificate": "", "tls_key": ""},
    }[case]
    port = server.port if case == "plain server" else door.port
    # An authority that is not trusted never will be; the others may be about to start.
    timeout_s = 1000.0 if case == "authority" else 3.0
    text = refusal(tls_settings(port, own, connection_timeout_s=timeout_s, **changes))
    assert text.startswith("no ZooKeeper") and words in text


def test_a_certificate_of_another_host_is_not_taken(own, closing):
    door = closing(TlsDoor(1, door_context(own, wants_certificate=False)))
    # Its certificate is of localhost and 127.0.0.1, not of this address of the same machine.
    settings = dataclasses.replace(tls_settings(door.port, own), hosts=f"127.0.0.2:{door.port}")
    context = tls_context(settings)
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED
    with (
        socket.create_connection(("127.0.0.1", door.port)) as connection,
        pytest.raises(ssl.SSLCertVerificationError, match="not valid for"),
    ):
        context.wrap_socket(connection, server_hostname="127.0.0.2")


def test_files_that_cannot_be_used_are_named(tmp_path, own):
    with pytest.raises(ValueError, match=r"nothing\.pem"):
        tls_context(tls_settings(1, own, tls_ca=str(tmp_path / "nothing.pem")))


# ---- how the servers are set up ----


def test_a_server_that_may_lose_sessions_is_warned_of(closing):
    answer = b"clientPort=2181\ntickTime=2000\nminSessionTimeout=4000\nmaxSessionTimeout=40000\nsyncLimit=5\n"
    server = closing(Listener(answer))
    (text,) = limits(settings_at(server.port, session_timeout_s=6.0), "127.0.0.1", server.port, WAIT_S)
    assert text.startswith("its tickTime x syncLimit is 10000 ms, more than half of a session of 6000 ms")
    assert limits(settings_at(server.port, session_timeout_s=20.0), "127.0.0.1", server.port, WAIT_S) == ()


@pytest.mark.parametrize("answer", [b"", b"conf is not executed because it is not in the whitelist.\n", b"\xff" * 9000])
def test_a_server_that_does_not_tell_is_not_judged(closing, answer):
    server = closing(Listener(answer))
    assert limits(settings_at(server.port), "127.0.0.1", server.port, WAIT_S) == ()
    assert limits(settings_at(1), "127.0.0.1", 1, WAIT_S) == ()


@needs_quorum
def test_sessions_of_another_length_than_asked_for_are_warned_of(server, closing, caplog):
    with caplog.at_level(logging.WARNING):
        closing(Leading(zookeeper(settings_at(server.port, session_timeout_s=90.0))).lead())
    assert "ZooKeeper grants sessions of 60 s, not of 90 s" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        closing(Leading(zookeeper(settings_at(server.port, session_timeout_s=20.0))).lead())
    assert caplog.text == ""


@needs_quorum
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_client_library_that_dies_is_an_error_and_not_silence(server, closing):
    leading = closing(Leading(zookeeper(settings_at(server.port, session_timeout_s=20.0))).lead())
    client = leading.services.session._client

    def broken(*arguments):
        raise LookupError("as no one expects")

    client._connection._connect = broken
    end_session(SessionHandle(leading.services.session.settings.hosts, *client.client_id, 20.0), WAIT_S)
    until(lambda: leading.errors, "the error")
    assert "client has ended of itself" in str(leading.errors[0])
    assert leading.calls[1:] == ["revoked"]


def test_a_client_library_that_does_not_tell_the_time_out_is_refused():
    session = ZooKeeperHaServices(settings_at(1)).session
    with pytest.raises(RuntimeError, match="use kazoo"):
        session._note_negotiated(object())
