"""The library of the extra ``delta``, loaded where a table's log is read or committed to.

    deltalake = library("read_delta")
    with told("read_delta", place): ...       what it says of a table is an error of the engine, with the table's name
    storage_options(place)                    this process's settings of a store, by the names that it has for them

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from engine.errors import ConfigurationError, DataError, EngineError, PlanError, ResourceError
from engine.storage.file_systems import LOCAL, file_system_of
from engine.storage.store_client import place_of, settings_of
from engine.storage.store_errors import REFUSALS, Explained, explained_text

#: bytes that deltalake takes once a table has been written and read: its library is mapped, and how much of it is
#: resident depends on the file system (9 MiB are its own, 28 to 35 MiB of the library were seen)
DELTALAKE_BYTES: Final = 44 << 20
_VERSION_MIN: Final = (1, 6)
_TEXT_MAX: Final = 400
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_ADVICE: Final = "install it: pip install 'drey-engine[delta]'"


def library(call: str) -> Any:
    """Return deltalake. Raises: ConfigurationError where it is missing, or too old."""
    try:
        found = importlib.import_module("deltalake")
    except ImportError:
        raise ConfigurationError(f"{call} without the package deltalake; {_ADVICE}") from None
    if tuple(map(int, re.findall(r"\d+", found.__version__)[:2])) < _VERSION_MIN:
        raise ConfigurationError(f"{call} with deltalake {found.__version__}; it must be 1.6 or newer: {_ADVICE}")
    return found


@contextmanager
def told(call: str, place: str) -> Iterator[None]:
    """Raise an error of the library as one of the engine, with the table's place."""
    from deltalake import exceptions

    try:
        yield
    except EngineError:
        raise
    except exceptions.TableNotFoundError:
        raise PlanError(
            f"{call}({place!r}): it is no Delta table, since it has no folder _delta_log with a first version"
        ) from None
    except (exceptions.DeltaProtocolError, exceptions.SchemaMismatchError) as error:
        raise DataError(f"{call}({place!r}): {plain_text(error)}") from None
    except (OSError, exceptions.DeltaError) as error:
        if (found := _of_store(place, error)) is not None:
            kind = PlanError if found.number in REFUSALS else ResourceError
            raise kind(f"{call}({place!r}): {found.message}") from None
        raise ResourceError(f"{call}({place!r}): the log cannot be used: {plain_text(error)}") from None


def _of_store(place: str, error: Exception) -> Explained | None:
    """Return the meaning of an error of a store; None: it is another one of the library."""
    if file_system_of(place).objects is None:
        return None
    return explained_text(_COLOURS.sub("", str(error)), place_of(place).family)


def plain_text(error: Exception) -> str:
    """Return the text of an error on one line: its first one is often the least telling."""
    return " ".join(_COLOURS.sub("", str(error)).split())[:_TEXT_MAX] or type(error).__name__


def storage_options(place: str) -> dict[str, str] | None:
    """Return this process's settings of a table's store; None for a table of this machine."""
    if file_system_of(place) is LOCAL:
        return None
    if file_system_of(place).objects is None:
        raise PlanError(f"{place}: a Delta table is in a folder of this machine, or in an object store")
    from engine.storage.store_options import library_options

    found = settings_of(place_of(place)).get(f"storage.{place_of(place).family}.ca-file")
    if found is not None and not {"SSL_CERT_FILE", "SSL_CERT_DIR"} & {*os.environ}:
        raise ConfigurationError(
            f"{place}: deltalake, which reads and commits the log, takes no storage.{place_of(place).family}.ca-file:"
            f" set the variable SSL_CERT_FILE={found} for each process as well"
        )
    return library_options(place)
