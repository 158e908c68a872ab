"""Tables by what a user passes, and the snapshot of one that is read.

    table "db.name", catalog=            a pyiceberg Catalog, the name of one that pyiceberg's configuration has, its
                                         properties ("name" among them), or a folder (``folder_catalog``)
    table "…/x.metadata.json", "…/x"     a metadata file, or a table's folder: the newest metadata in it
    table                                a pyiceberg Table

    storage_options= of a call opens the bucket of the folder, of the catalog's warehouse, and of the table. The
    engine's file systems (``store_io``) read the metadata then, and pyiceberg's need no settings of their own.

    snapshot_id= as_of= branch=          one of them; as_of: a datetime (UTC without a zone), or a text of ISO 8601

Held by: tests/iceberg_tables/test_read_iceberg.py
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from engine.errors import ConfigurationError, DataError, EngineError, PlanError, ResourceError
from engine.files.paths import is_of_store, local_path
from engine.files.store_access import GivenOptions, StoreAccess, is_in_store
from engine.iceberg_tables.library import require
from engine.iceberg_tables.metadata_files import newest_metadata
from engine.storage.file_systems import is_folder
from engine.storage.store_errors import REFUSALS

_ENDING: Final = ".metadata.json"
#: property of a catalog that names the class which opens files of metadata
IO_CLASS: Final = "py-io-impl"
#: properties of a table that are places of its files
_PLACES: Final = ("write.data.path", "write.metadata.path")


@contextmanager
def placed_errors(call: str, table: str) -> Iterator[None]:
    """Raise what pyiceberg says of a table as an error of the engine, with the table's name."""
    from pyiceberg.exceptions import (
        NoSuchIcebergTableError,
        NoSuchNamespaceError,
        NoSuchTableError,
        ServiceUnavailableError,
        ValidationError,
    )

    place = f"{call}({table!r})"
    try:
        yield
    except EngineError:
        raise
    except (NoSuchTableError, NoSuchIcebergTableError, NoSuchNamespaceError) as error:
        raise PlanError(f"{place}: there is no such table in the catalog ({_first_line(error)})") from None
    except FileNotFoundError as error:
        raise PlanError(f"{place}: a file of the table's metadata is missing ({_first_line(error)})") from None
    except (ServiceUnavailableError, ConnectionError) as error:
        raise ResourceError(f"{place}: the catalog does not answer ({_first_line(error)}); try again") from None
    except (ValidationError, ValueError, NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and is_of_store(error):
            kind = PlanError if error.errno in REFUSALS else ResourceError
            raise kind(f"{place}: {error.filename}: {error.strerror}") from None
        if type(error).__module__ == "requests.exceptions":  # of the client of a REST catalog
            raise ResourceError(f"{place}: the catalog does not answer ({_first_line(error)}); try again") from None
        raise DataError(f"{place}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def load_table(table: Any, catalog: Any, stores: StoreAccess) -> Any:
    """Return a pyiceberg Table, whose store is open.

    Raises: PlanError (no such table), ConfigurationError (arguments, no catalog).
    """
    require(stores.call)
    found = _loaded(table, catalog, stores)
    open_table(found.metadata, stores)
    return found


def open_table(metadata: Any, stores: StoreAccess) -> None:
    """Open the stores of a table's files by the options of a call."""
    others = [text for name, text in metadata.properties.items() if name in _PLACES and is_in_store(text)]
    stores.use_for(metadata.location, *others)


def _loaded(table: Any, catalog: Any, stores: StoreAccess) -> Any:
    call = stores.call
    if not isinstance(table, str | os.PathLike):
        if hasattr(table, "metadata_location") and hasattr(table, "scan"):
            return _with_engine_files(table) if stores.has_options else table
        raise ConfigurationError(
            f"{call}: table= is a name, a path, or a pyiceberg Table, and not {type(table).__name__}"
        )
    name = os.fspath(table)
    with placed_errors(call, name):
        if catalog is not None:
            check_name(name, call)
            return load_catalog(catalog, stores).load_table(name)
        if name.endswith(_ENDING) or "/" in name or is_folder(local_path(name, call)):
            stores.use_for(local_path(name, call))
            return _static_table(local_path(name, call), call)
        check_name(name, call, "there is no folder of this name, and ")
        return load_catalog("default", stores).load_table(name)


def check_name(name: str, call: str, before: str = "") -> None:
    """Raise ConfigurationError for a name that no table of a catalog has."""
    if "." not in name:
        raise ConfigurationError(
            f"{call}({name!r}): {before}a table of a catalog has its namespace before its name: 'sales.orders'"
        )


def load_catalog(catalog: Any, stores: StoreAccess) -> Any:
    """Return a pyiceberg Catalog, whose store is open. Raises: ConfigurationError."""
    found = catalog_of(catalog, stores.call)
    place = getattr(found, "properties", {}).get("warehouse") or ""
    if is_in_store(place):
        stores.use_for(place)
    else:
        stores._replace(given=GivenOptions()).use_for()
    return _with_engine_files(found) if stores.has_options and not hasattr(found, "folder") else found


def _with_engine_files(found: Any) -> Any:
    """Return a catalog or a table whose metadata the engine's file systems read and write; the given one stays."""
    from engine.iceberg_tables.store_io import StoreIO

    own = copy.copy(found)
    if hasattr(own, "metadata_location"):
        own.io = StoreIO(dict(own.io.properties))
    else:
        own.properties = {**own.properties, IO_CLASS: f"{StoreIO.__module__}.{StoreIO.__name__}"}
    return own


def catalog_of(catalog: Any, call: str) -> Any:
    """Return a pyiceberg Catalog. Raises: ConfigurationError."""
    require(call)
    from pyiceberg import catalog as catalogs

    if hasattr(catalog, "load_table"):
        return catalog
    try:
        if isinstance(catalog, dict):
            properties = dict(catalog)
            return catalogs.load_catalog(properties.pop("name", "default"), **properties)
        text = os.fspath(catalog)
        if "/" in text or is_folder(local_path(text, call)):
            from engine.iceberg_tables.folder_catalog import FolderCatalog

            return FolderCatalog(local_path(text, call))
        return catalogs.load_catalog(text)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{call}: the catalog cannot be opened ({_first_line(error)}); catalog= is a pyiceberg Catalog, its name in"
            " pyiceberg's configuration, its properties, such as {'type': 'sql', 'uri': ..., 'warehouse': ...}, or a"
            " folder"
        ) from None


def _static_table(place: str, call: str) -> Any:
    """Return the table of a metadata file, or of a folder."""
    from pyiceberg.table import StaticTable

    if not place.endswith(_ENDING):
        found = newest_metadata(place)
        if found is None:
            raise PlanError(f"{call}({place!r}): the folder has no metadata/ with a file *{_ENDING}; is it a table's?")
        place = found
    if not is_in_store(place):
        return StaticTable.from_metadata(place)
    from engine.iceberg_tables.store_io import StoreIO

    return StaticTable.from_metadata(place, {IO_CLASS: f"{StoreIO.__module__}.{StoreIO.__name__}"})


def snapshot_of(table: Any, call: str, snapshot_id: int | None, as_of: Any, branch: str | None) -> Any:
    """Return the snapshot that is read; None: a table without rows. Raises: PlanError, ConfigurationError."""
    if sum(each is not None for each in (snapshot_id, as_of, branch)) > 1:
        raise ConfigurationError(f"{call}: pass one of snapshot_id=, as_of= and branch=")
    if snapshot_id is not None:
        if isinstance(snapshot_id, bool) or not isinstance(snapshot_id, int):
            raise ConfigurationError(
                f"{call}: snapshot_id={snapshot_id!r}: pass a number; branch= takes names of branches and tags"
            )
        found = table.metadata.snapshot_by_id(snapshot_id)
        if found is None:
            known = ", ".join(str(each.snapshot_id) for each in table.metadata.snapshots[-5:]) or "none"
            raise PlanError(f"{call}: the table has no snapshot {snapshot_id}; the last ones are {known}")
        return found
    if branch is not None:
        found = table.metadata.snapshot_by_name(branch)
        if found is None:
            known = ", ".join(sorted(table.metadata.refs)) or "none"
            raise PlanError(f"{call}: the table has no branch or tag {branch!r}; there are {known}")
        return found
    if as_of is not None:
        moment = _moment(as_of, call)
        found = table.snapshot_as_of_timestamp(int(moment.timestamp() * 1000))
        if found is None:
            raise PlanError(f"{call}: the table had no snapshot at {moment.isoformat()}")
        return found
    return table.metadata.current_snapshot()


def _moment(as_of: Any, call: str) -> datetime:
    try:
        found = as_of if isinstance(as_of, datetime) else datetime.fromisoformat(as_of)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"{call}: as_of={as_of!r}: pass a datetime, or a text such as '2026-11-28 12:00:00'"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def schema_of(table: Any, snapshot: Any, *, is_past: bool) -> Any:
    """Return the schema of a snapshot that was asked for, else the table's present one."""
    if is_past and snapshot is not None and snapshot.schema_id is not None:
        return table.metadata.schema_by_id(snapshot.schema_id) or table.schema()
    return table.schema()
