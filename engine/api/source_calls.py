"""The calls of Environment that read: each makes a data set of one source.

    read_csv read_parquet read_records read_text read_json read_ipc read_orc read_avro read    from_arrow from_rows

``file_calls`` has more of them.

Files are looked at when a source is made: names, types, sizes and a sample; rows are read by the job.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from engine.api.other_options import check_option, with_other_options
from engine.connectors.path_source import Partitioning, PathOptions, path_source
from engine.connectors.row_source import rows_to_table
from engine.errors import ConfigurationError, NotYetSupportedError, PlanError, SchemaError
from engine.files.paths import PathLike, given_paths, placed_store_errors
from engine.files.store_access import GivenOptions, StoreAccess
from engine.formats.registry import format_named, read_by_name, reading_call
from engine.formats.source_format import ReadRequest
from engine.graph.plan import Source
from engine.graph.source_spec import SourceSpec, SourceStatistics
from engine.lowering.logical_node import LogicalNode
from engine.storage.file_systems import LOCAL, file_system_of
from engine.storage.known_objects import known_statuses
from engine.storage.store_counters import StoreTraffic, counted
from engine.storage.store_options import StorageOptions
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.choices import OnBadRow, SchemaMode, SequenceEnds, TextCompression
    from engine.config.loader import Configuration
    from engine.csv.options import CsvReadOptions
    from engine.formats.table_target import TableTarget

Paths = PathLike | Iterable[PathLike]


@with_other_options
class SourceCalls(ABC):
    """Base of Environment with its sources."""

    #: requests to stores that make plans
    _asked: StoreTraffic

    @property
    @abstractmethod
    def parallelism(self) -> int:
        """Default number of subtasks."""

    @property
    @abstractmethod
    def configuration(self) -> Configuration:
        """Effective settings."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The target of jobs."""

    @abstractmethod
    def temporary_folder(self) -> Path:
        """Return a folder that lives as long as this environment."""

    @abstractmethod
    def _data_set(self, node: LogicalNode) -> DataSet:
        """Return the data set of a node."""

    def read_csv(
        self,
        path: Paths,
        schema: pa.Schema | None = None,
        *,
        header: bool = False,
        delimiter: str = ",",
        quote: str | None = '"',
        null_values: str | Sequence[str] | Mapping[str, str | Sequence[str]] = ("",),
        on_bad_row: OnBadRow = "fail",
        **options: Unpack[CsvReadOptions],
    ) -> DataSet:
        """Read delimited text: a file, a folder, a glob, or a list of those.

        Without ``schema`` types come from a sample, which ``explain`` shows. A column whose digits would be lost in a
        number (007, ids beyond int64) stays text. Without ``header`` columns are called column_0, column_1 and so on,
        and so is one without a name in a header. Headers of several files may have the columns in any order.
        ``infer_rows``: so many first rows decide instead, 0: all columns are texts. ``true_values``,
        ``false_values``: texts that are true and false, beside true and false. ``ragged_rows``: records with too few
        fields have nulls ("fill"), fields beyond the last column are left out ("cut"), or both ("fit").
        ``skip_rows``: lines of each file before that; ``comment="#"``: lines that begin so are left out.

        An unquoted empty field is null, a quoted one the empty string; ``null_values``: the texts that are null in its
        place, ["", "n/a"] for both, or by column, ``{"price": ["-", "n/a"]}``. ``date_format={"day": "%d.%m.%Y"}``:
        formats of dates and times by column, or one of all texts that are of it. ``decimal=","``: what stands before
        fractions; ``thousands="."``: between groups of three digits.

        ``on_bad_row``: "fail" with file, line and column, or "skip" and count (``JobResult.bad_rows``). With "skip",
        each job that reads the source writes a folder of CSV, ``bad_rows_path``: file, line, reason and text of each
        row that it left out. ``encoding``: UTF-8 (UTF-16 where a file begins with its mark), or another one by
        Python's name, such as "cp1252". ``compression``: gzip, zstd, bz2, xz, lz4 or none where the ending of a file
        does not say it. ``rate_limit``, on any source: the most rows a second of all subtasks together, spread evenly.

        ``partitioning``, on any source of files: folders named ``year=2024`` are columns, where a folder holds nothing
        else or with "hive"; a ``pyarrow.Schema`` gives their types, "none" leaves them alone. ``file_name_column``: the
        name of a column with the path of each row's file.

        ``storage_options``, on any source of files: what opens the bucket of an object store, by the names of obstore
        and Polars, such as {"endpoint_url": ..., "region": ...}; it stays in this process, and is in no plan.

        ``options``: ``skip_rows comment date_format decimal thousands true_values false_values ragged_rows infer_rows
        bad_rows_path encoding compression partitioning file_name_column rate_limit storage_options``.
        """
        rest: dict[str, Any] = dict(options)
        in_paths = PathOptions(rest.pop("partitioning", None), rest.pop("file_name_column", None))
        in_paths = in_paths._replace(storage_options=rest.pop("storage_options", None))
        rate_limit = rest.pop("rate_limit", None)
        rest |= {"header": header, "delimiter": delimiter, "quote": quote}
        rest |= {"null_values": null_values, "on_bad_row": on_bad_row}
        return self._read("csv", path, in_paths, rate_limit, schema, rest)

    def read_parquet(
        self,
        path: Paths,
        rate_limit: float | None = None,
        *,
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        schema_mode: SchemaMode = "strict",
        storage_options: StorageOptions = None,
    ) -> DataSet:
        """Read Parquet: a file, a folder, a glob, or a list of those.

        ``schema_mode``: "strict", all files have the same columns, or "union": a column that a file has not is null
        there. ``partitioning`` and ``file_name_column`` as in ``read_csv``.
        """
        options = PathOptions(partitioning, file_name_column, schema_mode, storage_options=storage_options)
        return self._read("parquet", path, options, rate_limit)

    def read_records(
        self, path: PathLike, rate_limit: float | None = None, *, storage_options: StorageOptions = None
    ) -> DataSet:
        """Read a record data set: the folder of a Spark export or of ``write_records``, with its manifest."""
        return self._read("records", path, PathOptions(storage_options=storage_options), rate_limit)

    def read_text(
        self,
        path: Paths,
        rate_limit: float | None = None,
        *,
        compression: TextCompression | None = None,
        skip_rows: int = 0,
        encoding: str | None = None,
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        storage_options: StorageOptions = None,
    ) -> DataSet:
        r"""Read the lines of text as one column ``line`` (string): a file, a folder, a glob, or a list of those.

        A line ends with ``\n`` or ``\r\n``; empty lines are rows. What is not UTF-8 fails the job with a DataError
        that names file and line. ``skip_rows``: first lines of each file that are passed over.
        ``encoding``, ``compression``, ``partitioning`` and ``file_name_column`` as in ``read_csv``.
        """
        in_paths = PathOptions(partitioning, file_name_column, storage_options=storage_options)
        options = {"compression": compression, "skip_rows": skip_rows, "encoding": encoding}
        return self._read("text", path, in_paths, rate_limit, options=options)

    def read_json(
        self,
        path: Paths,
        schema: pa.Schema | None = None,
        *,
        compression: TextCompression | None = None,
        on_bad_row: OnBadRow = "fail",
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        rate_limit: float | None = None,
        storage_options: StorageOptions = None,
    ) -> DataSet:
        r"""Read JSON lines, one object a line: a file, a folder, a glob, or a list of those.

        Without ``schema`` names and types come from a sample, which ``explain`` shows. Members that the schema does not
        name are not read, missing ones are null. A line that is no object, or has a value of another type, fails the
        job with file and line; ``on_bad_row="skip"`` leaves it out and counts it (``JobResult.bad_rows``).
        ``compression``, ``partitioning`` and ``file_name_column`` as in ``read_csv``.

        >>> from pathlib import Path
        >>> _ = Path("people.json").write_text('{"id": 1, "tags": ["a"]}\n{"id": 2}\n')
        >>> env.read_json("people.json").collect()
        [Row(id=1, tags=['a']), Row(id=2, tags=None)]
        """
        options = {"compression": compression, "on_bad_row": on_bad_row}
        return self._read(
            "json",
            path,
            PathOptions(partitioning, file_name_column, storage_options=storage_options),
            rate_limit,
            schema,
            options,
        )

    def read_ipc(
        self,
        path: Paths,
        rate_limit: float | None = None,
        *,
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        schema_mode: SchemaMode = "strict",
        storage_options: StorageOptions = None,
    ) -> DataSet:
        """Read Arrow IPC files (Feather 2) and streams: a file, a folder, a glob, or a list of those."""
        return self._read(
            "ipc",
            path,
            PathOptions(partitioning, file_name_column, schema_mode, storage_options=storage_options),
            rate_limit,
        )

    def read_orc(
        self,
        path: Paths,
        rate_limit: float | None = None,
        *,
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        schema_mode: SchemaMode = "strict",
        storage_options: StorageOptions = None,
    ) -> DataSet:
        """Read ORC: a file, a folder, a glob, or a list of those."""
        return self._read(
            "orc",
            path,
            PathOptions(partitioning, file_name_column, schema_mode, storage_options=storage_options),
            rate_limit,
        )

    def read_avro(
        self,
        path: Paths,
        rate_limit: float | None = None,
        *,
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        schema_mode: SchemaMode = "strict",
        storage_options: StorageOptions = None,
    ) -> DataSet:
        """Read Avro (the extra ``avro``): a file, a folder, a glob, or a list of those.

        A file is read by one subtask, and its rows are Python objects on their way.
        """
        return self._read(
            "avro",
            path,
            PathOptions(partitioning, file_name_column, schema_mode, storage_options=storage_options),
            rate_limit,
        )

    def read(
        self,
        format: str,  # noqa: A002 - the word for it
        path: Paths,
        schema: pa.Schema | None = None,
        *,
        partitioning: Partitioning = None,
        file_name_column: str | None = None,
        schema_mode: SchemaMode = "strict",
        rate_limit: float | None = None,
        storage_options: StorageOptions = None,
        **options: Any,
    ) -> DataSet:
        """Read a format by its name: one of the engine's, such as "csv", or one that another package brings along.

        ``path``: a file, a folder, a glob, or a list of those, or what else the format takes. ``options``: those of the
        format; ``partitioning``, ``file_name_column`` and ``schema_mode`` are for formats of files.
        """
        entry, call = read_by_name(format), reading_call(format)
        for option in options:
            check_option(call, option, entry.options, entry.options)
        is_of_paths = partitioning is not None or file_name_column is not None
        for word, is_given, is_taken in (
            ("schema=", schema is not None, entry.takes_schema),
            ("schema_mode=", schema_mode != "strict", entry.takes_union),
            ("partitioning= and file_name_column=", is_of_paths, entry.has_files),
            ("storage_options=", storage_options is not None, entry.has_files),
        ):
            if is_given and not is_taken:
                raise ConfigurationError(f"read({format!r}): the format takes no {word}; leave it out")
        in_paths = PathOptions(partitioning, file_name_column, schema_mode, storage_options=storage_options)
        return self._read(format, path, in_paths, rate_limit, schema, options)

    def read_delta(
        self,
        path: PathLike,
        version: int | None = None,
        timestamp: datetime | str | None = None,
        storage_options: StorageOptions = None,
        rate_limit: float | None = None,
    ) -> DataSet:
        """Read a Delta table (the extra ``delta``): the folder that holds ``_delta_log``.

        ``version``: its number, the last one without it; ``timestamp``: a datetime (UTC without a zone), or a text of
        ISO 8601, for the version that the table had then. What the log says of files leaves out those that no row for
        a filter is in, before any is opened.
        """
        options = {"version": version, "timestamp": timestamp}
        in_paths = PathOptions(storage_options=storage_options)
        return self._read("delta", path, in_paths, rate_limit, options=options)

    def read_changes(
        self, table: PathLike | TableTarget, since: int | None = None, storage_options: StorageOptions = None
    ) -> DataSet:
        """Read the rows that versions of a Delta table, or snapshots of one of Iceberg, have changed.

        ``table``: the path of a Delta table with a change data feed, ``delta(path)``, or ``iceberg("db.name",
        catalog)``. ``since``: the first version that counts; of Iceberg the last snapshot that does not. The columns
        ``_change_type``, ``_commit_version`` (of Iceberg the snapshot) and ``_commit_timestamp`` say what became of
        each row, and when. The library ``deltalake`` reads changes of Delta, which are copied as by ``from_arrow``.
        """
        call = "read_changes"
        if self.target == "spark":
            raise NotYetSupportedError(f"{call} on target spark; run it on local or cluster")
        if isinstance(table, str | os.PathLike):
            from engine.delta_tables.delta_version import DeltaTable

            table = DeltaTable(os.fspath(table), GivenOptions(storage_options))
        elif storage_options is not None:
            raise ConfigurationError(f"{call}: storage_options= of a table are given to delta() or iceberg()")
        found: DataSet = table.changes(since, self)
        return found

    def read_iceberg(
        self,
        table: Any,
        catalog: Any = None,
        snapshot_id: int | None = None,
        as_of: Any = None,
        branch: str | None = None,
        storage_options: StorageOptions = None,
    ) -> DataSet:
        """Read a table of Iceberg (the extra ``iceberg``), as it is now or was in a snapshot.

        ``table``: "db.name" in ``catalog``, which is a pyiceberg Catalog, the name of one, its properties, or a folder;
        else a metadata file, a table's folder, or a pyiceberg Table. ``snapshot_id``, ``as_of`` (a datetime or a text)
        or ``branch`` (also a tag) chooses a snapshot. Partitions and bounds of columns leave out files before any is
        opened; deleted rows do not come out, also those that are deleted by equal values. ``storage_options`` as in
        ``read_csv``: what opens the bucket of the table and of the catalog's warehouse, for metadata and data.
        """
        from engine.iceberg_tables.iceberg_source import iceberg_scan
        from engine.iceberg_tables.tables import load_table, placed_errors, schema_of, snapshot_of
        from engine.outputs.iceberg_rows import iceberg_rows

        call = "read_iceberg"
        if self.target == "spark":
            raise NotYetSupportedError(f"{call} on target spark; run it on local or cluster")
        stores = StoreAccess(self.configuration, GivenOptions(storage_options), call)
        loaded = load_table(table, catalog, stores)
        snapshot = snapshot_of(loaded, call, snapshot_id, as_of, branch)
        with placed_errors(call, ".".join(loaded.name())):
            schema = schema_of(loaded, snapshot, is_past=snapshot_id is not None or as_of is not None)
            scan = iceberg_scan(loaded, snapshot, schema)
        rows: DataSet = iceberg_rows(scan, lambda found: self._source(*found, None))
        return rows

    def read_database(
        self,
        query: str,
        uri: str,
        partition_on: str | None = None,
        partitions: int | None = None,
        batch_rows: int | None = None,
        rate_limit: float | None = None,
        driver: str | None = None,
    ) -> DataSet:
        """Read a table or a query of PostgreSQL or SQLite (the extra ``databases``).

        ``uri``: "postgresql://user@host/name", "sqlite://folder/file", where "sqlite:///" begins an absolute path,
        or "env:NAME", an environment variable that holds one; a password stays in this process. ``partition_on``: a
        column of integers, dates or timestamps, of which ``partitions`` ranges are read at the same time. ``driver``:
        the name of another ADBC driver, to which ``uri`` goes then: "flightsql", "duckdb".
        """
        ranges = {"partition_on": partition_on, "partitions": partitions, "batch_rows": batch_rows}
        options = {"uri": uri, "driver": driver, **ranges}
        return self._read("database", query, PathOptions(None, None, "strict"), rate_limit, None, options)

    def from_arrow(self, data: Any, rate_limit: float | None = None) -> DataSet:
        """Take anything with the Arrow C stream interface: pyarrow, Polars, DuckDB, pandas. The data is copied."""
        from engine.connectors.arrow_source import arrow_source

        return self._source(*arrow_source(data, self.temporary_folder), rate_limit)

    def from_rows(
        self, rows: Iterable[Any], schema: pa.Schema | None = None, rate_limit: float | None = None
    ) -> DataSet:
        """Take Python rows: tuples, lists, dicts or rows, in the order or by the names of the schema.

        Without ``schema`` the rows decide names and types, and a warning says which; dataclass instances are rows too.
        """
        return self._of_rows(rows, schema, "from_rows", rate_limit)

    def _of_rows(
        self, rows: Iterable[Any], schema: pa.Schema | None, what: str, rate_limit: float | None = None
    ) -> DataSet:
        """Take rows; ``what``: the call that errors and warnings name."""
        from engine.column_expressions.data_types import declared_schema
        from engine.functions.schema_inference import plain_rows, schema_of_rows, schema_text

        if schema is None:
            rows = plain_rows(rows)
            schema = schema_of_rows(rows, what)
            warn_user(f"{what}: no schema= was passed, {len(rows)} rows decided it; pass {schema_text(schema)}")
        if isinstance(schema, pa.Schema):
            schema = declared_schema(schema, what)
        return self.from_arrow(rows_to_table(rows, schema, what), rate_limit)

    def sequence(
        self, start: Any, stop: Any, step: Any = None, *, name: str = "value", closed: SequenceEnds = "both"
    ) -> DataSet:
        """Return integers, dates or timestamps from one to another as rows of one column, by a step: 1, or a day.

        A step of moments is a text such as "15 minutes", or an interval. closed: "both", or "left" without the end.

        >>> env.sequence(1, 3, name="n").to_arrow().column("n").to_pylist()
        [1, 2, 3]
        """
        from engine.api.sequence_rows import sequence_rows

        made: DataSet = sequence_rows(self, start, stop, step, name, closed)
        return made

    def _read(
        self,
        name: str,
        path: Paths,
        in_paths: PathOptions,
        rate_limit: float | None,
        schema: pa.Schema | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> DataSet:
        """Return the data set of a format; of one of files with the columns that are in their paths."""
        entry, call = format_named(name), reading_call(name)
        places = given_paths(path, call)
        if schema is not None and not isinstance(schema, pa.Schema):
            example = "pa.schema({'id': pa.int64(), 'name': pa.string()})"
            raise SchemaError(f"{call}: schema={schema!r}: expected a pyarrow.Schema, such as {example}")
        request = ReadRequest(schema=schema, parallelism=self.parallelism, options=options)
        listed = tuple(os.fspath(one) for one in (places if isinstance(places, list) else [places]))
        StoreAccess(self.configuration, GivenOptions(in_paths.storage_options), call).use_for(*listed)
        if entry.has_files:
            with placed_store_errors(call), known_statuses(reads_tails=name == "parquet"), counted(self._asked):
                found = path_source(entry, places, in_paths, request)
            self._check_places(call, found[0].paths)
            return self._source(*found, rate_limit)
        with placed_store_errors(call), counted(self._asked):
            found = entry.source(request._replace(paths=listed))
        self._check_places(call, getattr(found[0], "paths", ()))
        return self._source(*found, rate_limit)

    def _check_places(self, call: str, paths: Sequence[str]) -> None:
        """Raise PlanError for files of a store where Spark reads."""
        place = next((path for path in paths if file_system_of(path) is not LOCAL), None)
        if place is not None and self.target == "spark":
            raise PlanError(
                f"{call}({place!r}): target spark reads files of this machine alone; run it on local or cluster"
            )

    def _source(
        self, spec: SourceSpec, statistics: SourceStatistics, schema: pa.Schema, rate_limit: float | None
    ) -> DataSet:
        operator = Source(spec, statistics, rate_limit=_checked_rate(rate_limit))
        return self._data_set(LogicalNode(operator, (), schema))


def _checked_rate(rate_limit: Any) -> float | None:
    """Return a source's limit in rows per second, more than 0, or None; anything else is a PlanError."""
    if rate_limit is None:
        return None
    is_number = isinstance(rate_limit, int | float) and not isinstance(rate_limit, bool)
    if not is_number or not 0 < rate_limit < float("inf"):
        raise PlanError(f"rate_limit={rate_limit!r}: rows per second, more than 0")
    return float(rate_limit)
