"""The manifest of a record data set: what makes a folder of Parquet files one consistent set.

    data set/
      part-00000.parquet, part-00001.parquet, ...
      _manifest.json          written last, by rename: a folder without it is no data set

    {"format": "drey-records", "version": 1,
     "schema": "<base64 of the Arrow IPC schema>",
     "files": [{"name": "part-00000.parquet", "rows": 700000, "bytes": 40100200, "crc32c": null}, ...],
     "row_count": 1400000, "size_bytes": 80200400,
     "columns": {"CurrencyID": {"min": 1, "max": 492, "null_count": 0, "distinct_estimate": 492,
                                "heavy_keys": [["1", 0.93]]}, ...},
     "producer": "spark-export", "bad_rows": 0}

Spark's export and Drey's own ``write_records`` produce it, ``read_records`` and Spark read it. ``heavy_keys`` are
values (as text) with their share of all rows: what a planner must know to see skew coming. Unknown numbers are null.

Source: the manifests of table formats such as Apache Iceberg, reduced to one snapshot of one folder.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

import msgspec

from engine.errors import DataError, PlanError

MANIFEST_NAME = "_manifest.json"
FORMAT_NAME = "drey-records"
VERSION = 1

class ManifestFile(msgspec.Struct, frozen=True):
    """One file of the set, by its name inside the folder."""

    name: str
    rows: int
    bytes: int
    crc32c: int | None = None


class ManifestColumn(msgspec.Struct, frozen=True):
    """Statistics of one column over the whole set."""

    min: bool | int | float | str | None = None
    max: bool | int | float | str | None = None
    null_count: int | None = None
    distinct_estimate: int | None = None
    heavy_keys: tuple[tuple[str, float], ...] = ()


class RecordsManifest(msgspec.Struct, frozen=True):
    """The whole manifest."""

    format: str
    version: int
    schema: str
    files: tuple[ManifestFile, ...]
    row_count: int
    size_bytes: int
    columns: dict[str, ManifestColumn] = {}
    producer: str = ""
    bad_rows: int = 0

    @property
    def schema_ipc(self) -> bytes:
        """The Arrow IPC schema message."""
        return base64.b64decode(self.schema)


def make_manifest(
    schema_ipc: bytes,
    files: tuple[ManifestFile, ...],
    columns: dict[str, ManifestColumn],
    producer: str,
    bad_rows: int = 0,
) -> RecordsManifest:
    """Return the manifest of these files; counts are their sums."""
    return RecordsManifest(
        FORMAT_NAME,
        VERSION,
        base64.b64encode(schema_ipc).decode("ascii"),
        files,
        sum(file.rows for file in files),
        sum(file.bytes for file in files),
        columns,
        producer,
        bad_rows,
    )


def write_manifest(folder: Path, manifest: RecordsManifest) -> None:
    """Write the manifest durably under its final name: temporary file, fsync, rename, fsync of the folder."""
    temporary = folder / f".{MANIFEST_NAME}.tmp"
    with temporary.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST_NAME)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(folder: Path) -> RecordsManifest:
    """Return the manifest of a data set; a folder without one, or with a damaged one, is a clear error."""
    path = folder / MANIFEST_NAME
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=RecordsManifest)
    except FileNotFoundError:
        raise PlanError(
            f"{folder} is no record data set: it has no {MANIFEST_NAME}. Its export may not have finished; "
            "for a plain folder of files use read_parquet or read_csv"
        ) from None
    except msgspec.DecodeError as error:
        raise DataError(f"{path} is damaged: {error}") from error
    if manifest.format != FORMAT_NAME or manifest.version != VERSION:
        raise DataError(f"{path}: expected {FORMAT_NAME} version {VERSION}, found {manifest.format} {manifest.version}")
    for file in manifest.files:
        if Path(file.name).name != file.name or file.name.startswith("."):
            raise DataError(f"{path}: {file.name!r} is not a name of a file in the folder")
    return manifest


def check_files(folder: Path, manifest: RecordsManifest) -> None:
    """Raise DataError when a file of the manifest is missing or has another size."""
    for file in manifest.files:
        path = folder / file.name
        try:
            size_bytes = path.stat().st_size
        except FileNotFoundError:
            raise DataError(f"{path} is missing, but {MANIFEST_NAME} names it") from None
        if size_bytes != file.bytes:
            raise DataError(f"{path} has {size_bytes} bytes, {MANIFEST_NAME} says {file.bytes}")
