"""Signatures, seals and proofs: what the cluster's secret allows, and nothing else does."""

from __future__ import annotations

import os
import pickle
import socket
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.clock import ManualClock
from engine.config.loader import configuration_from_texts
from engine.errors import ConfigurationError
from engine.rpc import credentials as module
from engine.rpc.credentials import EMPTY_DIGEST, SCHEME, Credentials, secret_file
from engine.rpc.errors import AccessDeniedError
from engine.rpc.secret_file import is_open_to_others

SECRET = b"0123456789abcdef"


def pair(start_s=1000.0):
    clock = ManualClock(start_s)
    return Credentials(SECRET, clock), Credentials(SECRET, clock), clock


def test_a_signature_of_the_same_secret_is_taken_and_says_what_the_body_must_be():
    client, server, _ = pair()
    assert server.verify("POST", "/a?b=c", client.sign("POST", "/a?b=c", "a" * 64)) == "a" * 64
    assert server.verify("GET", "/", client.sign("GET", "/")) == EMPTY_DIGEST


@pytest.mark.parametrize(
    "changed",
    [("PUT", "/a", "7"), ("POST", "/a?x=1", "7"), ("POST", "/b", "7"), ("POST", "/a", "8"), ("POST", "/a", "")],
)
def test_nothing_that_is_signed_can_be_changed(changed):
    client, server, _ = pair()
    header = client.sign("POST", "/a", EMPTY_DIGEST, "7")
    method, target, epoch = changed
    with pytest.raises(AccessDeniedError, match="credential is wrong"):
        server.verify(method, target, header, epoch)
    assert server.verify("POST", "/a", header, "7") == EMPTY_DIGEST


def test_no_field_of_the_header_can_be_changed():
    client, server, _ = pair()
    header = client.sign("GET", "/")
    scheme, fields = header.split(" ")
    for position, field in enumerate(fields.split(":")):
        parts = fields.split(":")
        parts[position] = ("1" if field[0] != "1" else "2") + field[1:]
        with pytest.raises(AccessDeniedError):
            server.verify("GET", "/", f"{scheme} {':'.join(parts)}")


def test_a_request_is_taken_once():
    client, server, clock = pair()
    header = client.sign("GET", "/")
    server.verify("GET", "/", header)
    for _ in range(3):
        with pytest.raises(AccessDeniedError, match="used before"):
            server.verify("GET", "/", header)
        clock.advance(15)


def test_a_request_is_taken_within_a_minute_before_and_after_and_never_twice_in_all_that_time():
    client_clock, server_clock = ManualClock(1000), ManualClock(1000 - 60)
    client, server = Credentials(SECRET, client_clock), Credentials(SECRET, server_clock)
    header = client.sign("GET", "/")
    server.verify("GET", "/", header)
    for _ in range(12):
        server_clock.advance(10)
        with pytest.raises(AccessDeniedError, match="used before"):
            server.verify("GET", "/", header)
    server_clock.advance(1)
    with pytest.raises(AccessDeniedError, match="61 s old"):
        server.verify("GET", "/", header)
    early = client.sign("GET", "/")
    ahead = Credentials(SECRET, ManualClock(server_clock.monotonic_s() + 61)).sign("GET", "/")
    with pytest.raises(AccessDeniedError, match="61 s ahead"):
        server.verify("GET", "/", ahead)
    with pytest.raises(
        AccessDeniedError, match=rf"by the clock of {socket.gethostname()}, .*60 s .* clocks of the machines differ"
    ):
        server.verify("GET", "/", early)


def test_memory_of_nonces_is_bounded_and_given_back(monkeypatch):
    monkeypatch.setattr(module, "NONCES_MAX", 3)
    client, server, clock = pair()
    for _ in range(3):
        server.verify("GET", "/", client.sign("GET", "/"))
    with pytest.raises(AccessDeniedError, match="too many requests"):
        server.verify("GET", "/", client.sign("GET", "/"))
    clock.advance(121)
    for _ in range(3):
        server.verify("GET", "/", client.sign("GET", "/"))
    assert len(server._nonces) == len(server._nonce_ends) == 3


@given(st.one_of(st.none(), st.text(max_size=300), st.text(max_size=200).map(lambda text: f"{SCHEME} {text}")))
def test_any_other_header_is_refused_with_a_reason(header):
    _, server, _ = pair()
    with pytest.raises(AccessDeniedError):
        server.verify("GET", "/", header)
    assert not server._nonces


def test_another_secret_is_refused():
    _, server, clock = pair()
    with pytest.raises(AccessDeniedError, match="another cluster secret"):
        server.verify("GET", "/", Credentials(b"another secret!!!", clock).sign("GET", "/"))


