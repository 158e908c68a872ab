"""What a process may hold over its idle size, and the control group that lets it have no more.

    bound = managed + network + 64 MB + 16 MB a slot + three of the largest records        Python workers apart

The process enters the group when it is idle: what it holds until then stays charged where it was, so the group's limit
is the bound itself. Both versions of control groups are known; where none can be made, the kernel's record of the
largest resident size is looked at alone.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.config.loader import configuration_from_texts
from engine.memory.process_memory import process_memory

MEGABYTE = 1 << 20
_FIXED_BYTES = 64 * MEGABYTE
_SLOT_BYTES = 16 * MEGABYTE
#: seconds that what was started in a group may need to be gone
_GONE_S = 30.0


def bound_bytes(settings: Mapping[str, str], slots: int, record_bytes: int) -> int:
    """Return what may be held over idle with these settings."""
    sizes = process_memory(configuration_from_texts(settings), slots, 1 << 34)
    return sizes.managed_bytes + sizes.network_bytes + _FIXED_BYTES + slots * _SLOT_BYTES + 3 * record_bytes


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path | None]:
    """Yield the folder of a new control group with that limit and without swap; None where none can be made."""
    folder = _made_group(limit_bytes)
    try:
        yield folder
    finally:
        ends_s = time.monotonic() + _GONE_S
        while folder is not None and folder.exists():
            try:
                folder.rmdir()
            except OSError:
                if time.monotonic() > ends_s:
                    raise
                time.sleep(0.02)


def _made_group(limit_bytes: int) -> Path | None:
    root = Path("/sys/fs/cgroup")
    for number, (top, limit) in enumerate(((root / "memory", "memory.limit_in_bytes"), (root, "memory.max"))):
        folder = top / f"drey-acceptance-{os.getpid()}-{time.monotonic_ns()}-{number}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            try:
                (folder / limit).write_text(str(limit_bytes))
            except OSError:
                folder.rmdir()
                continue
            for swap in ("memory.swap.max", "memory.swappiness"):
                with contextlib.suppress(OSError):
                    (folder / swap).write_text("0")
            return folder
    return None


def kill_count(group: Path) -> int:
    """Return how many processes of a group the kernel has ended for want of memory."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            for line in (group / name).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
    return 0


def peak_bytes(group: Path) -> int:
    """Return the largest size that a group has had, page cache included; 0 where the kernel does not say it."""
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        with contextlib.suppress(OSError):
            return int((group / name).read_text())
    return 0


class WatchedProcess:
    """A process by its id: what it holds."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._folder = Path(f"/proc/{pid}")

    def begin_peak(self) -> None:
        """Forget the largest resident size so far."""
        (self._folder / "clear_refs").write_text("5")

    @property
    def resident_bytes(self) -> int:
        return self._status_bytes("VmRSS")

    @property
    def peak_bytes(self) -> int:
        return self._status_bytes("VmHWM")

    @property
    def descriptors(self) -> list[str]:
        """What its open descriptors are, sorted."""
        found = []
        for link in (self._folder / "fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(str(link.readlink()))
        return sorted(found)

    def _status_bytes(self, name: str) -> int:
        for line in (self._folder / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
        return 0
