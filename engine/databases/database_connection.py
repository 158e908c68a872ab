"""Connections to databases by ADBC, and URIs of which no password leaves the process.

    shown = kept_apart("postgresql://me:pw@host/db")         "postgresql://me@host/db"; this process keeps the password
    with connected(shown) as connection: ...                 in the same process, or where none is needed
    "env:SALES_URI"                                          each process looks the URI up in its own environment

A plan holds the shown URI alone, so that no log, page, REST answer or file of a job has a password. Texts of drivers
are passed on without what is secret. PostgreSQL's own means work in every process: PGPASSWORD, PGPASSFILE.
ADBC is imported at need; below 1.12 it changed values of NUMERIC, so that older packages are refused.

Held by: tests/databases/test_database_connection.py
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from engine.databases import other_drivers
from engine.errors import ConfigurationError, DataError, EngineError, ResourceError
from engine.storage.file_systems import is_file

if TYPE_CHECKING:
    from adbc_driver_manager import AdbcDatabase

    from engine.databases.adbc_connection import AdbcConnection

POSTGRESQL: Final = "postgresql"
SQLITE: Final = "sqlite"
#: the dialect of other drivers (``other_drivers``)
STANDARD: Final = "standard"
#: dialects by the scheme of a URI
_DIALECTS: Final = {"postgresql": POSTGRESQL, "postgres": POSTGRESQL, "sqlite": SQLITE}
_DRIVERS: Final = {POSTGRESQL: "adbc_driver_postgresql", SQLITE: "adbc_driver_sqlite"}
_VERSION_MIN: Final = (1, 12)
_OF_ENVIRONMENT: Final = "env:"
#: parameters of a URI that are secrets
_SECRETS: Final = frozenset({"password", "sslpassword"})
#: full URIs of this process, by what is shown of them
_FULL: Final[dict[str, str]] = {}
_HIDDEN: Final = "***"
#: SQLSTATE classes of errors that another attempt may not meet: connections, conflicts, resources, the server's end
_PASSING: Final = ("08", "40", "53", "57")
#: milliseconds that a statement waits for a lock of SQLite's file, as long as Python's own module waits
_BUSY_MS: Final = 5000
#: words of errors without a code after which another attempt may help: the connection is gone, the file is busy
_LOST: Final = re.compile(
    r"server closed the connection|no connection to the server|terminating connection|could not (receive|send) data"
    r"|SSL (SYSCALL|connection)|database is locked"
)


class DatabaseLostError(ResourceError, OSError):
    """A database does not answer, or does not let anyone in; also an OSError, as that of a file system is.

    What to do: check address, name and password of the database, and whether it runs.
    """


def kept_apart(uri: str, driver: str | None = None) -> str:
    """Return a URI without its password; the rest stays in this process. Raises: ConfigurationError."""
    if driver is not None:
        shown = other_drivers.shown_place(driver, uri)
        if shown != f"{other_drivers.PREFIX}{driver}:{uri}":
            _FULL[shown] = f"{other_drivers.PREFIX}{driver}:{uri}"
        return shown
    if uri.startswith(_OF_ENVIRONMENT):
        dialect_of(uri)
        _check_not_in_root(_from_environment(uri))
        return uri
    scheme = uri.partition("://")[0]
    if scheme not in _DIALECTS:
        known = (
            "uri= of a database begins with postgresql:// or sqlite://, or is env:NAME, an environment variable; tables"
            " of others are read with driver=, such as 'flightsql'"
        )
        raise ConfigurationError(f"{known}; {scheme}:// is not supported" if "://" in uri else known)
    if scheme == SQLITE:
        _check_not_in_root(uri)
        path = uri[len("sqlite://") :]
        # SQLAlchemy writes an absolute path behind three slashes.
        return f"{SQLITE}://{Path('/' + path.lstrip('/') if path.startswith('//') else path).absolute()}"
    parts = _parts(uri)
    if not _secrets_of(uri):
        return uri
    user, at, host = parts.netloc.rpartition("@")
    kept = [(key, value) for key, value in parse_qsl(parts.query, True) if key.lower() not in _SECRETS]
    query = urlencode(kept)
    shown = f"{scheme}://{user.partition(':')[0]}{at}{host}{parts.path}{'?' if query else ''}{query}"
    _FULL[shown] = uri
    return shown


def _check_not_in_root(uri: str) -> None:
    """Refuse ``sqlite:///x.db``: to others a file of the current folder, by its letters one of the root folder."""
    name = uri.removeprefix("sqlite:///")
    if name != uri and "/" not in name:
        raise ConfigurationError(
            f"database {uri}: three slashes begin a path of the root folder; write sqlite://{name} for a file of the"
            f" current folder, sqlite:////{name} for the one in the root folder"
        )


