"""Diagnosis of a quorum: asked when no session is opened, because ZooKeeper's client does not say why.

    examine(settings, within_s) -> (ServerState(server, text, is_hopeless), ...)      all servers at the same time
    limits(settings, server, within_s) -> what is wrong with how a server is set up   "conf", where it may be asked

Waiting does not help with a server of another kind or with a certificate that is not trusted (hopeless). It may help
with one that is not there, has no quorum yet or ends connections. A four-letter word is asked over a connection of its
own: a few lines, at the port for clients. The result is of one moment, and is used only for messages.

Source: ZooKeeper's four-letter words srvr and conf.
Held by: tests/ha/test_preflight.py
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from typing import NamedTuple

from ha.zookeeper_hosts import parse_hosts, server_text
from ha.zookeeper_settings import ZooKeeperSettings

#: bytes shown of an unknown server's answer
_QUOTED = 60
_ANSWER_MAX = 4096
_TLS_ALERT = b"\x15"
_ENDED = "it ends the connection: no ZooKeeper, or one that wants TLS (high-availability.zookeeper.client.tls.ca)"
#: time for which an isolated server may go on serving, as a share of a session
_SYNC_SHARE_MAX = 0.5


class ServerState(NamedTuple):
    """The state of the server at one address, in words."""

    server: str
    text: str
    is_hopeless: bool = False


def examine(settings: ZooKeeperSettings, within_s: float) -> tuple[ServerState, ...]:
    """Return the state of the server at each address; "" where it serves."""
    servers = parse_hosts(settings.hosts)
    found: list[ServerState | None] = [None] * len(servers)

    def look(index: int, host: str, port: int) -> None:
        found[index] = _examined(settings, host, port, within_s)

    threads = [
        threading.Thread(target=look, args=(index, *server), name="drey-zookeeper-look", daemon=True)
        for index, server in enumerate(servers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(state for state in found if state is not None)


def limits(settings: ZooKeeperSettings, host: str, port: int, within_s: float) -> tuple[str, ...]:
    """Return the limits of a server that do not fit sessions of this length; none where it does not report them."""
    try:
        answer = _ask(settings, host, port, b"conf", within_s).decode(errors="replace")
    except (OSError, ValueError):
        return ()
    lines = dict(re.findall(r"^(\w+)=(\d+)$", answer, re.MULTILINE))
    session_ms, found = settings.session_timeout_s * 1000, []
    sync_ms = int(lines.get("tickTime", 0)) * int(lines.get("syncLimit", 0))
    if sync_ms > _SYNC_SHARE_MAX * session_ms:
        found.append(
            f"its tickTime x syncLimit is {sync_ms} ms, more than half of a session of {session_ms:.0f} ms: sessions "
            "may be lost with a server; lower syncLimit or tickTime, or let sessions last longer"
        )
    return tuple(found)


def _examined(settings: ZooKeeperSettings, host: str, port: int, within_s: float) -> ServerState:
    server = server_text(host, port)
    try:
        answer = _ask(settings, host, port, b"srvr", within_s)
    except ssl.SSLCertVerificationError as error:
        return ServerState(server, f"its certificate is not trusted: {error.verify_message}", True)
    except ssl.SSLEOFError:
        return ServerState(server, "it ends the TLS handshake: it speaks no TLS, or does not take this process")
    except ssl.SSLError as error:
        return ServerState(server, _tls_words(error), True)
    except socket.gaierror as error:
        return ServerState(server, f"the name is not known: {error.strerror}")
    except TimeoutError:
        return ServerState(server, f"nothing answers within {within_s:g} s")
    except OSError as error:
        return ServerState(server, error.strerror or str(error))
    return _judged(server, answer, is_tls=bool(settings.tls_ca))


def _judged(server: str, answer: bytes, *, is_tls: bool) -> ServerState:
    text = answer.decode(errors="replace").strip()
    if "Mode:" in text or "not in the whitelist" in text:
        return ServerState(server, "")
    if "not currently serving" in text:
        return ServerState(server, "it runs, but has no quorum: do the others run?")
    if not text and is_tls:
        return ServerState(server, "it ends the connection after the TLS handshake: it wants another certificate")
    if not text or answer[:1] == _TLS_ALERT:
        return ServerState(server, _ENDED)
    return ServerState(server, f"another kind of server answers: {text.splitlines()[0][:_QUOTED]!r}", True)


def _tls_words(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        return "it does not speak TLS, which high-availability.zookeeper.client.tls.ca asks for"
    if "ALERT" in reason:
        return f"it refuses the certificate of this process ({reason.lower()})"
    return f"no TLS with it: {reason.lower()}"


def _ask(settings: ZooKeeperSettings, host: str, port: int, word: bytes, within_s: float) -> bytes:
    """Return the answer to a four-letter word, or what else comes."""
    with socket.create_connection((host, port), within_s) as connection:
        connection.settimeout(within_s / 2)
        if settings.tls_ca:
            with tls_context(settings).wrap_socket(connection, server_hostname=host) as secured:
                return _answer(secured, word)
        return _answer(connection, word)


def _answer(connection: socket.socket, word: bytes) -> bytes:
    """Return the answer up to its end; a server of another kind may wait for the end of a line."""
    for text in (word, b"\r\n\r\n"):
        connection.sendall(text)
        answer = b""
        try:
            while len(answer) < _ANSWER_MAX and (part := connection.recv(_ANSWER_MAX)):
                answer += part
        except TimeoutError:
            if answer:
                return answer
        else:
            return answer
    raise ConnectionError("it accepts connections and sends nothing")


def tls_context(settings: ZooKeeperSettings) -> ssl.SSLContext:
    """Return the TLS context for connections to a server; ValueError when the files do not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(settings.tls_ca)
        if settings.tls_certificate:
            context.load_cert_chain(settings.tls_certificate, settings.tls_key or None)
    except (ssl.SSLError, OSError) as error:
        files = ", ".join(filter(None, (settings.tls_ca, settings.tls_certificate, settings.tls_key)))
        raise ValueError(f"the TLS files for ZooKeeper ({files}) cannot be used: {error}") from error
    return context
