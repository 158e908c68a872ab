"""Databases of other ADBC drivers, which a call names by ``driver=``: tables and queries of theirs are read.

    adbc:flightsql:grpc://host:31337      adbc:duckdb:/folder/file.duckdb      adbc:flightsql:env:NAME

This is what plans hold, and logs show. A driver is a Python package ``adbc_driver_<name>`` that connects to a URI, or
whatever the driver manager finds by that name: a manifest, or a shared library. Nothing is known of the places of most
drivers, so that one in which a secret may lie is not shown at all. Options of a driver come as parameters ``adbc.…`` of
the URI. What is not shown has a mark in its place, which tells places apart in this process alone, and is never
connected to:

    adbc:flightsql:grpc://host:31337#hidden-1b63c0d1      adbc:snowflake:hidden-0763440d

Names are quoted as the standard of SQL has them; drivers of databases that quote them otherwise are refused.

Held by: tests/databases/test_other_drivers.py
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from engine.errors import ConfigurationError

if TYPE_CHECKING:
    from adbc_driver_manager import AdbcDatabase

PREFIX: Final = "adbc:"
#: databases whose names are in backticks or brackets
_QUOTES_OTHERWISE: Final = ("bigquery", "clickhouse", "databricks", "hive", "mssql", "mysql", "singlestore", "spark")
_NAME: Final = re.compile(r"[\w./+-]+")
#: places that are paths, or hosts and what is on them
_OPEN_PATH: Final = re.compile(r"[\w./~ -]*|:memory:")
_OPEN_NETLOC: Final = re.compile(r"[\w.:\[\]-]*")
#: marks of what is not shown, and the key of this process by which they are made, so that no password can be tried
_MARKED: Final = re.compile(r"(?:.*#)?hidden-[0-9a-f]{8}", re.DOTALL)
_MARK_KEY: Final = os.urandom(16)


def shown_place(driver: str, uri: str) -> str:
    """Return the place of a driver without secrets. Raises: ConfigurationError."""
    if driver in ("postgresql", "sqlite"):
        raise ConfigurationError(f"driver={driver!r}: leave it out; the URI of this database says its driver")
    if not _NAME.fullmatch(driver):
        raise ConfigurationError(f"driver={driver!r} is no name of an ADBC driver, such as 'flightsql' or 'duckdb'")
    if any(word in driver.lower() for word in _QUOTES_OTHERWISE):
        raise ConfigurationError(
            f"driver={driver!r}: its database quotes names in its own way, which is not supported; read the rows with"
            " the driver's cursor.fetch_arrow_table() and pass them to from_arrow"
        )
    return f"{PREFIX}{driver}:{_shown(uri)}"


def _shown(uri: str) -> str:
    """Return a URI; in place of what is not shown of it, or of all of it, a mark."""
    if _OPEN_PATH.fullmatch(uri) or uri.startswith("env:"):
        return uri
    mark = f"hidden-{hashlib.blake2b(uri.encode(), digest_size=4, key=_MARK_KEY).hexdigest()}"
    parts = _parts(uri)
    if parts is None:
        return mark
    shown = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return shown if shown == uri else f"{shown}#{mark}"


def check_whole(place: str) -> None:
    """Raise ConfigurationError if a place has a mark for what is not shown of it."""
    if place.startswith(PREFIX) and _MARKED.fullmatch(place.split(":", 2)[2]):
        raise ConfigurationError(
            f"database {place}: this process does not know the place that this mark stands for; pass the whole uri= to"
            " read_database in the process that runs the job, or uri='env:NAME' and set that variable for each process"
        )


def _parts(uri: str) -> SplitResult | None:
    """Return the parts of a URI of a host, None for any other text."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    is_of_host = "://" in uri and _OPEN_NETLOC.fullmatch(parts.netloc.rpartition("@")[2]) and "@" not in parts.path
    return parts if is_of_host and not parts.fragment else None


def secrets_of(full: str) -> set[str]:
    """Return the texts of a place that are not shown."""
    _, _, uri = full.split(":", 2)
    parts = _parts(uri)
    if _OPEN_PATH.fullmatch(uri):
        return set()
    if parts is None:
        return {uri}
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    in_header = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode().rstrip("=")
    found = {password, in_header, parts.query, *(value for _, value in parse_qsl(parts.query))}
    return {form for one in found for form in (one, unquote(one)) if form}


def opened(full: str) -> AdbcDatabase:
    """Return the database of a place. Raises: ConfigurationError, and what the driver raises."""
    from adbc_driver_manager import AdbcDatabase

    _, driver, uri = full.split(":", 2)
    place, options = _options_of(uri)
    try:
        package = importlib.import_module(f"adbc_driver_{driver}") if driver.isidentifier() else None
    except ImportError:
        package = None
    if package is None:
        return _found_by_manager(driver, place, options)
    if driver == "duckdb":
        # Its own call would make a file that is missing, and keep other processes from reading one.
        read_only = {"path": place, "access_mode": "READ_ONLY", **options}
        return AdbcDatabase(driver=package.driver_path(), entrypoint="duckdb_adbc_init", **read_only)
    if not hasattr(package, "connect"):
        raise ConfigurationError(f"driver={driver!r}: the package adbc_driver_{driver} has no connect()")
    database: AdbcDatabase = package.connect(place, options) if options else package.connect(place)
    return database


def _found_by_manager(driver: str, place: str, options: dict[str, str]) -> AdbcDatabase:
    from adbc_driver_manager import AdbcDatabase, AdbcStatusCode, Error

    try:
        return AdbcDatabase(driver=driver, uri=place, **options)
    except Error as error:
        if error.status_code != AdbcStatusCode.NOT_FOUND or "load" not in str(error):
            raise
        raise ConfigurationError(
            f"there is no driver {driver!r} in this process: install its package (pip install adbc-driver-{driver}), or"
            " pass the path of its shared library; on a cluster for each TaskManager, too"
        ) from None


def _options_of(uri: str) -> tuple[str, dict[str, str]]:
    """Return a URI without what the driver takes as options: user and password, and parameters ``adbc.…``."""
    parts = _parts(uri)
    if parts is None:
        return uri, {}
    options, rest = {}, []
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key.startswith("adbc."):
            options[key] = value
        else:
            rest.append((key, value))
    user, at, host = parts.netloc.rpartition("@")
    if at:
        name, _, password = user.partition(":")
        options |= {"username": unquote(name), "password": unquote(password)}
    return urlunsplit((parts.scheme, host, parts.path, urlencode(rest), "")), options
