"""Memory limits of the kernel for this process: those of its control group, as containers have one; what it holds.

    limit_bytes() -> int | None       the least limit on the way up from this process's group; None: no limit
    kill_count() -> int               processes of the group that the kernel has ended for want of memory
    machine_bytes() -> int            memory that there is for us: of the machine, or of the container
    anonymous_bytes() -> int          resident memory of this process that no file stands behind

    /proc/self/cgroup    4:memory:/path      first version     /sys/fs/cgroup/memory/path/memory.limit_in_bytes
                         0::/path            second version    /sys/fs/cgroup/path/memory.max

Inside a container the path may be one of the host that cannot be seen here; the group's files then lie at the top.
A limit larger than the machine is none.

Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_OWN_SIZES = Path("/proc/self/statm")


def machine_bytes(root: Path = _ROOT, own_groups: Path = _OWN_GROUPS) -> int:
    """Return the memory that there is for this process: the machine's, or less in a container."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = limit_bytes(root, own_groups)
    return physical if limit is None else min(physical, limit)


def anonymous_bytes(own_sizes: Path = _OWN_SIZES) -> int:
    """Return the resident memory of this process that no file stands behind; 0 where the system does not say it."""
    resident, of_files = _resident_pages(own_sizes)
    return (resident - of_files) * os.sysconf("SC_PAGE_SIZE")


def resident_bytes(own_sizes: Path = _OWN_SIZES) -> int:
    """Return the resident memory of this process; 0 where the system does not say it."""
    return _resident_pages(own_sizes)[0] * os.sysconf("SC_PAGE_SIZE")


def limit_bytes(root: Path = _ROOT, own_groups: Path = _OWN_GROUPS) -> int | None:
    """Return the least memory limit of this process's group and those above it; None where there is none."""
    limits = []
    for folder in _folders(root, own_groups):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(folder / name).strip()
            if text.isdigit():
                limits.append(int(text))
    return min(limits, default=None)


def kill_count(root: Path = _ROOT, own_groups: Path = _OWN_GROUPS) -> int:
    """Return the number of processes of this control group that the kernel ended for lack of memory."""
    for folder in _folders(root, own_groups):
        for name in ("memory.events", "memory.oom_control"):
            for line in _read(folder / name).splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
    return 0


def _resident_pages(own_sizes: Path) -> tuple[int, int]:
    """Return the pages of this process that are resident, and those of them that a file stands behind."""
    fields = _read(own_sizes).split()
    return (0, 0) if len(fields) < 3 else (int(fields[1]), int(fields[2]))


def _folders(root: Path, own_groups: Path) -> Iterator[Path]:
    """Yield the folders of the memory groups that this process is in, the innermost first."""
    for line in _read(own_groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root / "memory" if controllers else root
        inner = PurePosixPath(path)
        for each in (inner, *inner.parents):
            yield top / each.relative_to("/") if each.is_absolute() else top / each


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError:
        return ""
