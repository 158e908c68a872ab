"""OrcWriter: batches as an ORC file, in stripes of some megabytes.

Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from engine.errors import ConfigurationError, SchemaError

_STRIPE_BYTES: Final = 16 << 20
_CODECS: Final = {"none": "uncompressed", "snappy": "snappy", "zlib": "zlib", "zstd": "zstd", "lz4": "lz4"}


def check_orc_sink(schema: pa.Schema, compression: str) -> None:
    """Raise SchemaError for a type that ORC does not have, ConfigurationError for an unknown codec."""
    if compression not in _CODECS:
        raise ConfigurationError(f"write_orc: compression={compression!r}: choose one of {', '.join(_CODECS)}")
    for field in schema:
        try:
            _writer(pa.BufferOutputStream(), compression).write(pa.schema([field]).empty_table())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise SchemaError(
                f"write_orc: column {field.name!r} is {field.type}, which ORC cannot store ({reason}); drop or cast it"
            ) from None


def _writer(where: Any, compression: str) -> Any:
    from pyarrow import orc  # noqa: PLC0415 - start-up time

    return orc.ORCWriter(where, compression=_CODECS[compression], stripe_size=_STRIPE_BYTES)


class OrcWriter:
    """Writes one ORC file."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: Path, compression: str) -> None:
        self._path = path
        path.touch(exist_ok=False)
        self._file = pa.OSFile(str(path), "wb")
        self._writer = _writer(self._file, compression)
        self._row_count = 0
        # A file without rows has the schema, too.
        self._writer.write(schema.empty_table())

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write(pa.Table.from_batches([batch]))
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Write the footer; return (rows, bytes, "")."""
        self._writer.close()
        self._file.close()
        return self._row_count, self._path.stat().st_size, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        if not self._file.closed:
            self._writer.close()
            self._file.close()
            self._path.unlink(missing_ok=True)
