"""A table of Iceberg that jobs change: its files now, the rows of some of them, and the output that replaces these.

    IcebergTable("sales.orders", catalog).at_present("merge_into", configuration) -> IcebergVersion (``table_target``)

The table's properties (write.merge.mode, write.update.mode, write.delete.mode) say how rows go: by copy-on-write files
with such rows are written anew, by merge-on-read their places are written into files of deletes.

Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from engine.column_expressions.expressions import coalesce, col
from engine.errors import ConfigurationError
from engine.files.store_access import GivenOptions, StoreAccess
from engine.formats.source_format import FoundSource
from engine.formats.table_target import TableFile, TableOutput
from engine.graph.merge_action import CHANGED_AT, FILE, POSITION, ROW_ID
from engine.graph.source_spec import SinkSpec
from engine.iceberg_tables.file_columns import write_default
from engine.iceberg_tables.iceberg_source import ADDED_AT, FIRST_ROW, constants_of, iceberg_scan, id_fields
from engine.iceberg_tables.planned_files import PlannedFile, planned
from engine.iceberg_tables.pruning import files_between
from engine.iceberg_tables.tables import load_table, placed_errors
from engine.iceberg_tables.third_version import check_known
from engine.iceberg_tables.write_options import Rewrite, WriteOptions, encoded
from engine.iceberg_tables.write_plan import rewrite_plan
from engine.outputs.iceberg_output import partition_values
from engine.outputs.iceberg_rows import iceberg_rows
from engine.parquet.patched_file import are_patched

if TYPE_CHECKING:
    from engine.config.loader import Configuration

#: properties that say how rows go, by the call
_MODES: Final = {"UPDATE": "write.update.mode", "DELETE": "write.delete.mode"}
_MERGE_MODE: Final = "write.merge.mode"


class IcebergTable(NamedTuple):
    """A table, by its name in a catalog."""

    table: str
    catalog: Any
    given: GivenOptions = GivenOptions()

    def changes(self, since: int | None, environment: Any) -> Any:
        """Return the rows that snapshots behind one have changed."""
        from engine.outputs.iceberg_changes import iceberg_changes

        stores = StoreAccess(environment.configuration, self.given, "read_changes")
        loaded = load_table(self.table, self.catalog, stores)
        return iceberg_changes(loaded, since, lambda found: environment._source(*found, None))

    def at_present(self, call: str, configuration: Configuration) -> IcebergVersion:
        """Return the table as it is now."""
        if not isinstance(self.table, str) or "." not in self.table:
            raise ConfigurationError(f"{call}: iceberg({self.table!r}): pass the name of a table: 'sales.orders'")
        stores = StoreAccess(configuration, self.given, call)
        loaded = load_table(self.table, "default" if self.catalog is None else self.catalog, stores)
        check_known(loaded, call)
        return IcebergVersion(self.table, self.catalog, loaded, stores)


class IcebergVersion:
    """A table as it was loaded."""

    def __init__(self, name: str, catalog: Any, table: Any, stores: StoreAccess) -> None:
        self.name = name
        self._table = table
        self._call = call = stores.call
        self._snapshot = table.metadata.current_snapshot()
        with placed_errors(call, name):
            self._plan = rewrite_plan(name, catalog, table.metadata, stores)

    @property
    def version(self) -> int:
        """The number of the snapshot; -1: the table has had no rows yet."""
        return -1 if self._snapshot is None else int(self._snapshot.snapshot_id)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._plan.columns

    def check_removal(self, call: str) -> None:
        """Tables have no such rule."""

    def default_of(self, name: str) -> pa.Scalar | None:
        """Return the value that writers give rows without a column."""
        return write_default(self._table.schema().find_field(name), self._call)

    @property
    def keeps_ids(self) -> bool:
        """Whether rows have ids."""
        return bool(self._table.metadata.format_version > 2)

    @property
    def deletes_rows(self) -> bool:
        """Whether rows are deleted by their places in files."""
        metadata = self._table.metadata
        name = _MODES.get(self._call, _MERGE_MODE)
        mode = metadata.properties.get(name, "merge-on-read" if self.keeps_ids else "copy-on-write")
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
        moves: bool = False,
        numbers: Mapping[str, int] | None = None,
    ) -> Any:
        """Return the rows of files as a data set; ``numbers``: by which they have their file."""
        has_ids = moves and self.keeps_ids
        with placed_errors(self._call, self.name):
            scan = iceberg_scan(
                self._table,
                self._snapshot,
                self._table.schema(),
                None if paths is None else {*paths},
                has_file=has_file,
                has_place=has_place,
                has_ids=has_ids,
                numbers=numbers,
            )
        rows = iceberg_rows(scan, data_set)
        if not has_ids:
            return rows
        # A file has the ids of rows from other files; those of its own are told by their places.
        ids = {
            ROW_ID: coalesce(col(ROW_ID), col(FIRST_ROW) + col(POSITION)),
            CHANGED_AT: coalesce(col(CHANGED_AT), col(ADDED_AT)),
        }
        return rows.select(*self.schema.names, *([FILE] if has_file else []), **ids)

    def patch(
        self, columns: Collection[str], bounds: Mapping[str, tuple[Any, Any]], *, deletes: bool
    ) -> IcebergPatch | None:
        """Return the way of files that are written anew with the rows alone that change."""
        metadata = self._table.metadata
        ids = {field.field_id for field in metadata.schema().fields if field.name in columns}
        moved = any(field.source_id in ids for spec in metadata.specs().values() for field in spec.fields)
        # Rows that keep their ids have columns of them, which the former file may lack.
        if moved or self.keeps_ids or self.deletes_rows:
            return None
        found = files_between(metadata, self._files, bounds, self._call)
        if any(each.has_deletes for each in found) or not are_patched([each.file.file_size_in_bytes for each in found]):
            return None
        return IcebergPatch(self, found, tuple(columns), deletes)

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
        rewrite = replace(self._read(looked_for), removed=tuple(removed), merges=merges, changes_data=changes_data)
        options = replace(self._plan.options, rewrite=rewrite)
        if removed and self.keeps_ids:
            options = replace(options, schema_ipc=_with_ids(options.schema_ipc))
        keys = tuple(each.name for each in self._plan.hidden)
        spec = replace(self._spec(options, keys), target_file_bytes=self._plan.target_file_bytes)
        order = tuple(dict.fromkeys([*spec.partition_by, *self._plan.sort_by]))
        return TableOutput(spec, tuple(partition_values(self._plan)), order)

    def _spec(self, options: WriteOptions, keys: tuple[str, ...]) -> SinkSpec:
        """Return the sink of files that are written anew."""
        codec, level = self._plan.codec
        return SinkSpec(
            "iceberg",
            options.location,
            compression=codec,
            compression_level=level,
            mode="rewrite",
            partition_by=keys,
            options=encoded(options),
        )

    def _read(self, looked_for: Mapping[str, tuple[Any, Any]] | None) -> Rewrite:
        """Return the state of the table that the job has read."""
        snapshot_id = None if self._snapshot is None else self._snapshot.snapshot_id
        return Rewrite(snapshot_id, looked_for=tuple(_bounds(looked_for or {}, self.schema)))


class IcebergPatch(NamedTuple):
    """Files of a version that are written anew with the rows alone that change."""

    version: IcebergVersion
    #: files that may have such rows
    files: Sequence[PlannedFile]
    columns: tuple[str, ...]
    deletes: bool

    @property
    def spread(self) -> tuple[str, ...]:
        """New rows of a partition come together, in the order of the table."""
        plan = self.version._plan
        return tuple(dict.fromkeys([*(each.name for each in plan.hidden), *plan.sort_by]))

    @property
    def kept(self) -> tuple[str, ...]:
        """The commit knows the partition of a file."""
        return ()

    def rows(self, data_set: Callable[[FoundSource], Any]) -> Any:
        """Return the rows of these files."""
        numbers = {each.file.file_path: number for number, each in enumerate(self.files)}
        return self.version.rows(data_set, numbers, has_file=True, has_place=True, numbers=numbers)

    def output(self, looked_for: Mapping[str, tuple[Any, Any]] | None) -> TableOutput:
        """Return the output of changes."""
        version, plan = self.version, self.version._plan
        rewrite = replace(
            version._read(looked_for),
            merges=True,
            patched_files=tuple(each.file.file_path for each in self.files),
            patched_columns=self.columns,
            patch_deletes=self.deletes,
            constants=constants_of(version._table.metadata, self.files, version._call),
            new_bytes=plan.target_file_bytes,
        )
        options = replace(plan.options, rewrite=rewrite)
        spec = version._spec(options, (FILE, *(each.name for each in plan.hidden)))
        return TableOutput(spec, tuple(partition_values(plan)))


def _with_ids(schema_ipc: bytes) -> bytes:
    """Return the schema of files in which rows have their ids."""
    known = pa.ipc.read_schema(pa.py_buffer(schema_ipc))
    return bytes(pa.schema([*known, *id_fields()]).serialize().to_pybytes())


def _bounds(looked_for: Mapping[str, tuple[Any, Any]], schema: pa.Schema) -> Iterator[tuple[str, str, str]]:
    """Yield columns with the lowest and highest value as texts that cast to them, where the table has such values."""
    for name, pair in looked_for.items():
        with suppress(pa.ArrowException):
            low, high = pa.array(pair).cast(schema.field(name).type).cast(pa.string()).to_pylist()
            yield name, low, high