def _parts(uri: str) -> SplitResult:
    """Return the parts of a URI; one in which a password may lie elsewhere is refused, and not shown."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        parts = urlsplit("//@@")
    if parts.fragment or "@" in f"{parts.netloc.rpartition('@')[0]}{parts.path}{parts.query}":
        raise ConfigurationError(
            "uri= of a database cannot be taken apart: within user and password write / as %2F, ? as %3F, # as %23,"
            " @ as %40 (urllib.parse.quote(password, safe=''))"
        )
    return parts


def needs_password(uri: str) -> bool:
    """Whether this process keeps a password of a shown URI."""
    return uri in _FULL


def dialect_of(uri: str) -> str:
    """Return the dialect of a URI."""
    if uri.startswith(other_drivers.PREFIX):
        return STANDARD
    return _DIALECTS.get(_from_environment(uri).partition("://")[0]) or _no_scheme(uri)


def _no_scheme(uri: str) -> str:
    raise ConfigurationError(f"database {uri}: the variable holds no URI of postgresql:// or sqlite://")


def _from_environment(uri: str) -> str:
    before, of_environment, name = uri.rpartition(_OF_ENVIRONMENT)
    if not of_environment or (before and not before.startswith(other_drivers.PREFIX)):
        return uri
    if not os.environ.get(name):
        raise ConfigurationError(
            f"database {uri}: this process has no environment variable {name}; set it where the job is planned, and on"
            " a cluster for each TaskManager"
        )
    return before + os.environ[name]


def _secrets_of(uri: str) -> set[str]:
    """Return the passwords of a URI, as they are written and as they are meant."""
    if uri.startswith(SQLITE):
        return set()
    if uri.startswith(other_drivers.PREFIX):
        return other_drivers.secrets_of(uri)
    parts = _parts(uri)
    found = {parts.netloc.rpartition("@")[0].partition(":")[2]}
    found |= {value for key, value in parse_qsl(parts.query) if key.lower() in _SECRETS}
    found |= {pair.partition("=")[2] for pair in parts.query.split("&") if pair.partition("=")[0].lower() in _SECRETS}
    return {form for one in found for form in (one, unquote(one)) if form}


def _without_secrets(text: str, uri: str) -> str:
    for secret in sorted(_secrets_of(uri), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _driver(dialect: str) -> ModuleType:
    """Return the package of a driver, of another than ours the driver manager. Raises: ConfigurationError."""
    package = _DRIVERS.get(dialect, "adbc_driver_manager")
    advice = "install it: pip install 'drey-engine[databases]'"
    try:
        driver = importlib.import_module(package)
    except ImportError:
        raise ConfigurationError(f"databases need the package {package.replace('_', '-')}; {advice}") from None
    version = str(driver.__version__)
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _VERSION_MIN:
        raise ConfigurationError(
            f"{package.replace('_', '-')} {version} changes values of NUMERIC; it must be 1.12 or newer: {advice}"
        )
    return driver


@contextmanager
def connected(
    uri: str, *, has_password: bool = False, in_transaction: bool = False, asks_types: bool = False
) -> Iterator[AdbcConnection]:
    """Have a connection to a shown URI, opened as by ``open_connection``; what fails meanwhile is ``told``."""
    connection = open_connection(uri, has_password=has_password, in_transaction=in_transaction, asks_types=asks_types)
    try:
        with told(uri):
            yield connection
    finally:
        connection.close()


def open_connection(
    uri: str, *, has_password: bool = False, in_transaction: bool = False, asks_types: bool = False
) -> AdbcConnection:
    """Return a connection to a shown URI.

    Args: has_password: the client was given one. in_transaction: statements are of a transaction, which ``commit``
    ends; PostgreSQL is asked for its types again only if ``asks_types``, so that those that users made are unknown.
    Raises: ConfigurationError, ResourceError (another attempt may help), DataError.
    """
    if has_password and uri not in _FULL:
        raise ConfigurationError(
            f"database {uri}: the password in uri= stays in the process that plans the job; on a cluster pass"
            " uri='env:NAME' and set that variable for each process, or use PGPASSFILE there"
        )
    full = _full(uri)
    dialect = dialect_of(full)
    driver = _driver(dialect)
    from engine.databases.adbc_connection import AdbcConnection

    with told(uri, is_open=False):
        if dialect == STANDARD:
            return AdbcConnection(other_drivers.opened(full), in_transaction=in_transaction, is_shared=False)
        is_shared = dialect == POSTGRESQL and in_transaction and not asks_types
        if dialect == SQLITE:
            database = driver.connect(_place(full, is_writing=in_transaction))
        else:
            database = _kept_database(_in_utf8(full)) if is_shared else driver.connect(_in_utf8(full))
        connection = AdbcConnection(database, in_transaction=in_transaction, is_shared=is_shared)
        if dialect == SQLITE:
            _wait_where_busy(connection)
        return connection


def _wait_where_busy(connection: AdbcConnection) -> None:
    """Have statements wait for others that write to the file; the driver's own second is short on a busy machine."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    except BaseException:
        connection.close()
        raise


