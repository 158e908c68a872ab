"""Memory of a live process, searched as a core of it would be."""

import re
from pathlib import Path

import pytest

_REGION = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (r...) \S+ \S+ \S+ *(.*)")
_CHUNK_BYTES = 16 << 20


def found_in_memory(pid, needles):
    """Return those of some texts that are in memory which a process can read; needles: by their names, as bytes."""
    found, longest = set(), max(map(len, needles.values()))
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
                region = _REGION.match(line)
                if region is None or region[4].startswith((b"[v", b"/usr/", b"/lib")):
                    continue
                start, end = int(region[1], 16), int(region[2], 16)
                found |= _found(memory, start, end, needles, longest)
    except PermissionError:
        pytest.skip("this user may not look into its processes: kernel.yama.ptrace_scope")
    return found


def _found(memory, start, end, needles, longest):
    found, before = set(), b""
    while start < end:
        try:
            memory.seek(start)
            content = memory.read(min(_CHUNK_BYTES, end - start))
        except OSError:
            return found  # a region of a device, or one that is gone
        if not content:
            return found
        whole = before + content
        found |= {name for name, needle in needles.items() if needle in whole}
        before, start = content[-longest:], start + len(content)
    return found
