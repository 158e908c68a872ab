"""Access: which callers are let in, and under which session.

    Handshake, Authorization: Basic base64(<any user>:<token>)   ─► Authorization: Bearer <session>, good for a while
    any call,  Authorization: Bearer <session>, or Bearer <token>
    any other call                                               ─► UNAUTHENTICATED

    <session>    <end, ms>.<random>.<user>.<HMAC-SHA256 of all>: none is kept, so none is lost at a new start

The token is a file of its own, ``flight-sql.token-file``: its holders run statements, which read and write what the
server's user may. Its change ends all sessions. The tokens of users (``security.users-file``) are taken, too: the role
``read`` runs queries alone, and the sessions of a user end when it is removed or gets another token. Tokens are
compared in constant time, and are in no text.

Source: RFC 6750 (bearer), RFC 7617 (basic)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from pyarrow import flight

from engine.clock import Clock, SystemClock
from engine.rpc.principal import Role
from engine.rpc.user_tokens import User, UserTokens

_HEADER: Final = "authorization"
_HEADER_MAX: Final = 4096
_SHOWN_ADDRESSES: Final = 4
_WRONG: Final = (
    "unauthenticated: {}; log in with any user and the token of the server as the password, or send it as a bearer "
    "token (it is in the file flight-sql.token beside the server's config.yaml)"
)
#: name of the middleware in calls
ACCESS: Final = "access"


class Caller(NamedTuple):
    """The session of a caller, or "" and why it is let in under none."""

    owner: str
    why: str = ""
    may_change: bool = True
    #: user by whose token it is known; None: by the token of the server
    user: User | None = None


class Access:
    """The token of a server, and the sessions of its holders. ``token`` None: all callers are let in."""

    def __init__(
        self, token: bytes | None, session_s: float, clock: Clock | None = None, users: UserTokens | None = None
    ) -> None:
        self._users = users
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

    def new_session(self, user: User | None = None) -> str:
        """Return the bearer token of a new session, that of a user or of a holder of the server's token."""
        said = f"{self._clock.wall_ms() + self._session_ms}.{secrets.token_hex(8)}.{user.name if user else ''}"
        return f"{said}.{self._signed(said, user)}"

    def caller_of(self, header: str) -> Caller:
        """Return the caller that a header is of."""
        scheme, _, value = header.partition(" ")
        if self.is_open:
            return Caller("anonymous")
        if not header or len(header) > _HEADER_MAX:
            return Caller("", "a token is missing")
        given = value.strip()
        if scheme.lower() == "basic":
            name, password = _of_basic(given)
            if self._is_token(password):
                return Caller(f"user {name}")
            return self._of_user(password) or Caller("", "the password is not the token")
        if scheme.lower() != "bearer":
            return Caller("", "only Basic and Bearer are known")
        token = given.encode("utf-8", "surrogateescape")
        if self._is_token(token):
            return Caller("token")
        return self._of_user(token) or self._of_session(given)

    def _of_user(self, token: bytes) -> Caller | None:
        user = self._users.of_token(token) if self._users is not None and token else None
        return Caller(f"token of {user.name}", "", user.role > Role.READ, user) if user else None

    def _of_session(self, given: str) -> Caller:
        said, _, signature = given.rpartition(".")
        end, number, name = (*said.split(".", 2), "", "")[:3]
        user = self._users.named(name) if self._users is not None and name else None
        expected = self._signed(said, user)
        is_right = hmac.compare_digest(signature.encode("utf-8", "surrogateescape"), expected.encode())
        if not is_right or bool(name) != bool(user):
            return Caller("", "the token is wrong")
        if self._clock.wall_ms() >= int(end):
            return Caller("", "the session has expired")
        return Caller(f"session {number}", "", user is None or user.role > Role.READ, user)

    def _is_token(self, given: bytes) -> bool:
        return self._digest is not None and hmac.compare_digest(hashlib.sha256(given).digest(), self._digest)

    def _signed(self, said: str, user: User | None) -> str:
        text = f"{said} {user.digest if user else ''}"
        return hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def _of_basic(given: str) -> tuple[str, bytes]:
    try:
        # Clients of Arrow leave the padding out.
        user, _, password = base64.b64decode(given + "=" * (-len(given) % 4), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return "", b""
    return user.decode("utf-8", "replace"), password


class AccessOfCalls(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets calls in, or refuses them.

    The library does not say here from which address a call comes, and a login has no other place. So a refusal is noted
    with the addresses that are connected: one, or the few that it may be.

    Args: callers: returns the addresses that are connected now; let_in, refused: are told of logins and refusals.
    """

    def __init__(
        self,
        access: Access,
        callers: Callable[[], Sequence[str]] = tuple,
        let_in: Callable[[Caller, str], None] = lambda caller, address: None,
        refused: Callable[[str, str, str, str], None] = lambda header, method, address, why: None,
    ) -> None:
        super().__init__()
        self._access = access
        self._callers = callers
        self._let_in = let_in
        self._refused = refused

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str]]) -> AccessOfCall:
        """Return the caller of a call. Raises: FlightUnauthenticatedError."""
        header = headers.get(_HEADER, [""])[0]
        caller = self._access.caller_of(header)
        if not caller.owner:
            self._refused(header, str(info.method), addresses_text(self._callers()), caller.why)
            raise flight.FlightUnauthenticatedError(_WRONG.format(caller.why))
        is_login = header[:6].lower() == "basic "  # also where all are let in: clients wait for a token
        if is_login:
            self._let_in(caller, addresses_text(self._callers()))
        return AccessOfCall(caller, self._access.new_session(caller.user) if is_login else "")


def addresses_text(addresses: Sequence[str]) -> str:
    """Return the address of a caller that is one of these."""
    known = sorted(set(addresses))
    if len(known) < 2:
        return known[0] if known else "an unknown address"
    more = f" and {len(known) - _SHOWN_ADDRESSES} more" if len(known) > _SHOWN_ADDRESSES else ""
    return f"one of {', '.join(known[:_SHOWN_ADDRESSES])}{more}"


class AccessOfCall(flight.ServerMiddleware):  # type: ignore[misc]
    """The caller of one call."""

    def __init__(self, caller: Caller, session: str) -> None:
        super().__init__()
        self.caller = caller
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
