"""A Delta table that jobs change: its files now, the rows of some of them, and the sink that replaces these.

    DeltaTable("folder").at_present("merge_into", configuration) -> DeltaVersion (``engine.formats.table_target``)

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from engine.delta_tables.delta_source import (
    bounded_columns,
    delta_source,
    file_rows,
    files_between,
    has_deleted_rows,
    plain_schema_of,
    with_file_column,
    with_paths,
    with_place_column,
)
from engine.delta_tables.table_changes import changed_rows
from engine.delta_tables.table_commit import opened, table_files
from engine.delta_tables.table_log import file_place
from engine.delta_tables.table_rules import check_default, check_removal, check_writable, indexed_columns
from engine.delta_tables.table_write import TableWrite, encoded, required_names
from engine.errors import PlanError
from engine.files.paths import local_path
from engine.files.store_access import GivenOptions, StoreAccess
from engine.formats.source_format import FoundSource
from engine.formats.table_target import TableFile, TableOutput
from engine.graph.merge_action import FILE
from engine.graph.source_spec import FormatSource, SinkSpec, SourceStatistics
from engine.parquet.patched_file import are_patched

if TYPE_CHECKING:
    from engine.config.loader import Configuration


class DeltaTable(NamedTuple):
    """A table, by its folder."""

    path: str
    given: GivenOptions = GivenOptions()

    def changes(self, since: int | None, environment: Any) -> Any:
        """Return the rows that versions have changed, that of ``since`` among them."""
        place = local_path(self.path, "read_changes")
        StoreAccess(environment.configuration, self.given, "read_changes").use_for(place)
        return environment.from_arrow(changed_rows(place, 0 if since is None else since))

    def at_present(self, call: str, configuration: Configuration) -> DeltaVersion:
        """Return the last version."""
        place = local_path(self.path, call).rstrip("/")
        StoreAccess(configuration, self.given, call).use_for(place)
        table = opened(place, call)
        if table is None:
            raise PlanError(f"{call}: {place} is no Delta table; write_delta makes one")
        check_writable(table, place, call)
        found = delta_source(place, table.version())
        known = json.loads(table.schema().to_json())
        files = {}
        for each in table_files(table):
            path = file_place(place, each["path"])
            files[path] = each["path"], TableFile(path, each["size_bytes"], str(each["texts"]))
        metadata = table.metadata()
        has_vectors = metadata.configuration.get("delta.enableDeletionVectors") == "true" and "deletionVectors" in (
            table.protocol().writer_features or ()
        )
        keys = tuple(metadata.partition_columns)
        keeps_changes = metadata.configuration.get("delta.enableChangeDataFeed") == "true"
        return DeltaVersion(
            place,
            table.version(),
            found,
            known,
            keys,
            files,
            has_vectors,
            keeps_changes,
            metadata.configuration,
            indexed_columns(metadata.configuration, f"{call}({place!r})"),
        )


class DeltaVersion(NamedTuple):
    """A version of a table."""

    name: str
    version: int
    found: FoundSource
    #: the schema of Delta
    known: dict[str, Any]
    partition_by: tuple[str, ...]
    #: path in the log and file, by the file's place
    log_files: dict[str, tuple[str, TableFile]]
    #: flag of a table that is to have deletion vectors
    has_vectors: bool
    #: flag of a change data feed
    keeps_changes: bool
    #: properties
    configuration: dict[str, str]
    #: columns of which files have statistics (``TableWrite``)
    indexed: tuple[int, tuple[str, ...]]

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.found[2]

    def default_of(self, name: str) -> None:
        """Return None: null. Raises: SchemaError for a default of the table, which is an expression of SQL."""
        check_default(self.known, name, "merge_into")

    @property
    def keeps_ids(self) -> bool:
        """Tables whose rows have ids are not written."""
        return False

    def check_removal(self, call: str) -> None:
        """Raise PlanError where no row may change or go."""
        check_removal(self.configuration, self.name, call)

    @property
    def checks_matches(self) -> bool:
        """The commit counts rows."""
        return True

    def files(self) -> Sequence[TableFile]:
        """Return the files."""
        return [file for _, file in self.log_files.values()]

    @property
    def deletes_rows(self) -> bool:
        """Whether rows are deleted by their places."""
        return self.has_vectors

    def rows(
        self,
        data_set: Callable[[FoundSource], Any],
        paths: Collection[str] | None = None,
        *,
        has_file: bool = False,
        has_place: bool = False,
        moves: bool = False,
    ) -> Any:
        """Return the rows of some files, None for all."""
        spec, statistics = self.source_of(paths)
        if has_file:
            spec = with_file_column(spec, FILE)
        if has_place:
            spec = with_place_column(spec)
        return data_set((spec, statistics, plain_schema_of(spec)))

    def source_of(self, paths: Collection[str] | None) -> tuple[FormatSource, SourceStatistics]:
        """Return the source of some files, None for all, and its statistics."""
        spec, statistics, _ = self.found
        assert isinstance(spec, FormatSource)
        return (spec, statistics) if paths is None else with_paths(spec, statistics, paths)

    def patch(
        self, columns: Collection[str], bounds: Mapping[str, tuple[Any, Any]], *, deletes: bool
    ) -> DeltaPatch | None:
        """Return the way of files that are written anew with the rows alone that change."""
        spec, _, _ = self.found
        assert isinstance(spec, FormatSource)
        if self.has_vectors or self.keeps_changes or has_deleted_rows(spec) or {*columns} & {*self.partition_by}:
            return None
        paths = tuple(files_between(spec, self.schema, bounds))
        if not are_patched([self.log_files[path][1].size_bytes for path in paths]):
            return None
        return DeltaPatch(self, paths, tuple(columns), deletes)

    def row_count(self, paths: Collection[str]) -> int | None:
        """Return the number of rows of some files; None: the log does not say it of all."""
        spec, statistics, _ = self.found
        assert isinstance(spec, FormatSource)
        return file_rows(with_paths(spec, statistics, paths)[0])

    def rewrite(
        self,
        removed: Sequence[str],
        looked_for: Mapping[str, tuple[Any, Any]] | None = None,
        *,
        merges: bool,
        changes_data: bool,
        row_count: int | None = None,
    ) -> TableOutput:
        """Return the output of rows that go into the place of files."""
        write = TableWrite(
            "rewrite",
            self.known,
            self.partition_by,
            required=required_names(self.known, self.partition_by),
            indexed=self.indexed,
            removed=tuple(self.log_files[path][0] for path in removed),
            version=self.version,
            changes_data=changes_data,
            merges=merges,
            deletes_rows=merges and not removed and self.has_vectors,
            keeps_changes=merges and self.keeps_changes,
            row_count=row_count,
        )
        spec = SinkSpec("delta", self.name, mode="rewrite", options=encoded(write))
        return TableOutput(replace(spec, partition_by=self.partition_by), order=self.partition_by)


class DeltaPatch(NamedTuple):
    """Files of a version that are written anew with the rows alone that change."""

    version: DeltaVersion
    #: files that may have such rows
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    deletes: bool

    @property
    def spread(self) -> tuple[str, ...]:
        """New rows of a partition come together."""
        return self.version.partition_by

    @property
    def kept(self) -> tuple[str, ...]:
        """A file lies in the folder of its partition."""
        return self.version.partition_by

    def rows(self, data_set: Callable[[FoundSource], Any]) -> Any:
        """Return the rows of these files."""
        spec, statistics = self.version.source_of(self.paths)
        spec = with_place_column(with_file_column(spec, FILE, {path: at for at, path in enumerate(self.paths)}))
        return data_set((spec, statistics, plain_schema_of(spec)))

    def output(self, looked_for: Mapping[str, tuple[Any, Any]] | None) -> TableOutput:
        """Return the output of changes."""
        found, _, schema = self.version.found
        assert isinstance(found, FormatSource)
        write = TableWrite(
            "rewrite",
            self.version.known,
            self.version.partition_by,
            required=required_names(self.version.known, self.version.partition_by),
            indexed=self.version.indexed,
            version=self.version.version,
            merges=True,
            patched_files=tuple(self.version.log_files[path][0] for path in self.paths),
            patched_columns=self.columns,
            patch_deletes=self.deletes,
            bounded=bounded_columns(found, [field.name for field in schema if pa.types.is_floating(field.type)]),
        )
        spec = SinkSpec("delta", self.version.name, mode="rewrite", options=encoded(write))
        return TableOutput(replace(spec, partition_by=(FILE, *self.version.partition_by)))
