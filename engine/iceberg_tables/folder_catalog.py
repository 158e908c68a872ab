"""FolderCatalog: a catalog that is a folder; each namespace is a folder in it, each table one in that.

    lake/sales/orders/metadata/v1.metadata.json  v2.metadata.json  version-hint.text
    lake/sales/orders/data/…

A version is committed by making its metadata file, which one writer alone can do (``create_if_absent``: a hard link in
a file system, a conditional put in a store). Other readers (Spark's Hadoop catalog, DuckDB, Polars) go by the hint, or
by the highest version. Tables cannot be renamed.

Source: Iceberg's specification, "File System Tables".
Held by: tests/iceberg_tables/test_folder_catalog.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pyiceberg.catalog import Catalog, MetastoreCatalog, PropertiesUpdateSummary
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from engine.iceberg_tables.metadata_files import HINT, METADATA, newest_metadata
from engine.iceberg_tables.store_io import StoreIO
from engine.storage.file_systems import LOCAL, file_system_of, is_folder

_VERSION = re.compile(r".*/v?(\d+)")


def _response(metadata: Any, location: str) -> CommitTableResponse:
    return CommitTableResponse(**{"metadata": metadata, "metadata-location": location})


class FolderCatalog(MetastoreCatalog):
    """See the module's text."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, warehouse=folder)
        self.folder = folder
        self._files = file_system_of(folder)

    def _load_file_io(self, properties: Any = (), location: str | None = None) -> FileIO:
        return load_file_io(properties, location) if self._files is LOCAL else StoreIO(dict(properties))

    # ---- tables

    def load_table(self, identifier: Any) -> Table:
        """Return a table as it is now."""
        place = self._place(identifier)
        found = newest_metadata(place)
        if found is None:
            raise NoSuchTableError(f"Table does not exist: {'.'.join(Catalog.identifier_to_tuple(identifier))}")
        io = self._load_file_io(self.properties, found)
        metadata = FromInputFile.table_metadata(io.new_input(found))
        return Table(Catalog.identifier_to_tuple(identifier), metadata, found, io, self)

    def create_table(
        self,
        identifier: Any,
        schema: Any,
        location: str | None = None,
        partition_spec: Any = UNPARTITIONED_PARTITION_SPEC,
        sort_order: Any = UNSORTED_SORT_ORDER,
        properties: Any = (),
    ) -> Table:
        """Make a table without rows, in the folder of its name."""
        place = self._place(identifier)
        if location is not None and location != place:
            raise ValueError(f"a table of a folder's catalog lies in {place}")
        converted = self._convert_schema_if_needed(schema)
        staged = self._create_staged_table(identifier, converted, place, partition_spec, sort_order, dict(properties))
        self._write_version(place, 1, staged.metadata, TableAlreadyExistsError)
        return self.load_table(identifier)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """Commit a version behind the present one; CommitFailedException where another writer was first."""
        identifier = table.name()
        place = self._place(identifier)
        current = None if newest_metadata(place) is None else self.load_table(identifier)
        staged = self._update_and_stage_table(current, identifier, requirements, updates)
        number = 1
        if current is not None:
            if staged.metadata == current.metadata:
                return _response(current.metadata, current.metadata_location)
            version = _VERSION.match(current.metadata_location)
            assert version is not None
            number = int(version[1]) + 1
        location = self._write_version(place, number, staged.metadata, CommitFailedException)
        return _response(staged.metadata, location)

    def _write_version(self, place: str, number: int, metadata: Any, conflict: type[Exception]) -> str:
        """Make the metadata file of a version, and the hint; the exception ``conflict`` where it is there."""
        folder = f"{place}/{METADATA}"
        if self._files.folders is not None:
            self._files.folders.make_missing(folder)
        path = f"{folder}/v{number}.metadata.json"
        if not self._files.create_if_absent(path, metadata.model_dump_json().encode()):
            raise conflict(f"version {number} of {place} was committed by another writer")
        self._files.replace(f"{folder}/{HINT}", str(number).encode())
        return path

    def drop_table(self, identifier: Any) -> None:
        """Remove a table, with its files."""
        self.load_table(identifier)
        self._files.delete_tree(self._place(identifier))

    def _place(self, identifier: Any) -> str:
        names = Catalog.identifier_to_tuple(identifier)
        if len(names) < 2 or any(name in ("", ".", "..") or "/" in name for name in names):
            raise ValueError(f"{'.'.join(names)} is no name of a namespace and a table")
        return "/".join((self.folder, *names))

    def list_tables(self, namespace: Any) -> list[Any]:
        """Return the tables of a namespace."""
        names = self._namespace(namespace)
        return [(*names, name) for name, is_table in self._inside(names) if is_table]

    def _inside(self, names: Sequence[str]) -> list[tuple[str, bool]]:
        """Return the folders in one, and whether each is a table."""
        place = "/".join((self.folder, *names))
        found = sorted((each.name, each.path) for each in self._files.entries(place) if each.is_folder)
        return [(name, is_folder(f"{path}/{METADATA}")) for name, path in found]

    # ---- namespaces

    def namespace_exists(self, namespace: Any) -> bool:
        """Return whether there is a namespace; in a store there is any, since it has no folders."""
        place = "/".join((self.folder, *Catalog.identifier_to_tuple(namespace)))
        return self._files.folders is None or is_folder(place)

    def _namespace(self, namespace: Any) -> tuple[str, ...]:
        names = Catalog.identifier_to_tuple(namespace)
        if not self.namespace_exists(names):
            raise NoSuchNamespaceError(f"Namespace does not exist: {'.'.join(names)}")
        return names

    def create_namespace(self, namespace: Any, properties: Any = ()) -> None:
        """Make a namespace, which has no properties."""
        place = "/".join((self.folder, *Catalog.identifier_to_tuple(namespace)))
        if self._files.folders is not None and not self._files.folders.make_missing(place):
            raise NamespaceAlreadyExistsError(f"Namespace {namespace} already exists")

    def drop_namespace(self, namespace: Any) -> None:
        """Remove a namespace without tables."""
        if self._files.folders is not None:
            self._files.folders.remove_empty(["/".join((self.folder, *self._namespace(namespace)))])

    def list_namespaces(self, namespace: Any = ()) -> list[Any]:
        """Return the namespaces in the folder, or in a namespace."""
        names = Catalog.identifier_to_tuple(namespace) if namespace else ()
        return [(*names, name) for name, is_table in self._inside(names) if not is_table]

    def load_namespace_properties(self, namespace: Any) -> Any:
        """Return no properties."""
        self._namespace(namespace)
        return {}

    # ---- what a folder has not

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplementedError(f"a folder's catalog has no {what}")

    def rename_table(self, from_identifier: Any, to_identifier: Any) -> Table:
        """Refuse: a table's metadata has its place."""
        self._refuse("renamed tables")

    def register_table(self, identifier: Any, metadata_location: str, overwrite: bool = False) -> Table:
        """Refuse: a table lies in the folder of its name."""
        self._refuse("registered tables")

    def update_namespace_properties(
        self, namespace: Any, removals: Any = None, updates: Any = ()
    ) -> PropertiesUpdateSummary:
        """Refuse: a folder has no properties."""
        self._refuse("properties of namespaces")

    def list_views(self, namespace: Any) -> list[Any]:
        """Return no views."""
        return []

    def view_exists(self, identifier: Any) -> bool:
        """Return False: there are no views."""
        return False

    def drop_view(self, identifier: Any) -> None:
        """Refuse: there are no views."""
        self._refuse("views")

    def register_view(self, identifier: Any, metadata_location: str) -> Any:
        """Refuse: there are no views."""
        self._refuse("views")

    def load_view(self, identifier: Any) -> Any:
        """Refuse: there are no views."""
        self._refuse("views")
