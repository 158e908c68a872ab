"""PidFile: which daemons of one kind this user has started here.

    $DREY_PID_DIR/flink-<user>-taskmanager.pid             one pid a line, the latest one last; flock'd while it is used
    $DREY_PID_DIR/flink-<user>-taskmanager.pid.processes   pid, number of the log files, identity of the process, and
                                                           pid and identity of its supervisor where it has one

    with PidFile(path).locked() as processes:      list[DaemonProcess], living and dead; written back on exit
        ...

A pid alone says little: it may belong to another process by now. The identity is the boot of the machine and the
start time of the process in it; a line whose process has another one is stale. Both files go when the last line does.
A line whose supervisor runs is alive even while its process is dead: the supervisor will start the next one.

Source: flink-daemon.sh, whose pid files have the same names and lines; identities are ours.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class DaemonProcess:
    """One line: ``number`` is in the names of its log files; ``identity`` is "" when only the pid is known."""

    pid: int
    number: int
    identity: str
    supervisor: int = 0
    supervisor_identity: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether the very process of this line, or its supervisor, still runs."""
        return bool(self.living_pids)

    @property
    def living_pids(self) -> tuple[int, ...]:
        """The supervisor first, then the process, of those that run."""
        both = ((self.supervisor, self.supervisor_identity), (self.pid, self.identity))
        return tuple(pid for pid, identity in both if pid and _runs(pid, identity))


def _runs(pid: int, identity: str) -> bool:
    now = process_identity(pid)
    return now != "" and identity in ("", now)


def process_identity(pid: int) -> str:
    """Return what tells a running process from all others on this machine, or "" when there is none of that pid."""
    try:
        # The second field is the program's name in parentheses and may contain spaces.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except (OSError, ValueError):
        return ""
    # A zombie has ended; only its parent has not asked yet.
    return "" if fields[0] in "ZX" else f"{boot}/{fields[19]}"


class PidFile:
    """The daemons of one kind."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identities = path.with_name(f"{path.name}.processes")

    @contextmanager
    def locked(self) -> Iterator[list[DaemonProcess]]:
        """Yield all lines under the lock; what the list holds on exit is written back."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = self._lock(os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
        try:
            processes = self._read()
            try:
                yield processes
            finally:
                self._write(descriptor, processes)
        finally:
            os.close(descriptor)

    def read(self) -> list[DaemonProcess]:
        """Return all lines as they are when nobody changes them."""
        try:
            descriptor = self._lock(os.O_RDONLY, fcntl.LOCK_SH)
        except FileNotFoundError:
            return []
        try:
            return self._read()
        finally:
            os.close(descriptor)

    def _lock(self, access: int, kind: int) -> int:
        while True:
            descriptor = os.open(self.path, access | os.O_CLOEXEC, 0o644)
            fcntl.flock(descriptor, kind)
            if os.fstat(descriptor).st_nlink > 0:
                return descriptor
            os.close(descriptor)  # whoever had the lock has removed the file

    def _read(self) -> list[DaemonProcess]:
        known: dict[int, DaemonProcess] = {}
        for line in _lines(self._identities):
            pid, number, identity, *supervisor = line.split()
            known[int(pid)] = DaemonProcess(int(pid), int(number), identity)
            if supervisor:
                known[int(pid)] = DaemonProcess(int(pid), int(number), identity, int(supervisor[0]), supervisor[1])
        return [known.get(int(line)) or DaemonProcess(int(line), 0, "") for line in _lines(self.path)]

    def _write(self, descriptor: int, processes: list[DaemonProcess]) -> None:
        if not processes:
            self._identities.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
            return
        known = [process for process in processes if process.identity]
        self._identities.write_text("".join(map(_identity_line, known)))
        content = "".join(f"{process.pid}\n" for process in processes).encode()
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))


def _identity_line(process: DaemonProcess) -> str:
    supervisor = f" {process.supervisor} {process.supervisor_identity}" if process.supervisor else ""
    return f"{process.pid} {process.number} {process.identity}{supervisor}\n"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
