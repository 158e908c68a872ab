"""Temporary files of a local file system, which a process that is killed leaves behind.

    temporary_path("/t/owner.json")     /t/.owner.json.4f9c2a10-0001b207-5d3c8e11      machine, process, random number
    temporary_names_of(name)            a regular expression of the names of such files beside a file
    is_left(name)                       whether a process of this machine made it that has ended
    remove_left(folder)                 removes those directly in a folder

The machine is its name and its boot, so that no other machine, and no container with processes of its own, takes a
process for one that has ended.

Held by: tests/storage/test_local.py
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import zlib
from functools import cache
from pathlib import Path
from typing import Final

_MARK: Final = r"([0-9a-f]{8})-([0-9a-f]{8})-[0-9a-f]{8}"
_NAME: Final = re.compile(rf"\..+\.{_MARK}")


def temporary_path(path: str) -> str:
    """Return the path of a temporary file beside a file."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{_machine()}-{os.getpid():08x}-{os.urandom(4).hex()}")


def temporary_names_of(name: str) -> str:
    """Return a regular expression of the names of temporary files beside a file of this name."""
    return rf"\.{re.escape(name)}\.{_MARK}"


def is_left(name: str) -> bool:
    """Return whether a file of this name was made by a process of this machine that has ended."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] != _machine():
        return False
    import psutil

    return not psutil.pid_exists(int(found[2], 16))


def remove_left(folder: str) -> bool:
    """Remove the temporary files in a folder that are left; return whether there was one."""
    left: list[str] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        left = [name for name in os.listdir(folder) if is_left(name)]
    for name in left:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    return bool(left)


@cache
def boot_id() -> str:
    """Return the number of this run of the machine."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    import psutil

    return str(psutil.boot_time())


@cache
def _machine() -> str:
    return f"{zlib.crc32(f'{socket.gethostname()} {boot_id()}'.encode()):08x}"
