"""The two renames that Python lacks: exchanging two paths, and renaming onto nothing.

    exchange(first, second)      both names stay taken at every moment
    rename_if_absent(old, new)   fails with FileExistsError when ``new`` is there (rename(2) replaces empty folders)

Both call renameat2(2). Kernels and file systems without it: ``exchange`` returns False and ``rename_if_absent`` looks
first and renames then, which leaves a moment in which another process may create ``new``.

Held by: tests/storage/test_local_folders.py
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


@cache
def _renameat2() -> Any:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _call(old: str, new: str, flags: int) -> bool:
    """Return whether the kernel did it; False: not supported here. Raises OSError of the right kind otherwise."""
    function = _renameat2()
    if function is None:
        return False
    if function(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), ctypes.c_uint(flags)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), old, None, new)


def exchange(first: str, second: str) -> bool:
    """Exchange what two names mean; both must exist. Return False where that is not supported."""
    return _call(first, second, _RENAME_EXCHANGE)


def rename_if_absent(old: str, new: str) -> None:
    """Rename; FileExistsError when ``new`` exists, even as an empty folder."""
    if _call(old, new, _RENAME_NOREPLACE):
        return
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    os.rename(old, new)
