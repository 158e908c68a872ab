"""UserTokens: users by their tokens, each with a role. The file has the hashes; a token is shown once, when it is made.

    add_user(path, "ada", Role.SUBMIT) ─► token          list_users(path) ─► users          remove_user(path, "ada")
    UserTokens(path).find(Authorization header) ─► Principal, or None

    users.tokens       ada submit 9f86d081884c7d65...      name, role, SHA-256 of the token, one user a line

The header is that of the read token: bearer, or basic with the token as the password. A token has 256 random bits, so
its plain hash tells nothing of it. A given one is compared with all hashes in constant time, and the comparison does
not end at the first that fits. The file is read again when it changes: a user that is removed is refused from the next
request on. A file that cannot be read, or has a line that is not understood, lets no user in, and the log says why.

Thread: any.

Source: RFC 6750 (bearer), RFC 7617 (basic).
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from engine.config.loader import Configuration
from engine.config.operating_options import OWN_TOKEN_FILE, USERS_FILE
from engine.errors import ConfigurationError
from engine.rpc.principal import Principal, Role
from engine.rpc.read_access import token_of
from engine.rpc.secret_file import is_open_to_others, load_secret, place_beside_configuration

_DEFAULT_FILE = "users.tokens"
_BYTES_MAX: Final = 1 << 20
_TOKEN_BYTES: Final = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_log = logging.getLogger(__name__)


class User(NamedTuple):
    """A line of the file."""

    name: str
    role: Role
    digest: str


def users_file(configuration: Configuration) -> Path | None:
    """Return the path of the file: ``security.users-file``, relative to the folder of config.yaml."""
    return place_beside_configuration(configuration.get(USERS_FILE) or _DEFAULT_FILE)


def own_token(configuration: Configuration) -> str | None:
    """Return the token of the user that runs a client; None without ``security.token-file``."""
    named = configuration.get(OWN_TOKEN_FILE)
    path = place_beside_configuration(named) if named else None
    if path is None:
        return None
    remedy = "write the token into it that flink-run token add has printed for you, or have a new one made"
    return load_secret(path, "token", remedy).decode("ascii", "replace")


def list_users(path: Path) -> tuple[User, ...]:
    """Return all users; ConfigurationError for a file that is open to others to write, or is not understood."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ConfigurationError(f"the users in {path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        is_ours = status.st_uid in (os.geteuid(), 0) or os.geteuid() == 0
        if not stat.S_ISREG(status.st_mode) or is_open_to_others(status) or not is_ours:
            raise ConfigurationError(f"others may read or write the users in {path}: chmod 600 {path}")
        lines = file.read(_BYTES_MAX).decode("utf-8", "replace").splitlines()
    users = [_user(line, number, path) for number, line in enumerate(lines, 1) if line.strip()]
    if len({user.name for user in users}) < len(users):
        raise ConfigurationError(f"a user stands twice in {path}: remove one of the lines")
    return tuple(users)


def _user(line: str, number: int, path: Path) -> User:
    words = line.split()
    is_formed = len(words) == 3 and _NAME.fullmatch(words[0]) and _DIGEST.fullmatch(words[2])
    if not is_formed or words[1].upper() not in Role.__members__ or words[1] != words[1].lower():
        raise ConfigurationError(f"line {number} of {path} is not a user: it has to be NAME read|submit|admin SHA-256")
    return User(words[0], Role[words[1].upper()], words[2])


def add_user(path: Path, name: str, role: Role) -> str:
    """Add a user, or give one of that name another role and token; return the token, which is kept nowhere."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name of a user: 1 to 64 of A-Z a-z 0-9 . _ @ -, no sign first")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with _locked(path):
        others = [user for user in list_users(path) if user.name != name]
        _write(path, [*others, User(name, role, _digest(token.encode()))])
    return token


def remove_user(path: Path, name: str) -> bool:
    """Remove a user; return whether there was one."""
    with _locked(path):
        users = list_users(path)
        _write(path, [user for user in users if user.name != name])
    return any(user.name == name for user in users)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other commands from changing the file meanwhile; the folder is locked, as the file is replaced."""
    try:
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigurationError(f"the users in {path} cannot be changed: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, users: list[User]) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    text = "".join(f"{user.name} {user.role.text} {user.digest}\n" for user in sorted(users))
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            if os.geteuid() == 0 and path.exists():  # it stays the file of the cluster's user
                os.fchown(descriptor, path.stat().st_uid, path.stat().st_gid)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except OSError as error:
        raise ConfigurationError(f"the users in {path} cannot be changed: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _digest(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()


class UserTokens:
    """The users of a server, as the file has them at each moment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        #: identity of the file whose users these are; None: there was none  # guarded by: self._lock
        self._seen: tuple[int, ...] | None = None
        self._users: tuple[User, ...] = ()  # guarded by: self._lock

    def __repr__(self) -> str:
        return "UserTokens(...)"

    def find(self, header: str | None) -> Principal | None:
        """Return the user whose token an Authorization header has; None for all other headers."""
        token = token_of(header or "")
        user = self.of_token(token) if token else None
        return None if user is None else Principal(user.name, user.role)

    def of_token(self, token: bytes) -> User | None:
        """Return the user of a token."""
        digest = _digest(token)
        found = None
        for user in self._current():
            if hmac.compare_digest(user.digest, digest):
                found = user
        return found

    def named(self, name: str) -> User | None:
        """Return the user of that name."""
        return next((user for user in self._current() if user.name == name), None)

    def _current(self) -> tuple[User, ...]:
        with self._lock:
            seen = _identity(self._path)
            if seen != self._seen:
                self._seen = seen
                try:
                    self._users = list_users(self._path)
                except ConfigurationError as error:
                    self._users = ()
                    _log.error("no user is let in: %s", error)
            return self._users


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode
