"""unpack: archives that came with a job, into a folder of ours, within bounds.

An archive is untrusted data: it may name files outside of the folder (``../``, absolute, drive letters), links and
devices, one file twice, a million entries, or a gigabyte of zeros in a kilobyte. All of that is refused before or
while it is unpacked, and nothing of it stays. Names are checked part by part and files are made anew (O_EXCL), so that
no link can lead out. Sizes are counted as they are written; what the archive says of them is not believed.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from engine.errors import DataError

ENTRIES_MAX = 50_000
BYTES_MAX = 1 << 30
#: largest ratio of unpacked to packed bytes, for archives beyond _RATIO_FROM_BYTES
RATIO_MAX = 100
_RATIO_FROM_BYTES = 16 << 20
_NAME_MAX = 1024
_CHUNK_BYTES = 256 * 1024
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


def unpack(
    archive: Path,
    folder: Path,
    entries_max: int = ENTRIES_MAX,
    bytes_max: int = BYTES_MAX,
    reserve: Callable[[int], None] = lambda size_bytes: None,
) -> Path:
    """Unpack a zip or wheel into ``folder``, which does not exist yet, and return it; DataError says why not.

    ``reserve`` is called with bytes before they are written; what it raises ends the unpacking.
    """
    folder.mkdir(mode=0o700)
    try:
        _check_directory(archive, entries_max)
        with zipfile.ZipFile(archive) as packed:
            _unpack_entries(packed, folder, entries_max, min(bytes_max, _allowed_bytes(archive)), reserve)
    except BaseException as error:
        shutil.rmtree(folder)
        if isinstance(error, DataError) or not _is_damage(error):
            raise
        raise DataError(f"a module archive of the job is damaged: {error}") from error
    return folder


def _is_damage(error: BaseException) -> bool:
    """Whether an error means a damaged archive: the library raises all kinds of errors for damage."""
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL  # a position before the file's beginning
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


def _allowed_bytes(archive: Path) -> int:
    return max(_RATIO_FROM_BYTES, archive.stat().st_size * RATIO_MAX)


def _check_directory(archive: Path, entries_max: int) -> None:
    """Refuse a directory of too many entries before the library reads it: each entry is at least 46 bytes."""
    tail_bytes = 66_000
    size = archive.stat().st_size
    with archive.open("rb") as file:
        file.seek(max(0, size - tail_bytes))
        tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        raise DataError("a module archive of the job is not a zip archive")
    count = int.from_bytes(tail[end + 10 : end + 12], "little")
    directory_bytes = int.from_bytes(tail[end + 12 : end + 16], "little")
    if count > entries_max or directory_bytes > entries_max * (_NAME_MAX + 46):
        raise DataError(f"a module archive of the job has more than {entries_max} entries")


def _unpack_entries(
    packed: zipfile.ZipFile, folder: Path, entries_max: int, bytes_max: int, reserve: Callable[[int], None]
) -> None:
    entries = packed.infolist()
    if len(entries) > entries_max:
        raise DataError(f"a module archive of the job has {len(entries)} entries, at most {entries_max} are allowed")
    left = bytes_max
    for entry in entries:
        target = folder.joinpath(*_checked_parts(entry))
        try:
            if entry.is_dir():
                target.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                left -= _unpack_file(packed, entry, target, left, reserve)
        except (FileExistsError, NotADirectoryError) as error:
            raise DataError(f"a module archive of the job has {entry.filename[:100]!r} twice") from error


def _checked_parts(entry: zipfile.ZipInfo) -> tuple[str, ...]:
    # The name as it is in the archive; the library's form of it may hide a NUL or a backslash.
    name = entry.orig_filename
    parts = PurePosixPath(name).parts
    kind = stat.S_IFMT(entry.external_attr >> 16)
    is_wrong = (
        not parts
        or len(name) > _NAME_MAX
        or name.startswith("/")
        or any(part in ("..", ".") or len(part.encode()) > 255 for part in parts)
        or any(character in name for character in ("\\", "\0", ":"))
        or kind not in (0, stat.S_IFREG, stat.S_IFDIR)
    )
    if is_wrong:
        raise DataError(f"a module archive of the job holds {name[:100]!r}, which is not a plain file within it")
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        raise DataError(f"a module archive of the job has {name[:100]!r} encrypted or packed in an unusual way")
    return parts


def _unpack_file(
    packed: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, bytes_max: int, reserve: Callable[[int], None]
) -> int:
    """Write a file and return its size."""
    size = 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file, packed.open(entry) as content:
        while chunk := content.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > bytes_max:
                raise DataError(
                    "a module archive of the job is too large when unpacked: at most "
                    f"{BYTES_MAX >> 20} MB and {RATIO_MAX} times its size are allowed"
                )
            reserve(len(chunk))
            file.write(chunk)
    return size
