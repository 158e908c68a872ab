"""The manifest of a record data set: ``_manifest.json`` in a folder of Parquet parts, written last and at once.

    {"format": "drey-records", "version": 1,
     "schema": <Arrow IPC schema, base64>,
     "row_count": 12, "size_bytes": 3400,
     "files": [{"name": "part-00000.parquet", "rows": 12, "bytes": 3400, "crc32": null,
                "footer_crc32": null}],
     "columns": {"RIC": {"min": "A", "max": "Z", "null_count": 0, "distinct_estimate": 12.0,
                         "heavy_keys": [["A", 0.25]]}},
     "producer": "spark-export", "bad_rows": 0, "sorted_by": ["RIC"], "partitioned_by": []}

A folder without a manifest is not a data set: its writer did not finish. In an object store the manifest is what
switches from old files to new ones: it is put when all new ones are there, and before any old one goes. A reader checks
that every file is there with its size and its footer. No Arrow here: Spark's side writes the same.

Held by: tests/connectors/test_records_writer.py
"""

from __future__ import annotations

import datetime
import decimal
import math
import os
import zlib
from collections.abc import Iterable

import msgspec

from engine.errors import DataError, PlanError
from engine.storage.file_systems import file_system_of
from engine.storage.known_objects import in_parallel

MANIFEST_NAME = "_manifest.json"
FORMAT = "drey-records"
VERSION = 1

PathLike = str | os.PathLike[str]
Value = bool | int | float | str | None

#: values with at least this share of the rows are listed
HEAVY_SHARE_MIN = 0.02
HEAVY_KEYS_MAX = 16
#: length of the metadata and magic bytes
_FOOTER_END_BYTES = 8
_READ_BYTES = 1 << 20
#: objects of a store that are asked for at the same time
_AT_ONCE = 16


def plain_value(value: object) -> Value:
    """Return a bound as JSON has it; what JSON cannot hold exactly becomes text, or None where text has no order."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal | datetime.date):
        return str(value)
    return None


class RecordsFile(msgspec.Struct, frozen=True):
    """One part file."""

    name: str
    rows: int
    bytes: int
    #: zlib.crc32 of the whole file, or None when the writer did not compute it
    crc32: int | None = None
    #: checksum of the Parquet footer, which has none of its own; None: unknown
    footer_crc32: int | None = None


class RecordsColumn(msgspec.Struct, frozen=True):
    """Statistics of a column; None: unknown. ``heavy_keys``: (text of the value, share of rows)."""

    min: Value = None
    max: Value = None
    null_count: int | None = None
    distinct_estimate: float | None = None
    heavy_keys: tuple[tuple[str, float], ...] = ()


class RecordsManifest(msgspec.Struct, frozen=True):
    """The whole manifest; ``schema`` is an Arrow IPC schema message (base64 in the file)."""

    schema: bytes
    files: tuple[RecordsFile, ...]
    row_count: int
    size_bytes: int
    columns: dict[str, RecordsColumn] = {}
    #: program that wrote it, and the number of bad rows that it rejected
    producer: str = ""
    bad_rows: int = 0
    #: columns by which each part is sorted, ascending; () not known
    sorted_by: tuple[str, ...] = ()
    #: columns whose equal values are in one part; () not known
    partitioned_by: tuple[str, ...] = ()
    format: str = FORMAT
    version: int = VERSION


def file_crc32(path: PathLike) -> int | None:
    """Return zlib.crc32 of a whole file; None for an object, which would have to be fetched."""
    value, place = 0, os.fspath(path)
    files = file_system_of(place)
    if files.objects is not None:
        return None
    with files.open_stream(place) as file:
        while data := file.read(_READ_BYTES):
            value = zlib.crc32(data, value)
    return value


def footer_crc32(path: PathLike) -> int:
    """Return zlib.crc32 of the footer of a Parquet file: metadata, their length, magic bytes."""
    place = os.fspath(path)
    with file_system_of(place).open_ranges(place, is_tail_wanted=True) as file:
        size = file.size_bytes
        length = int.from_bytes(file.read_at(max(0, size - _FOOTER_END_BYTES), 4), "little") + _FOOTER_END_BYTES
        return zlib.crc32(file.read_at(max(0, size - length), length))


def encode_manifest(manifest: RecordsManifest) -> bytes:
    """Return the manifest as JSON, indented, keys in the order above."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def decode_manifest(data: bytes, path: str) -> RecordsManifest:
    """Return the manifest in JSON bytes; DataError when it is malformed or of another format."""
    try:
        manifest = msgspec.json.decode(data, type=RecordsManifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"file {path}: not a manifest of a record data set: {error}") from None
    if manifest.format != FORMAT or manifest.version != VERSION:
        raise DataError(
            f"file {path}: format {manifest.format!r} version {manifest.version}; expected {FORMAT!r} version {VERSION}"
        )
    return manifest


def write_manifest(folder: PathLike, manifest: RecordsManifest) -> None:
    """Write the manifest of a folder whose parts are complete: it is there whole or not at all."""
    place = f"{os.fspath(folder)}/{MANIFEST_NAME}"
    file_system_of(place).replace(place, encode_manifest(manifest))


def read_manifest(folder: PathLike) -> RecordsManifest:
    """Return the manifest of a data set, having checked that its files are there with their sizes.

    Raises: PlanError when the folder is none, DataError when it is damaged.
    """
    place = os.fspath(folder)
    path, files = f"{place}/{MANIFEST_NAME}", file_system_of(place)
    known = files.find(path)
    if known is None or not known.is_file:
        parent = files.find(place)
        is_folder = parent is not None and parent.is_folder
        what = "it has no _manifest.json (an export that did not finish?)" if is_folder else "no such folder"
        raise PlanError(f"read_records({place!r}): not a record data set: {what}")
    manifest = decode_manifest(files.read(path), path)
    for file in manifest.files:
        if "/" in file.name or file.name in ("", ".", "..") or file.name.startswith("."):
            raise DataError(f"file {path}: {file.name!r} is not the name of a file in the folder")
    sizes = _sizes_of(place, manifest.files)

    def check(file: RecordsFile) -> None:
        part = f"{place}/{file.name}"
        if file.name not in sizes:
            raise DataError(f"file {part} is missing, although the manifest lists it")
        if sizes[file.name] != file.bytes:
            raise DataError(f"file {part} has {sizes[file.name]} bytes, the manifest says {file.bytes}")
        if file.footer_crc32 is not None and file.footer_crc32 != footer_crc32(part):
            raise DataError(f"file {part}: its footer is not the one that the manifest knows; it was changed since")

    if files.objects is None:
        for file in manifest.files:
            check(file)
    else:
        for _ in in_parallel(check, manifest.files, _AT_ONCE):
            pass
    return manifest


def _sizes_of(folder: str, listed: Iterable[RecordsFile]) -> dict[str, int]:
    """Return the bytes of files by name, of those that are there."""
    files = file_system_of(folder)
    if files.objects is not None:
        return {name: size for name, size, _ in files.objects.below(folder)}
    found = {file.name: files.find(f"{folder}/{file.name}") for file in listed}
    return {name: status.size_bytes for name, status in found.items() if status is not None and status.is_file}
