"""The calls of DataSet that write files and tables, in the next ``env.execute()``; ``merge_into`` at once.

    write_csv write_parquet write_records write_text write_json write_ipc write_orc write_excel write_database write
    write_delta write_iceberg merge_into

Held by: tests/integration/test_sinks.py
Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

import pyarrow as pa
from msgspec.structs import replace

from engine.api.calls import Calls
from engine.api.other_options import check_option, with_other_options
from engine.errors import ConfigurationError, NotYetSupportedError
from engine.files.paths import local_path, placed_store_errors
from engine.files.store_access import GivenOptions, StoreAccess
from engine.formats.registry import sink_format_of
from engine.formats.sink_format import CALLS
from engine.graph.plan import Sink
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import SinkSpec
from engine.lowering.logical_node import LogicalNode
from engine.storage.store_options import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.choices import (
        DatabaseMode,
        IpcCompression,
        IpcFormat,
        OrcCompression,
        ParquetCompression,
        SchemaMode,
        TextCompression,
        WriteMode,
    )
    from engine.formats.table_target import TableTarget
    from engine.outputs.merge_clauses import Clause
    from engine.outputs.merge_plan import MergeResult
    from engine.outputs.sink_options import CsvSinkOptions, IcebergOptions, SinkOptions

PathLike = str | os.PathLike[str]


@with_other_options
class OutputCalls(Calls):
    """Base of DataSet with its outputs."""

    def write_csv(
        self,
        path: PathLike,
        header: bool = False,
        delimiter: str = ",",
        overwrite: bool = False,
        *,
        compression: TextCompression | None = None,
        **options: Unpack[CsvSinkOptions],
    ) -> None:
        """Write CSV files, ``part-00000.csv`` and so on, when ``env.execute()`` runs.

        A null is written as nothing, an empty string as ``""``. ``compression``: gzip, zstd, bz2, xz or lz4, which
        makes ``part-00000.csv.gz`` and the like. A path that exists is an error unless ``overwrite``.

        ``options`` of the form of values: ``null_text``, what stands for a null, never in quotes; ``decimal=","``;
        ``quoting``, which values are in quotes: "minimal" (those that need it), "all", "non_numeric" or "none";
        ``date_format`` and ``timestamp_format``, with the directives of ``.dt.strftime``; ``encoding``, such as
        "cp1252", or "utf-8-sig" for UTF-8 behind the mark that Excel looks for.

        ``options``, of every format but records: ``mode`` "error", "overwrite", "append" or "overwrite_partitions";
        ``partition_by``, columns that become folders such as ``year=2024/``; ``sort_by``, the order of rows in the
        files; ``target_file_size`` such as "128mb", after which the next file begins; ``single_file=True``: the path is
        that of one file, which one subtask writes in the order of the rows; ``schema_mode`` "strict" or "union", which
        adds rows whose types differ from those that are there; ``storage_options``, what opens the bucket of an object
        store, as in ``read_csv``.
        """
        from engine.csv.style import CsvWriteOptions, checked_style

        place, codec = local_path(path, "write_csv"), compression or ""
        given: dict[str, Any] = dict(options)
        form = {name: given.pop(name) for name in CsvWriteOptions.__annotations__ if name in given}
        style = checked_style(cast("CsvWriteOptions", form), delimiter)
        spec = SinkSpec("csv", place, overwrite, header, delimiter, compression=codec, options=style.text)
        self._add_sink(spec, cast("SinkOptions", given))

    def write_parquet(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        compression: ParquetCompression = "snappy",
        compression_level: int | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Write Parquet files, ``part-00000.parquet`` and so on, when ``env.execute()`` runs.

        A column of a type that Parquet does not have is a SchemaError; seconds (timestamp[s], time32[s]) are written as
        milliseconds, date64 as date32. ``compression``: snappy, zstd, gzip, brotli, lz4 or none; ``compression_level``
        where the codec has levels; ``options`` as in ``write_csv``. A path that exists is an error unless
        ``overwrite``.
        """
        place, codec = local_path(path, "write_parquet"), compression
        sink = SinkSpec("parquet", place, overwrite, compression=codec, compression_level=compression_level)
        self._add_sink(sink, options)

    def write_records(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        mode: WriteMode | None = None,
        storage_options: StorageOptions = None,
    ) -> None:
        """Write a record data set when ``env.execute()`` runs: ``part-00000.parquet`` and so on, and a manifest.

        The manifest (``_manifest.json``) has the schema, rows, bytes and checksums of the parts, and for each column
        its bounds, nulls, heavy values and an estimate of distinct values; ``read_records`` plans with it, and Spark
        reads the same folder. ``read_records`` gives the same types back; one that Parquet does not have is a
        SchemaError. ``mode``: "error", where a path that exists is one, or "overwrite", which replaces it at once;
        ``overwrite=True`` is short for that. ``storage_options`` as in ``write_csv``.
        """
        if mode in ("append", "overwrite_partitions"):
            raise ConfigurationError(
                f"write_records: mode={mode!r}: one manifest is of all parts, so that none are added: choose error or"
                " overwrite, or write_parquet, which adds files to a folder"
            )
        options: SinkOptions = {} if storage_options is None else {"storage_options": storage_options}
        if mode:
            options["mode"] = mode
        self._add_sink(SinkSpec("records", local_path(path, "write_records"), overwrite), options)

    def write_text(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        compression: TextCompression | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        r"""Write text files when ``env.execute()`` runs: ``part-00000.txt`` and so on, a line for each row.

        There must be exactly one column, of strings (SchemaError). As in Spark a null is an empty line, and a value
        with a line end in it reads back as several lines. ``compression`` and ``options`` as in ``write_csv``, but
        for the columns of ``partition_by``, which are beside the one of text. A path that exists is an error unless
        ``overwrite``.
        """
        place, codec = local_path(path, "write_text"), compression or ""
        self._add_sink(SinkSpec("text", place, overwrite, compression=codec), options)

    def write_json(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        compression: TextCompression | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Write JSON lines when ``env.execute()`` runs: ``part-00000.json`` and so on, one object a row.

        A null is ``null``, and so is a double that is no number or infinite; decimals, dates and times are texts.
        ``compression`` and ``options`` as in ``write_csv``. A path that exists is an error unless ``overwrite``.
        """
        place, codec = local_path(path, "write_json"), compression or ""
        self._add_sink(SinkSpec("json", place, overwrite, compression=codec), options)

    def write_ipc(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        format: IpcFormat = "file",  # noqa: A002
        compression: IpcCompression | None = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Write Arrow IPC files, ``part-00000.arrow`` and so on, when ``env.execute()`` runs.

        ``format``: "file" (Feather 2), or "stream", which makes ``part-00000.arrows``. ``compression``: lz4 or zstd,
        of the columns within; ``options`` as in ``write_csv``. A path that exists is an error unless ``overwrite``.
        """
        kinds = {"file": "ipc", "stream": "ipc_stream"}
        if format not in kinds:
            raise ConfigurationError(f"write_ipc: format={format!r}: choose file or stream")
        place, codec = local_path(path, "write_ipc"), compression or ""
        self._add_sink(SinkSpec(kinds[format], place, overwrite, compression=codec), options)

    def write_orc(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        compression: OrcCompression = "zlib",
        **options: Unpack[SinkOptions],
    ) -> None:
        """Write ORC files, ``part-00000.orc`` and so on, when ``env.execute()`` runs.

        A column of a type that ORC does not have is a SchemaError. ``compression``: zlib, snappy, zstd, lz4 or none;
        ``options`` as in ``write_csv``. A path that exists is an error unless ``overwrite``.
        """
        self._add_sink(SinkSpec("orc", local_path(path, "write_orc"), overwrite, compression=compression), options)

    def write_excel(
        self,
        path: PathLike,
        sheet: str = "Sheet1",
        overwrite: bool = False,
        *,
        header: bool = True,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Write a file of Excel (the extra ``excel``) when ``env.execute()`` runs: one sheet, one file.

        Numbers, truths, dates and times are what they are in Excel; a null is an empty cell. What Excel does not keep
        fails the job: more than 2**53, days before 1900, more than 1,048,576 rows; fractions of a second have three
        digits there. ``options`` as in ``write_csv``; with ``single_file=False`` or ``partition_by`` the path is a
        folder of ``part-00000.xlsx`` and so on.
        """
        options.setdefault("single_file", not any(options.get(name) for name in ("partition_by", "target_file_size")))
        place = local_path(path, "write_excel")
        self._add_sink(SinkSpec("excel", place, overwrite, header, options=sheet), options)

    def write(
        self,
        format: str,  # noqa: A002 - the word for it
        path: PathLike,
        overwrite: bool = False,
        *,
        compression: str | None = None,
        **options: Any,
    ) -> None:
        """Let the next ``env.execute()`` write a format by its name, such as "csv", or one of another package.

        A format with a call of its own, as ``write_csv``, takes the options of that call; others take ``compression``
        and the options of all outputs. A path that exists is an error unless ``overwrite``.
        """
        if format in CALLS:
            given: dict[str, Any] = {} if compression is None else {"compression": compression}
            getattr(self, f"write_{format}")(path, overwrite=overwrite, **given, **options)
            return
        place, codec = local_path(path, f"{format}: write"), compression or ""
        sink = SinkSpec(format, place, overwrite, compression=codec)
        entry = sink_format_of(sink)
        if entry.is_passing:
            raise ConfigurationError(f"write({format!r}): its files are results of this process; use to_arrow")
        from engine.outputs.sink_options import SinkOptions

        for option in options:
            check_option(entry.call, option, ("overwrite", "compression", *SinkOptions.__annotations__))
        self._add_sink(sink, cast("SinkOptions", options))

    def write_delta(
        self,
        path: PathLike,
        mode: WriteMode = "error",
        *,
        partition_by: str | Sequence[str] | None = None,
        sort_by: str | Sequence[str] | None = None,
        schema_mode: SchemaMode = "strict",
        target_file_size: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        storage_options: StorageOptions = None,
    ) -> None:
        """Write a Delta table (the extra ``delta``) when ``env.execute()`` runs: one commit of its log.

        ``mode``: "error" where there is a table, "append", "overwrite", which gives the table the rows' columns, or
        "overwrite_partitions", which replaces the partitions that rows are for. ``partition_by``: columns whose values
        have files of their own, those of the table where it exists; ``sort_by``: the order of rows in files;
        ``schema_mode="union"`` adds rows with fewer or other columns; ``target_file_size``: "128mb" without
        partitions; ``properties``: of a table that is made. ``JobResult.outputs`` has the version.
        """
        from engine.outputs.delta_output import delta_write

        options: SinkOptions = {
            "partition_by": partition_by or (),
            "sort_by": sort_by or (),
        }
        if target_file_size is not None:
            options["target_file_size"] = target_file_size
        place = local_path(path, "write_delta")
        self._stores(storage_options, "write_delta").use_for(place)
        rows, spec, order = delta_write(self._node, place, mode, schema_mode, options, properties or {})
        self._write_sorted(rows, spec, order)

    def write_iceberg(
        self,
        table: str,
        catalog: Any = None,
        mode: WriteMode = "error",
        *,
        partition_by: str | Sequence[str] | None = None,
        sort_by: str | Sequence[str] | None = None,
        target_file_size: int | str | None = None,
        compression: ParquetCompression | None = None,
        **options: Unpack[IcebergOptions],
    ) -> None:
        """Write a table of Iceberg (the extra ``iceberg``) when ``env.execute()`` runs, by one commit.

        ``table``: "db.name" in ``catalog``, as ``read_iceberg`` takes it. ``mode``: "error" makes the table; "append",
        "overwrite" and "overwrite_partitions", which replaces partitions that the rows have, make it where it is not
        there. ``partition_by`` of a table that is made: columns, or transforms such as "day(ts)", "bucket(16, id)" and
        "truncate(10, name)". ``sort_by``: order of the rows in files; without it, that of the table.
        ``target_file_size``: as of ``write_csv``, without it that of the table. ``compression``: as of
        ``write_parquet``, without it that of the table, which is "zstd" where it says nothing. ``properties``: of a
        table that is made. ``storage_options``: as of ``read_iceberg``.
        """
        from engine.outputs.iceberg_output import IcebergOutput, iceberg_sink

        if self._environment.target == "spark":
            raise NotYetSupportedError("write_iceberg on target spark; run it on local or cluster")
        stores = self._stores(options.get("storage_options"), "write_iceberg")
        properties = options.get("properties")
        parts = (partition_by,) if isinstance(partition_by, str) else partition_by
        order = (sort_by,) if isinstance(sort_by, str) else sort_by
        output = IcebergOutput(table, catalog, mode, parts, order, target_file_size, compression, properties, stores)
        self._environment.add_sink(iceberg_sink(self._node, output))

    def write_database(
        self, table: str, uri: str, mode: DatabaseMode = "error", on: str | Sequence[str] | None = None
    ) -> None:
        """Write a table of PostgreSQL or SQLite when ``env.execute()`` runs (the extra ``databases``).

        ``table``: a name, or schema.name. ``uri``: as of ``read_database``. ``mode``: "error" makes a table; "append"
        adds rows, "overwrite" replaces all rows, and "upsert" replaces those whose columns ``on`` are the same and adds
        the others; each of them makes the table where there is none. One transaction puts all rows there, once.
        """
        from engine.databases.write_call import database_sink

        keys = () if on is None else (on,) if isinstance(on, str) else tuple(on)
        spec = database_sink(self.schema, table, uri, mode, keys)
        self._environment.add_sink(LogicalNode(Sink(spec), (self._node,), self.schema))

    def merge_into(
        self,
        target: TableTarget,
        on: str | Sequence[str],
        when_matched: Clause = "update",
        when_not_matched: Clause = "insert",
        when_not_matched_by_source: Clause = "ignore",
    ) -> MergeResult:
        """Merge these rows into a table at once, by one commit.

        ``target``: ``delta("folder")`` or ``iceberg("db.name", catalog)``. ``on``: key columns of both sides.
        ``when_matched``: "update" takes the values of these rows, "delete", "ignore", or a dict:
        ``{"set": {"price": col("source.price")}, "where": condition}`` or ``{"delete": True, "where": condition}``;
        with "set" and a condition as "delete", rows that meet it go, and the others are updated.
        ``when_not_matched``: "insert", "ignore", or ``{"values": {...}, "where": condition}``.
        ``when_not_matched_by_source``, for rows of the table alone: "ignore", "delete", or a dict as of
        ``when_matched``. Expressions name columns ``source.x`` and ``target.x``. Two of these rows with the key of one
        row of the table are a DataError; null keys match nothing.
        """
        from engine.outputs.merge_plan import merged

        if self._environment.target == "spark":
            raise NotYetSupportedError("merge_into on target spark; run it on local or cluster")
        keys = (on,) if isinstance(on, str) else tuple(on)
        return merged(self, target, keys, (when_matched, when_not_matched, when_not_matched_by_source))

    def _stores(self, options: StorageOptions, call: str) -> StoreAccess:
        return StoreAccess(self._environment.configuration, GivenOptions(options), call)

    def _without(self, options: SinkOptions) -> pa.Schema:
        """Return the columns that are in the files, without those of folders."""
        keys = options.get("partition_by", ())
        names = (keys,) if isinstance(keys, str) else tuple(keys)
        return pa.schema([field for field in self.schema if field.name not in names])

    def _add_sink(self, spec: SinkSpec, options: SinkOptions | None = None) -> None:
        from engine.outputs.sink_options import with_options

        entry = sink_format_of(spec)
        self._stores((options or {}).get("storage_options"), entry.call).use_for(spec.path)
        single = (options or {}).get("single_file", False)
        if not isinstance(single, bool):
            raise ConfigurationError(f"{entry.call}: single_file={single!r}: choose True or False")
        spec = entry.checked(replace(spec, is_single_file=single), self.schema, self._without(options or {}))
        with placed_store_errors(entry.call):
            spec, order = with_options(spec, self.schema, options or {}, entry.call)
        self._write_sorted(self._node, spec, order)

    def _write_sorted(self, rows: LogicalNode, spec: SinkSpec, order: tuple[SortKey, ...]) -> None:
        from engine.outputs.sorted_sinks import sorted_sink

        self._environment.add_sink(sorted_sink(rows, spec, order))
