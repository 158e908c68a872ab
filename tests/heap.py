"""What a process holds: of the C heap, structures beside the pages, which no manager counts; and of memory at all."""

import ctypes
import os
from pathlib import Path


class _Mallinfo(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


_mallinfo2 = ctypes.CDLL(None).mallinfo2
_mallinfo2.restype = _Mallinfo


def heap_bytes() -> int:
    """Return the bytes that all arenas have handed out, mapped ones included; small Python objects lie elsewhere."""
    found = _mallinfo2()
    return int(found.uordblks) + int(found.hblkhd)


def resident_bytes() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
