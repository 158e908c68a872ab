"""The calls of DataSet that write files, in the next ``env.execute()``.

    write_csv write_parquet write_records write_text

Held by: tests/integration/test_sinks.py
"""

from __future__ import annotations

import os

from engine.api.calls import Calls
from engine.api.logical_node import LogicalNode
from engine.files.compression import written_codec
from engine.files.paths import local_path
from engine.graph.plan import Sink
from engine.graph.source_spec import SinkSpec
from engine.parquet.source import plain_file_schema, stored_schema

PathLike = str | os.PathLike[str]


class OutputCalls(Calls):
    """Base of DataSet with its outputs."""

    def write_csv(
        self,
        path: PathLike,
        header: bool = False,
        delimiter: str = ",",
        overwrite: bool = False,
        *,
        compression: str | None = None,
    ) -> None:
        """Let the next ``env.execute()`` write a folder of ``part-00000.csv`` and so on.

        A null is written as nothing, an empty string as ``""``. ``compression``: gzip, zstd, bz2, xz or lz4, which
        makes ``part-00000.csv.gz`` and the like. A path that exists is an error unless ``overwrite``.
        """
        from engine.csv.writer import check_csv_sink  # noqa: PLC0415 - start-up time

        check_csv_sink(self.schema, delimiter)
        codec = written_codec(compression, "write_csv")
        place = local_path(path, "write_csv")
        self._add_sink(SinkSpec("csv", place, overwrite, header, delimiter, compression=codec))

    def write_parquet(
        self,
        path: PathLike,
        overwrite: bool = False,
        *,
        compression: str = "snappy",
        compression_level: int | None = None,
    ) -> None:
        """Let the next ``env.execute()`` write a folder of ``part-00000.parquet`` and so on.

        A column of a type that Parquet does not have is a SchemaError; seconds (timestamp[s], time32[s]) are written as
        milliseconds, date64 as date32. ``compression``: snappy, zstd, gzip, brotli, lz4 or none; ``compression_level``
        where the codec has levels. A path that exists is an error unless ``overwrite``.
        """
        from engine.parquet.writer import check_compression  # noqa: PLC0415 - start-up time

        stored_schema(self.schema, "write_parquet")
        check_compression(compression, compression_level)
        place = local_path(path, "write_parquet")
        self._add_sink(
            SinkSpec("parquet", place, overwrite, compression=compression, compression_level=compression_level)
        )

    def write_records(self, path: PathLike, overwrite: bool = False) -> None:
        """Let the next ``env.execute()`` write a record data set: ``part-00000.parquet`` and so on, and a manifest.

        The manifest (``_manifest.json``) has the schema, rows, bytes and checksums of the parts, and for each column
        its bounds, nulls, heavy values and an estimate of distinct values; ``read_records`` plans with it, and Spark
        reads the same folder. ``read_records`` gives the same types back; one that Parquet does not have is a
        SchemaError. A path that exists is an error unless ``overwrite``, which replaces it at once.
        """
        stored_schema(self.schema, "write_records")
        schema_ipc = plain_file_schema(self.schema).serialize().to_pybytes()
        self._add_sink(SinkSpec("records", local_path(path, "write_records"), overwrite, schema_ipc=schema_ipc))

    def write_text(self, path: PathLike, overwrite: bool = False, *, compression: str | None = None) -> None:
        r"""Let the next ``env.execute()`` write a folder of ``part-00000.txt`` and so on: a line for each row.

        There must be exactly one column, of strings (SchemaError). As in Spark a null is an empty line, and a value
        with a line end in it reads back as several lines. ``compression`` as in ``write_csv``. A path that exists is an
        error unless ``overwrite``.
        """
        from engine.connectors.text_writer import check_text_sink  # noqa: PLC0415 - start-up time

        check_text_sink(self.schema)
        codec = written_codec(compression, "write_text")
        self._add_sink(SinkSpec("text", local_path(path, "write_text"), overwrite, compression=codec))

    def _add_sink(self, spec: SinkSpec) -> None:
        self._environment.add_sink(LogicalNode(Sink(spec), (self._node,), self.schema))
