"""Credentials: the cluster's secret, and what it proves.

    secret_file(configuration) ─► path
    load_or_create(path) ─► sign(method, target, digest of the body) ─► value of the Authorization header
    verify(method, target, header) ─► the digest that the body must have, or AccessDeniedError
    seal(header, reply) ─► 32 bytes behind the reply ─► check_seal(header, reply, seal)
    connection_keys(header, nonce, programs) ─► keys of calls and replies of one connection
    challenge() ─► prove(role, own, other's) ─► check_proof(role, own, other's, proof)          for raw sockets

A signature is HMAC-SHA256 over method, target (path and query as sent), epoch, time, nonce and the SHA-256 of the body,
so none of them can be changed. A request that was overheard is worth nothing: it is accepted for a minute, its nonce
only once, and another leader refuses its epoch. ``verify`` needs no byte of the body; the caller compares the body's
digest before anything reads it. Nonces are remembered as long as their requests could be accepted. When that would be
more than NONCES_MAX, further requests are refused: no nonce is forgotten early.

The secret lies in a file that only its owner may read. It is in no text: not in ``repr``, errors or logs.

Thread: ``verify`` on the event loop only; the rest anywhere.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from collections import deque
from pathlib import Path

from engine.clock import Clock, SystemClock
from engine.config.loader import Configuration
from engine.config.options import SECRET_FILE
from engine.errors import ConfigurationError
from engine.rpc.errors import ACCEPTED_MS, AccessDeniedError, ClockDifferenceError, MissingCredentialError
from engine.rpc.secret_file import SECRET_MIN_BYTES, load_or_create_secret, load_secret, place_beside_configuration

#: header with the signature
AUTHORIZATION = "Authorization"
SCHEME = "Drey-HMAC-SHA256"
#: limit of remembered requests, of the last two minutes, about 100 bytes each
NONCES_MAX = 500_000

SEAL_BYTES = 32

_HEX = frozenset("0123456789abcdef")
_NONCE_LENGTH = 32
_DIGEST_LENGTH = 64

#: digest of an empty body
EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()

_DEFAULT_FILE = "cluster.secret"
_WHAT = "cluster secret"


def secret_file(configuration: Configuration) -> Path | None:
    """Return the path of the secret: ``security.secret-file``, relative to the folder of config.yaml.

    None when it is relative and there is no folder of configuration.
    """
    return place_beside_configuration(configuration.get(SECRET_FILE) or _DEFAULT_FILE)


class Credentials:
    """The secret that the processes of a cluster and its clients share."""

    def __init__(self, secret: bytes, clock: Clock | None = None) -> None:
        if len(secret) < SECRET_MIN_BYTES:
            raise ConfigurationError(f"a cluster secret has at least {SECRET_MIN_BYTES} bytes")
        self._request_key = _derived(secret, b"request")
        self._reply_key = _derived(secret, b"reply")
        self._peer_key = _derived(secret, b"peer")
        self._other_key = _derived(secret, b"other")
        self._connection_key = _derived(secret, b"connection")
        self._clock = clock or SystemClock()
        self._nonces: set[str] = set()
        #: (time on this clock at which it may be forgotten, nonce), oldest first
        self._nonce_ends: deque[tuple[float, str]] = deque()

    def __repr__(self) -> str:
        return "Credentials(...)"

    def __reduce__(self) -> str:
        raise TypeError("credentials do not travel")

    @classmethod
    def load(cls, path: Path, clock: Clock | None = None) -> Credentials:
        """Read the secret's file; ConfigurationError when it is missing, short, or open to others."""
        return cls(load_secret(path, _WHAT), clock)

    @classmethod
    def load_or_create(cls, path: Path, clock: Clock | None = None) -> Credentials:
        """Read the secret's file; make it first when there is none."""
        return cls(load_or_create_secret(path, _WHAT), clock)

    def key(self, purpose: bytes) -> bytes:
        """Return a key for one purpose outside of this room, which says nothing of the secret."""
        return _derived(self._other_key, purpose)

    # ---- requests ----

    def sign(self, method: str, target: str, body_digest: str = EMPTY_DIGEST, epoch: str = "") -> str:
        """Return the value of the Authorization header; ``body_digest`` is the hexadecimal SHA-256 of the body."""
        time_ms, nonce = str(self._clock.wall_ms()), secrets.token_hex(_NONCE_LENGTH // 2)
        signature = self._signature(method, target, epoch, time_ms, nonce, body_digest)
        return f"{SCHEME} {time_ms}:{nonce}:{body_digest}:{signature}"

    def verify(self, method: str, target: str, header: str | None, epoch: str = "") -> str:
        """Return the digest that the body must have; AccessDeniedError says why a request is refused."""
        time_ms, nonce, body_digest, signature = _parsed(header)
        expected = self._signature(method, target, epoch, time_ms, nonce, body_digest)
        if not hmac.compare_digest(expected.encode(), signature.encode()):
            raise AccessDeniedError(
                "the request's credential is wrong: its sender has another cluster secret, or it was changed on the way"
            )
        self.check_time(int(time_ms))
        self._note_nonce(nonce)
        return body_digest

    def now_ms(self) -> int:
        """Return the time that a message says, for ``check_time`` of the other side."""
        return self._clock.wall_ms()

    def check_time(self, time_ms: int) -> None:
        """Raise ClockDifferenceError for a message whose time is too far from that of this process."""
        age_ms = self._clock.wall_ms() - time_ms
        if abs(age_ms) > ACCEPTED_MS:
            apart = f"{round(abs(age_ms) / 1000)} s {'old' if age_ms > 0 else 'ahead'}"
            raise ClockDifferenceError(
                f"the request's credential is {apart} by the clock of {socket.gethostname()}, more than the "
                f"{ACCEPTED_MS // 1000} s that are allowed: the clocks of the machines differ and must be set (or the "
                "request was sent before)"
            )

    def _signature(self, *parts: str) -> str:
        return hmac.new(self._request_key, _unambiguous(parts), hashlib.sha256).hexdigest()

    def _note_nonce(self, nonce: str) -> None:
        now_s = self._clock.monotonic_s()
        while self._nonce_ends and self._nonce_ends[0][0] < now_s:
            self._nonces.discard(self._nonce_ends.popleft()[1])
        if nonce in self._nonces:
            raise AccessDeniedError("the request's credential was used before")
        if len(self._nonces) >= NONCES_MAX:
            raise AccessDeniedError("too many requests within two minutes; try again later")
        self._nonces.add(nonce)
        # A signature from ACCEPTED_MS ahead of us stays valid for twice that.
        self._nonce_ends.append((now_s + 2 * ACCEPTED_MS / 1000, nonce))

    def seal(self, header: str, reply: bytes, program: str = "") -> bytes:
        """Return SEAL_BYTES that prove a reply to the request with that Authorization header.

        ``program``: what the process that replies says of itself beside the reply.
        """
        said = (header, hashlib.sha256(reply).hexdigest(), *filter(None, (program,)))
        return hmac.new(self._reply_key, _unambiguous(said), hashlib.sha256).digest()

    def check_seal(self, header: str, reply: bytes, seal: bytes, program: str = "") -> None:
        """Raise AccessDeniedError unless a process with the secret made that reply to that request."""
        if not hmac.compare_digest(self.seal(header, reply, program), seal):
            raise AccessDeniedError("the reply does not come from a process with the cluster's secret")

    def connection_keys(self, header: str, nonce: str, caller: str, called: str) -> tuple[bytes, bytes]:
        """Return the keys of the two directions, calls and replies, of the connection that a request has begun.

        ``header``: the Authorization header of the request. ``nonce``: fresh random text of the side that answered it.
        ``caller``, ``called``: the programs of both sides, as they said.
        """
        said = (header, nonce, caller, called)
        calls, replies = (
            hmac.digest(self._connection_key, _unambiguous((direction, *said)), "sha256")
            for direction in ("calls", "replies")
        )
        return calls, replies

    # ---- raw sockets: each side sends a challenge, then the proof of the other's ----

    @staticmethod
    def challenge() -> bytes:
        """Return 32 fresh random bytes, to be sent to the other side."""
        return secrets.token_bytes(32)

    def prove(self, role: str, own: bytes, received: bytes) -> bytes:
        """Return 32 bytes that prove the secret to the side that sent the challenge ``received``.

        ``role`` ("reader", "writer" ...) differs between the two sides, so a proof that is sent back proves nothing.
        """
        return hmac.new(self._peer_key, _unambiguous((role, received.hex(), own.hex())), hashlib.sha256).digest()

    def check_proof(self, other_role: str, own: bytes, received: bytes, proof: bytes) -> None:
        """Raise AccessDeniedError unless ``proof`` is the other's answer to our challenge ``own``."""
        expected = hmac.new(self._peer_key, _unambiguous((other_role, own.hex(), received.hex())), hashlib.sha256)
        if not hmac.compare_digest(expected.digest(), proof):
            raise AccessDeniedError("the other side of a connection has another cluster secret")


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.new(secret, b"drey " + purpose, hashlib.sha256).digest()


def _unambiguous(parts: tuple[str, ...]) -> bytes:
    encoded = [part.encode("utf-8", "surrogateescape") for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _parsed(header: str | None) -> tuple[str, str, str, str]:
    if not header:
        raise MissingCredentialError("the request carries no credential; it needs the cluster's secret")
    scheme, _, value = header.partition(" ")
    fields = value.split(":")
    if scheme != SCHEME or len(fields) != 4:
        raise AccessDeniedError(
            f"the request's credential is no signature ({SCHEME}) and no known token: the token of a user may have been"
            " removed or replaced"
        )
    time_ms, nonce, digest, signature = fields
    is_formed = (
        time_ms.isascii()
        and time_ms.isdigit()
        and len(time_ms) <= 16
        and len(nonce) == _NONCE_LENGTH
        and len(digest) == len(signature) == _DIGEST_LENGTH
        and _HEX.issuperset(nonce + digest + signature)
    )
    if not is_formed:
        raise AccessDeniedError("the request's credential is malformed")
    return time_ms, nonce, digest, signature
