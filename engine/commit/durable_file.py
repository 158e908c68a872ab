"""A small file that is there whole or not at all: created if absent, or replaced.

    temporary file ─► write, fsync ─► link (create) or rename (replace) ─► fsync of the folder

``link`` fails when the name is taken, which makes creation atomic among processes; where a file system has no hard
links the file is created exclusively instead (then a crash may leave it cut short, and its reader refuses it).

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})


def create_if_absent(path: Path, content: bytes, is_durable: bool = True) -> bool:
    """Create ``path`` with that content; return False, and change nothing, when it exists.

    is_durable: False where the file is not needed after a crash of the machine: then nothing is synchronised.
    """
    temporary = _write_temporary(path, content, is_durable)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _create_exclusively(path, content, is_durable)
    finally:
        temporary.unlink(missing_ok=True)
    if is_durable:
        fsync_folder(path.parent)
    return True


def replace_file(path: Path, content: bytes, is_durable: bool = True) -> None:
    """Make ``path`` a file of that content, whether it exists or not; ``is_durable`` as for ``create_if_absent``."""
    temporary = _write_temporary(path, content, is_durable)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if is_durable:
        fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable; no error on file systems that cannot do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_temporary(path: Path, content: bytes, is_durable: bool) -> Path:
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        _create_exclusively(temporary, content, is_durable)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _create_exclusively(path: Path, content: bytes, is_durable: bool) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
    return True