def test_the_file_is_made_once_private_and_read_by_all(tmp_path):
    path = tmp_path / "conf" / "cluster.secret"
    made: list[Credentials] = []
    threads = [threading.Thread(target=lambda: made.append(Credentials.load_or_create(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["cluster.secret"]
    for client in made:
        made[0].verify("GET", "/", client.sign("GET", "/"))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_may_read_or_write_is_refused(tmp_path, mode):
    path = tmp_path / "secret"
    Credentials.load_or_create(path)
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        Credentials.load_or_create(path)


def test_a_missing_short_or_strange_file_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Credentials.load(tmp_path / "none")
    short = tmp_path / "short"
    short.touch(0o600)
    short.write_bytes(b"abc\n")
    with pytest.raises(ConfigurationError, match="has 3 bytes"):
        Credentials.load(short)
    with pytest.raises(ConfigurationError, match=r"cannot be read|is not a file"):
        Credentials.load(tmp_path)


def test_the_secret_is_in_no_text(tmp_path):
    path = tmp_path / "secret"
    credentials = Credentials.load_or_create(path)
    secret = path.read_text().strip()
    texts = [repr(credentials), str(credentials), credentials.sign("GET", "/")]
    with pytest.raises(AccessDeniedError) as refused:
        credentials.verify("GET", "/", "nonsense")
    texts.append(str(refused.value))
    assert not any(secret in text or secret[:16] in text for text in texts)
    with pytest.raises(TypeError, match="do not travel"):
        pickle.dumps(credentials)


def test_both_sides_of_a_socket_prove_the_secret():
    reader, writer, _ = pair()
    asked, asked_back = reader.challenge(), writer.challenge()
    assert asked != asked_back and len(asked) == len(asked_back) == 32
    writer.check_proof("reader", asked_back, asked, reader.prove("reader", asked, asked_back))
    reader.check_proof("writer", asked, asked_back, writer.prove("writer", asked_back, asked))


def test_a_proof_of_another_secret_role_or_challenge_proves_nothing():
    reader, writer, _ = pair()
    asked, asked_back = reader.challenge(), writer.challenge()
    wrong = [
        Credentials(b"another secret!!!").prove("reader", asked, asked_back),
        reader.prove("writer", asked, asked_back),
        reader.prove("reader", asked_back, asked),
        reader.prove("reader", asked, reader.challenge()),
        writer.prove("writer", asked_back, asked),
        b"",
        bytes(32),
    ]
    for proof in wrong:
        with pytest.raises(AccessDeniedError, match="another cluster secret"):
            writer.check_proof("reader", asked_back, asked, proof)


def test_a_secret_of_less_than_sixteen_bytes_is_none():
    with pytest.raises(ConfigurationError, match="at least 16 bytes"):
        Credentials(b"short")


def test_a_seal_belongs_to_one_reply_of_one_request():
    client, server, _ = pair()
    header = client.sign("POST", "/a")
    seal = server.seal(header, b"reply")
    client.check_seal(header, b"reply", seal)
    for other_header, reply, other_seal in (
        (client.sign("POST", "/a"), b"reply", seal),
        (header, b"other", seal),
        (header, b"reply", b""),
        (header, b"reply", Credentials(b"another secret!!!").seal(header, b"reply")),
    ):
        with pytest.raises(AccessDeniedError, match="the reply does not come"):
            client.check_seal(other_header, reply, other_seal)


def test_the_secret_lies_beside_the_configuration_wherever_the_command_runs(tmp_path, monkeypatch):
    conf, elsewhere = tmp_path / "conf", tmp_path / "elsewhere"
    conf.mkdir()
    elsewhere.mkdir()
    monkeypatch.setenv("DREY_CONF_DIR", str(conf))
    monkeypatch.chdir(elsewhere)

    def found(path=None):
        return secret_file(configuration_from_texts({} if path is None else {"security.secret-file": path}))

    assert found() == conf / "cluster.secret"
    assert found("keys/mine") == conf / "keys" / "mine"
    assert found("/etc/drey.secret").as_posix() == "/etc/drey.secret"
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path / "nowhere"))
    assert found() is None
    assert found("/etc/drey.secret").as_posix() == "/etc/drey.secret"


@pytest.mark.parametrize(
    ("mode", "owner", "own", "is_open"),
    [
        *[(0o600, 7, 7, False), (0o640, 7, 7, True), (0o440, 0, 7, False), (0o640, 0, 7, False)],
        *[(0o640, 0, 0, True), (0o660, 0, 7, True), (0o644, 0, 7, True), (0o450, 0, 7, True)],
    ],
)
def test_the_group_may_read_what_root_has_given_it_and_nobody_else(monkeypatch, mode, owner, own, is_open):
    monkeypatch.setattr(os, "geteuid", lambda: own)
    status = os.stat_result((mode | stat.S_IFREG, 1, 1, 1, owner, 0, 32, 0, 0, 0))
    assert is_open_to_others(status) == is_open
