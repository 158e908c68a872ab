"""What the machine can do at this moment, in GB/s on one thread: the scale on which to read the table.

The host of a virtual machine hands memory out when it is first touched, at a tenth of the speed with which the guest
clears it later; which engine pays for that is chance. ``warm_memory`` touches and frees more than any of them takes.
Files are read before the first engine's turn for the same reason: ``warm_files`` leaves them in the page cache.
"""

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import lz4.block

_BYTES = 256 << 20
_WARM_BYTES = 2 << 30
_POPULATE_WRITE = 23


def _rate(work: Callable[[], object], size_bytes: int = _BYTES) -> float:
    began = time.perf_counter()
    work()
    return size_bytes / (time.perf_counter() - began) / 1e9


def _write_file(path: Path, data: memoryview) -> None:
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(data), 1 << 20):
            file.write(data[start : start + (1 << 20)])
        os.fsync(file.fileno())


def warm_memory() -> None:
    """Touch memory and give it back, so that the next process finds it where the host has put it already."""
    with mmap.mmap(-1, _WARM_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        try:
            memory.madvise(_POPULATE_WRITE)
        except OSError:  # kernels before 5.14 do not know it
            for start in range(0, _WARM_BYTES, mmap.PAGESIZE):
                memory[start] = 1


def cool_files(folder: Path) -> None:
    """Have no file below a folder in the page cache, so that the next reader's control group is charged for it."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm_files(folder: Path) -> None:
    """Read all files below a folder once, so that whoever comes first does not wait for the disk."""
    piece = bytearray(1 << 20)
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(piece):
                    pass


def machine_limits(folder: Path) -> dict[str, float]:
    """Return GB/s of each limit; ``folder`` is where the disk is measured."""
    with mmap.mmap(-1, _BYTES) as first, mmap.mmap(-1, _BYTES) as second:
        zeros = bytes(1 << 20)
        words = os.urandom(4096) + bytes(4096)

        def fill(target: mmap.mmap) -> None:
            for start in range(0, _BYTES, len(zeros)):
                target[start : start + len(zeros)] = words * (len(zeros) // len(words))

        limits = {"first touch": _rate(lambda: fill(first)), "warm write": _rate(lambda: fill(first))}
        fill(second)
        source, target = memoryview(first), memoryview(second)

        def copy() -> None:
            target[:] = source

        limits["memcpy"] = _rate(copy)
        limits["lz4 compress"] = _rate(lambda: lz4.block.compress(source[: _BYTES // 4]), _BYTES // 4)
        path = folder / "disk-write"
        limits["disk write and sync"] = _rate(lambda: _write_file(path, source))
        path.unlink()
        source.release()
        target.release()
    return limits
