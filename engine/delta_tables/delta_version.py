"""A Delta table that jobs change: its files now, the rows of some of them, and the sink that replaces these.

    DeltaTable("folder").at_present("merge_into") -> DeltaVersion (``engine.formats.table_target``)

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from engine.delta_tables.delta_source import (
    delta_source,
    file_rows,
    plain_schema_of,
    with_file_column,
    with_paths,
    with_place_column,
)
from engine.delta_tables.table_commit import check_writable, opened, table_files
from engine.delta_tables.table_log import file_place
from engine.delta_tables.table_write import TableWrite, encoded, required_names
from engine.errors import PlanError
from engine.files.paths import local_path
from engine.formats.source_format import FoundSource
from engine.formats.table_target import TableFile, TableOutput
from engine.graph.merge_action import FILE
from engine.graph.source_spec import FormatSource, SinkSpec


class DeltaTable(NamedTuple):
    """A table, by its folder."""

    path: str

    def at_present(self, call: str) -> DeltaVersion:
        """Return the last version."""
        place = local_path(self.path, call).rstrip("/")
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
        return DeltaVersion(place, table.version(), found, known, keys, files, has_vectors, keeps_changes)


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

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.found[2]

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
    ) -> Any:
        """Return the rows of some files, None for all."""
        spec, statistics, _ = self.found
        assert isinstance(spec, FormatSource)
        if paths is not None:
            spec, statistics = with_paths(spec, statistics, paths)
        if has_file:
            spec = with_file_column(spec, FILE)
        if has_place:
            spec = with_place_column(spec)
        return data_set((spec, statistics, plain_schema_of(spec)))

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
