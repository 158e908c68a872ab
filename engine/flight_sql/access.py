"""Access: which callers are let in, and under which session.

    Handshake, Authorization: Basic base64(<any user>:<token>)   ─► Authorization: Bearer <session>, good for a while
    any call,  Authorization: Bearer <session>, or Bearer <token>
    any other call                                               ─► UNAUTHENTICATED

    <session>    <end, ms>.<random>.<HMAC-SHA256 of both>: the server keeps none, so none is lost as it starts again

The token is a file of its own, ``flight-sql.token-file``: its holders run statements, which read and write what the
server's user may. Its change ends all sessions. Tokens are compared in constant time, and are in no text.

Source: RFC 6750 (bearer), RFC 7617 (basic)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from pyarrow import flight

from engine.clock import Clock, SystemClock
from engine.rpc.refusals import REFUSALS, Reason

_HEADER: Final = "authorization"
_HEADER_MAX: Final = 4096
_WRONG: Final = (
    "unauthenticated: {}; log in with any user and the token of the server as the password, or send it as a bearer "
    "token (it is in the file flight-sql.token beside the server's config.yaml)"
)
#: name of the middleware in calls
ACCESS: Final = "access"


class Access:
    """The token of a server, and the sessions of its holders. ``token`` None: all callers are let in."""

    def __init__(self, token: bytes | None, session_s: float, clock: Clock | None = None) -> None:
        self._digest = None if token is None else hashlib.sha256(token).digest()
        self._key = b"" if token is None else hashlib.sha256(b"drey flight sql session\0" + token).digest()
        self._session_ms = int(session_s * 1000)
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return "Access(...)"

    @property
    def is_open(self) -> bool:
        """Whether all callers are let in."""
        return self._digest is None

    def new_session(self) -> str:
        """Return the bearer token of a new session."""
        said = f"{self._clock.wall_ms() + self._session_ms}.{secrets.token_hex(8)}"
        return f"{said}.{self._signed(said)}"

    def owner_of(self, header: str) -> tuple[str, str]:
        """Return the session that a header is of, and "", or "" and why it is none."""
        scheme, _, value = header.partition(" ")
        if self.is_open:
            return "anonymous", ""
        if not header or len(header) > _HEADER_MAX:
            return "", "a token is missing"
        given = value.strip()
        if scheme.lower() == "basic":
            user, password = _of_basic(given)
            return (f"user {user}", "") if self._is_token(password) else ("", "the password is not the token")
        if scheme.lower() != "bearer":
            return "", "only Basic and Bearer are known"
        if self._is_token(given.encode("utf-8", "surrogateescape")):
            return "token", ""
        return self._of_session(given)

    def _of_session(self, given: str) -> tuple[str, str]:
        said, _, signature = given.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "surrogateescape"), self._signed(said).encode()):
            return "", "the token is wrong"
        end, _, number = said.partition(".")
        if self._clock.wall_ms() >= int(end):
            return "", "the session has expired"
        return f"session {number}", ""

    def _is_token(self, given: bytes) -> bool:
        return self._digest is not None and hmac.compare_digest(hashlib.sha256(given).digest(), self._digest)

    def _signed(self, said: str) -> str:
        return hmac.new(self._key, said.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def _of_basic(given: str) -> tuple[str, bytes]:
    try:
        # Clients of Arrow leave the padding out.
        user, _, password = base64.b64decode(given + "=" * (-len(given) % 4), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return "", b""
    return user.decode("utf-8", "replace"), password


class AccessOfCalls(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets calls in, or refuses them."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str]]) -> AccessOfCall:
        """Return the session of a call. Raises: FlightUnauthenticatedError."""
        header = headers.get(_HEADER, [""])[0]
        owner, why = self._access.owner_of(header)
        if not owner:
            reason = Reason.MISSING_SECRET if not header else Reason.WRONG_SECRET
            REFUSALS.note(reason, "flight-sql", str(info.method), why)
            raise flight.FlightUnauthenticatedError(_WRONG.format(why))
        is_login = header[:6].lower() == "basic "  # also where all are let in: clients wait for a token
        return AccessOfCall(owner, self._access.new_session() if is_login else "")


class AccessOfCall(flight.ServerMiddleware):  # type: ignore[misc]
    """The session of one call."""

    def __init__(self, owner: str, session: str) -> None:
        super().__init__()
        self.owner = owner
        self._session = session

    def sending_headers(self) -> dict[str, str]:
        """Return the bearer token of a session that begins."""
        return {_HEADER: f"Bearer {self._session}"} if self._session else {}


class Handshakes(flight.ServerAuthHandler):  # type: ignore[misc]
    """Answers Handshake, and has nothing to say itself: what counts is in the headers of each call."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        """Leave it to the headers."""

    def is_valid(self, token: bytes) -> bytes:
        """Leave it to the headers."""
        return b""