def _in_utf8(uri: str) -> str:
    """Return a URI of PostgreSQL whose texts come and go as UTF-8, whatever the database's own encoding is."""
    return f"{uri}{'&' if '?' in uri else '?'}client_encoding=UTF8"


@lru_cache(maxsize=8)
def _kept_database(uri: str) -> AdbcDatabase:
    """Return the driver's knowledge of a server, which outlives connections: asking takes 50 ms of processor time."""
    database: AdbcDatabase = _driver(POSTGRESQL).connect(uri)
    return database


@contextmanager
def told(uri: str, *, is_open: bool = True) -> Iterator[None]:
    """Raise what a driver raises as an error of the engine, without secrets."""
    full = _full(uri)
    dialect = dialect_of(full)
    _driver(dialect)
    from engine.databases.adbc_connection import Error

    try:
        yield
    except EngineError:
        raise
    except (Error, OSError, ValueError) as error:
        said = _without_secrets(str(error).strip(), full)
        raise _failure(error, f"database {uri}: {said}", is_open=is_open, dialect=dialect) from None


def _full(uri: str) -> str:
    """Return the URI behind a shown one. Raises: ConfigurationError."""
    full = _FULL.get(uri) or _from_environment(uri)
    other_drivers.check_whole(full)
    return full


def database_file(uri: str) -> str:
    """Return the path of SQLite's file."""
    return _from_environment(uri)[len("sqlite://") :]


def _place(uri: str, *, is_writing: bool) -> str:
    """Return a database file for SQLite, which is opened for reading alone where nothing is written."""
    path = uri[len("sqlite://") :]
    if not is_writing and not is_file(path):
        raise ConfigurationError(f"database {uri}: there is no file {path}")
    return f"file:{quote(path)}?mode={'rwc' if is_writing else 'ro'}"


def _failure(error: Exception, text: str, *, is_open: bool, dialect: str) -> EngineError:
    if not is_open:
        return DatabaseLostError(f"{text}; is the server there, and does it let this user in?")
    state = getattr(error, "sqlstate", None) or "".join(re.findall(r"SQLSTATE: (\w{5})", str(error))[:1])
    # While rows are streamed, the driver leaves out the code: what the server says of the statement is an ERROR.
    is_lost = dialect == POSTGRESQL and isinstance(error, OSError) and "ERROR:" not in str(error)
    is_lost = is_lost or _LOST.search(str(error)) is not None
    is_passing = state.startswith(_PASSING) if state else is_lost
    return DatabaseLostError(text) if is_passing else DataError(text)
