"""Deletion vectors: the rows of a file that are deleted, as the log and files beside the data have them.

    vectors = NewVectors(place, job id)
    vectors.add(rows) -> descriptor          of the log; small ones are within it, the others go into one file
    vectors.write()                          the file, where it is needed; repeated, the same
    rows_of(place, descriptor) -> BitMap64   the rows of one that is there

    file     1 │ length, big endian │ data │ CRC-32 of the data, big endian │ length │ data │ ...
    data     1681511377, little endian │ 64-bit Roaring bitmap in its portable form
    inline   the data in Z85, filled with zeros to a multiple of four bytes

Source: the Delta transaction log protocol, "Deletion Vectors".
Held by: tests/delta_tables/test_deletion_vectors.py
"""

from __future__ import annotations

import struct
import zlib
from base64 import b85decode, b85encode
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import UUID

from engine.delta_tables.table_write import vector_file
from engine.errors import DataError
from engine.ids import JobId
from engine.storage.file_systems import file_system_of

if TYPE_CHECKING:
    from pyroaring import BitMap64

_MAGIC: Final = 1681511377
_VERSION: Final = b"\1"
#: bytes of a vector that stands in the log itself
INLINE_BYTES_MAX: Final = 256
_UUID_CHARACTERS: Final = 20
_B85: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)


def encoded(rows: BitMap64) -> bytes:
    """Return the data of a vector."""
    rows.run_optimize()
    return struct.pack("<i", _MAGIC) + bytes(rows.serialize())


def decoded(data: bytes, where: str) -> BitMap64:
    """Return the rows of a vector's data. Raises: DataError."""
    from pyroaring import BitMap64

    if len(data) < 12 or struct.unpack_from("<i", data)[0] != _MAGIC:
        raise DataError(f"{where}: it is no deletion vector of Delta; read a version of the table before it")
    return BitMap64.deserialize(data[4:])


def _z85(data: bytes) -> str:
    return b85encode(data + b"\0" * (-len(data) % 4)).translate(_TO_Z85).decode()


def _from_z85(text: str) -> bytes:
    return b85decode(text.encode().translate(_FROM_Z85))


class NewVectors:
    """The vectors of a commit."""

    def __init__(self, place: str, job_id: JobId) -> None:
        folder = f"drey-{job_id}"
        self._path = f"{place}/{folder}/{vector_file(job_id)}"
        self._word = f"{folder}{_z85(UUID(hex=str(job_id)).bytes)}"
        self._content = bytearray(_VERSION)

    def add(self, rows: BitMap64) -> dict[str, Any]:
        """Return the descriptor of a vector."""
        data = encoded(rows)
        known = {"sizeInBytes": len(data), "cardinality": len(rows)}
        if len(data) <= INLINE_BYTES_MAX:
            return {"storageType": "i", "pathOrInlineDv": _z85(data), **known}
        offset = len(self._content)
        self._content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        return {"storageType": "u", "pathOrInlineDv": self._word, "offset": offset, **known}

    def write(self, *, is_durable: bool = True) -> None:
        """Write the file, where a vector is in it."""
        if len(self._content) > len(_VERSION):
            file_system_of(self._path).replace(self._path, bytes(self._content), is_durable)


def _file_of(place: str, descriptor: dict[str, Any]) -> str:
    word: str = descriptor["pathOrInlineDv"]
    if descriptor["storageType"] == "p":
        return unquote(word).removeprefix("file://")
    prefix, name = word[:-_UUID_CHARACTERS], UUID(bytes=_from_z85(word[-_UUID_CHARACTERS:]))
    folder = f"{place}/{prefix}".rstrip("/")
    return f"{folder}/{vector_file(JobId(name.hex))}"


def rows_of(place: str, descriptor: dict[str, Any]) -> BitMap64:
    """Return the rows of a vector. Raises: DataError (damaged), OSError (its file is missing)."""
    size = descriptor["sizeInBytes"]
    if descriptor["storageType"] == "i":
        return decoded(_from_z85(descriptor["pathOrInlineDv"])[:size], f"{place}: a deletion vector in the log")
    path, offset = _file_of(place, descriptor), descriptor.get("offset") or 0
    with file_system_of(path).open_ranges(path) as file:
        found = file.read_at(offset, size + 8)
    data = found[4:-4]
    if len(data) != size or found[:4] != struct.pack(">i", size) or found[-4:] != struct.pack(">I", zlib.crc32(data)):
        raise DataError(f"{path}: the deletion vector at byte {offset} is damaged; restore the file, or the table")
    return decoded(data, path)
