"""A table of Iceberg that jobs change: its files now, the rows of some of them, and the output that replaces these.

    IcebergTable("sales.orders", catalog).at_present("merge_into") -> IcebergVersion (``engine.formats.table_target``)

The table's properties (write.merge.mode, write.update.mode, write.delete.mode) say how rows go: by copy-on-write files
with such rows are written anew, by merge-on-read their places are written into files of deletes.

Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from engine.api.iceberg_output import partition_values
from engine.api.iceberg_rows import iceberg_rows
from engine.errors import ConfigurationError
from engine.formats.source_format import FoundSource
from engine.formats.table_target import TableFile, TableOutput
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.iceberg_source import iceberg_scan
from engine.iceberg_tables.planned_files import planned
from engine.iceberg_tables.tables import load_table, placed_errors
from engine.iceberg_tables.write_options import Rewrite, encoded
from engine.iceberg_tables.write_plan import rewrite_plan

#: properties that say how rows go, by the call
_MODES: Final = {"UPDATE": "write.update.mode", "DELETE": "write.delete.mode"}
_MERGE_MODE: Final = "write.merge.mode"


class IcebergTable(NamedTuple):
    """A table, by its name in a catalog."""

    table: str
    catalog: Any

    def at_present(self, call: str) -> IcebergVersion:
        """Return the table as it is now."""
        if not isinstance(self.table, str) or "." not in self.table:
            raise ConfigurationError(f"{call}: iceberg({self.table!r}): pass the name of a table: 'sales.orders'")
        loaded = load_table(self.table, "default" if self.catalog is None else self.catalog, call)
        return IcebergVersion(self.table, self.catalog, loaded, call)


class IcebergVersion:
    """A table as it was loaded."""

    def __init__(self, name: str, catalog: Any, table: Any, call: str) -> None:
        self.name = name
        self._table = table
        self._call = call
        self._snapshot = table.metadata.current_snapshot()
        with placed_errors(call, name):
            self._plan = rewrite_plan(name, catalog, table.metadata, call)

    @property
    def version(self) -> int:
        """The number of the snapshot; -1: the table has had no rows yet."""
        return -1 if self._snapshot is None else int(self._snapshot.snapshot_id)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._plan.columns

    @property
    def deletes_rows(self) -> bool:
        """Whether rows are deleted by their places in files."""
        metadata = self._table.metadata
        name = _MODES.get(self._call, _MERGE_MODE)
        mode = metadata.properties.get(name, "copy-on-write")
        if mode not in ("copy-on-write", "merge-on-read"):
            raise ConfigurationError(
                f"{self._call}({self.name!r}): the table's property {name} is {mode!r}: set it to 'copy-on-write' or"
                " 'merge-on-read'"
            )
        return bool(mode == "merge-on-read" and metadata.format_version > 1)

    @property
    def checks_matches(self) -> bool:
        """The commit does not count rows."""
        return False

    @property
    def keeps_changes(self) -> bool:
        """Changes are told from snapshots."""
        return False

    @cached_property
    def _files(self) -> tuple[Any, ...]:
        return planned(self._table, self._snapshot, self._call).files

    def files(self) -> Sequence[TableFile]:
        """Return the files."""
        return [
            TableFile(each.file.file_path, each.file.file_size_in_bytes, repr(each.partition)) for each in self._files
        ]

    def rows(
        self,
        data_set: Callable[[FoundSource], Any],
        paths: Collection[str] | None = None,
        *,
        has_file: bool = False,
        has_place: bool = False,
    ) -> Any:
        """Return the rows of files as a data set."""
        with placed_errors(self._call, self.name):
            scan = iceberg_scan(
                self._table,
                self._snapshot,
                self._table.schema(),
                None if paths is None else {*paths},
                has_file=has_file,
                has_place=has_place,
            )
        return iceberg_rows(scan, data_set)

    def row_count(self, paths: Collection[str]) -> int | None:
        """Return None: no commit asks for it."""
        return None

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
        snapshot_id = None if self._snapshot is None else self._snapshot.snapshot_id
        bounds = tuple(_bounds(looked_for or {}, self.schema))
        rewrite = Rewrite(snapshot_id, tuple(removed), merges, changes_data, bounds)
        options = replace(self._plan.options, rewrite=rewrite)
        spec = SinkSpec(
            "iceberg",
            options.location,
            compression="zstd",
            mode="rewrite",
            partition_by=tuple(each.name for each in self._plan.hidden),
            target_file_bytes=self._plan.target_file_bytes,
            options=encoded(options),
        )
        order = tuple(dict.fromkeys([*spec.partition_by, *self._plan.sort_by]))
        return TableOutput(spec, tuple(partition_values(self._plan)), order)


def _bounds(looked_for: Mapping[str, tuple[Any, Any]], schema: pa.Schema) -> Iterator[tuple[str, str, str]]:
    """Yield columns with the lowest and highest value as texts that cast to them, where the table has such values."""
    for name, pair in looked_for.items():
        with suppress(pa.ArrowException):
            low, high = pa.array(pair).cast(schema.field(name).type).cast(pa.string()).to_pylist()
            yield name, low, high
