"""Files that hold a secret: readable by their owner alone, made whole or not at all.

    load_or_create_secret(path, "cluster secret") ─► bytes        load_secret(path, ...) where it must be there

A file that others may read, that belongs to another user, that is no file or is too short is refused, with what to do.
One that belongs to root may be readable by its group, which root has given it to: orchestrators mount secrets so for
processes that are not root.
The secret is in no error. Two processes that make the file at once get the same one.

Held by: tests/rpc/test_credentials.py
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from engine.config.loader import config_directory
from engine.errors import ConfigurationError

SECRET_MIN_BYTES = 16
_SECRET_BYTES = 32
_SECRET_FILE_MAX_BYTES = 4096


class SecretFileError(ConfigurationError):
    """The file of a secret cannot be used until a person mends it."""


def place_beside_configuration(text: str) -> Path | None:
    """Return the path of a file, relative ones in config.yaml's folder; None when there is no such folder."""
    path, folder = Path(text), config_directory()
    if path.is_absolute():
        return path
    return folder / path if folder is not None else None


def load_or_create_secret(path: Path, what: str) -> bytes:
    """Return the secret of a file, which is made first when there is none."""
    if not os.path.lexists(path):  # a folder that may not be looked into: the errors below say so
        _write_secret(path, what)
    return load_secret(path, what)


def load_secret(path: Path, what: str, remedy: str = "remove it and start the cluster again") -> bytes:
    """Return the secret; ConfigurationError when it is missing, short, or open to others.

    ``what``: its name. ``remedy``: what to do about a short one.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise SecretFileError(f"the {what} {path} cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SecretFileError(f"the {what} {path} is not a file")
        if is_open_to_others(status):
            raise SecretFileError(f"others may read the {what} {path}: run chmod 600 {path}")
        if status.st_uid not in (os.geteuid(), 0):
            raise SecretFileError(f"the {what} {path} belongs to another user")
        secret = os.read(descriptor, _SECRET_FILE_MAX_BYTES).strip()
    finally:
        os.close(descriptor)
    if len(secret) < SECRET_MIN_BYTES:
        raise SecretFileError(
            f"the {what} {path} has {len(secret)} bytes, at least {SECRET_MIN_BYTES} are needed: {remedy}"
        )
    return secret


def is_open_to_others(status: os.stat_result) -> bool:
    """Whether more than the owner may read a file, or root and the group that root has given it to."""
    is_given = status.st_uid == 0 and os.geteuid() != 0
    return bool(status.st_mode & (0o037 if is_given else 0o077))


def _write_secret(path: Path, what: str) -> None:
    """Make the file, whole or not at all; when two processes do so at once, one file stands for both."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_SECRET_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    except OSError as error:
        raise SecretFileError(f"the {what} {path} cannot be made: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
