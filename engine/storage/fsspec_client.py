"""Connections of fsspec: one for each call at a time, kept for the next one; errors as OSError.

    place = fsspec_place("sftp://host/data/a.csv")      ─► FsspecPlace(scheme, root, path)
    with told_by_fsspec(path): ...                      an error of the library is an OSError that names the path
    asked_of(place, work)                               work(file system, path within it), again where it breaks off
    with connection(place) as (system, inner): ...      for longer than a call, such as a file that is written

What opens a place is ``storage.fsspec.options``, a JSON text of options by scheme, or ``storage_options=`` of a call.
fsspec keeps a connection for each thread that ever asked, and never closes one. Here each call takes one, and at most
_IDLE_MAX of each place wait for the next call.

Held by: tests/storage/test_fsspec_files.py
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from engine.errors import ConfigurationError, PlanError
from engine.storage.store_client import StorePlace, settings_of
from engine.storage.store_counters import note

T = TypeVar("T")

#: schemes that fsspec knows, or a package beside it
FSSPEC_SCHEMES: Final = (
    "hdfs",
    "webhdfs",
    "sftp",
    "ssh",
    "ftp",
    "smb",
    "webdav",
    "dbfs",
    "oss",
    "oci",
    "hf",
    "gdrive",
    "dropbox",
    "box",
    "lakefs",
    "memory",
)
FSSPEC_OPTIONS: Final = "storage.fsspec.options"
_TRIES: Final = 4
_PAUSE_S: Final = 0.2
_IDLE_MAX: Final = 4
#: errors that say something of a file, after which the connection is as good as before
_OF_FILES: Final = frozenset(
    {
        errno.ENOENT,
        errno.EEXIST,
        errno.EACCES,
        errno.EPERM,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.ENOSPC,
        errno.EDQUOT,
    }
)

_lock: Final = threading.Lock()
#: connections that wait, by process, place and options; guarded by: _lock
_idle: dict[Hashable, list[Any]] = {}


class FsspecPlace(NamedTuple):
    """A file or a folder of a file system of fsspec."""

    scheme: str
    #: scheme, user, host and port
    root: str
    path: str


def fsspec_place(path: str) -> FsspecPlace:
    """Return the parts of a path; PlanError where a password is in it."""
    scheme, _, rest = path.partition("://")
    host = rest.partition("/")[0]
    if ":" in host.rpartition("@")[0]:
        shown = f"{scheme}://{host.rpartition('@')[2]}"
        raise PlanError(
            f"{shown}: a password does not belong into a path, which plans and logs show; pass"
            " storage_options={'password': ...}"
        )
    return FsspecPlace(scheme.lower(), f"{scheme.lower()}://{host}", path)


def _options_of(place: FsspecPlace) -> dict[str, Any]:
    text = settings_of(StorePlace(place.root, "")).get(FSSPEC_OPTIONS)
    try:
        found = json.loads(text) if text else {}
        return dict(found.get(place.scheme, {}))
    except (ValueError, TypeError, AttributeError):
        # The text may have passwords.
        raise ConfigurationError(
            f'{FSSPEC_OPTIONS} is no JSON of options by scheme, such as {{"sftp": {{"username": "me"}}}}'
        ) from None


def _class_of(place: FsspecPlace) -> Any:
    try:
        registry = importlib.import_module("fsspec.registry")
    except ImportError:
        raise PlanError(
            f"{place.path}: {place.scheme}:// needs the package fsspec; install it in this environment, and on all"
            " hosts of a cluster: pip install fsspec"
        ) from None
    try:
        return registry.get_filesystem_class(place.scheme)
    except (ImportError, ValueError) as error:
        needed = registry.known_implementations.get(place.scheme, {}).get("err") or str(error)
        raise PlanError(
            f"{place.path}: {place.scheme}:// needs another package, to be installed in this environment, and on all"
            f" hosts of a cluster: {needed}"
        ) from None


@contextlib.contextmanager
def connection(place: FsspecPlace) -> Iterator[tuple[Any, str]]:
    """Yield a connection and the path within it; it is kept unless the block fails."""
    made, options = _class_of(place), _options_of(place)
    # A process that was forked has the number of another one: those connections are not its own.
    key = os.getpid(), place.root, json.dumps(options, sort_keys=True)
    system = _taken(key)
    if system is None:
        found = {**made._get_kwargs_from_urls(place.path), **options}
        try:
            system = made(**found, skip_instance_cache=True)
        except TypeError as error:  # a name that it does not have
            raise ConfigurationError(f"{place.root}: {error}") from None
        system.dircache.use_listings_cache = False
    is_good = False
    try:
        yield system, made._strip_protocol(place.path).rstrip("/") or "/"
        is_good = True
    except OSError as error:
        is_good = error.errno in _OF_FILES or isinstance(error, FileNotFoundError | FileExistsError)
        raise
    finally:
        if is_good:
            _give_back(key, system)
        else:
            _close(system)


def _taken(key: Hashable) -> Any:
    with _lock:
        waiting = _idle.get(key)
        return waiting.pop() if waiting else None


def _give_back(key: Hashable, system: Any) -> None:
    with _lock:
        waiting = _idle.setdefault(key, [])
        if len(waiting) < _IDLE_MAX:
            waiting.append(system)
            return
    _close(system)


def close_connections() -> None:
    """Close all connections that wait."""
    with _lock:
        systems = [system for waiting in _idle.values() for system in waiting]
        _idle.clear()
    for system in systems:
        _close(system)


def _close(system: Any) -> None:
    for name in ("client", "ftp", "_session"):  # SSH, FTP, and what speaks HTTP
        close = getattr(getattr(system, name, None), "close", None)
        if close is not None:
            with contextlib.suppress(Exception):
                close()


@contextlib.contextmanager
def told_by_fsspec(path: str) -> Iterator[None]:
    """Raise an error of a library as OSError: what is wrong, the path, what to do; never a text with secrets."""
    try:
        yield
    except (PlanError, ConfigurationError):
        raise
    except Exception as error:
        raise _as_os_error(error, path) from None


def _as_os_error(error: Exception, path: str) -> OSError:
    name, root = type(error).__name__, fsspec_place(path).root
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "there is no such file", path)
    if isinstance(error, FileExistsError):
        return FileExistsError(errno.EEXIST, "there is one", path)
    if isinstance(error, socket.gaierror):
        return OSError(errno.EHOSTUNREACH, f"the name of the host of {root} is not known; look at it and at DNS", path)
    if isinstance(error, ConnectionRefusedError):
        return OSError(errno.ECONNREFUSED, f"nothing listens at {root}; look at host and port", path)
    if isinstance(error, TimeoutError):
        return OSError(errno.ETIMEDOUT, f"{root} does not answer in time; look at the network", path)
    code = str(error)[:3] if name in ("error_perm", "error_temp") else ""
    if code == "530" or "Authentication" in name or "BadHostKey" in name:
        advice = "pass storage_options={'username': ..., 'password': ...}, or a key that it knows"
        return OSError(errno.EACCES, f"{root} refuses the login ({name}); {advice}", path)
    if code in ("550", "553"):
        return OSError(errno.EACCES, f"the server refuses it ({code}): it is not there, or may not be used so", path)
    if isinstance(error, NotImplementedError):
        return OSError(errno.ENOTSUP, f"{fsspec_place(path).scheme}:// cannot do this", path)
    if isinstance(error, OSError) and error.errno in _OF_FILES:
        return OSError(error.errno, error.strerror or name, path)
    return OSError(errno.EIO, f"{root} cannot be reached, or breaks off ({name}); look at the network", path)


def asked_of(path: str, work: Callable[[Any, str], T]) -> T:
    """Return the answer to a request that may be repeated, and is so where it breaks off."""
    place = fsspec_place(path)
    for attempt in range(_TRIES):
        note(place.root, requests=1)
        try:
            with told_by_fsspec(path), connection(place) as (system, inner):
                return work(system, inner)
        except OSError as error:
            is_final = error.errno not in (errno.EIO, errno.ETIMEDOUT) or attempt == _TRIES - 1
            if is_final:
                raise
            time.sleep(random.SystemRandom().uniform(0, _PAUSE_S * 2**attempt))
    raise AssertionError("the last try returns or raises")
