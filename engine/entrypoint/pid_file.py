"""PidFile: which daemons of one kind this user has started here.

    $DREY_PID_DIR/flink-<user>-taskmanager.pid             one pid a line, the latest one last; flock'd while it is used
    $DREY_PID_DIR/flink-<user>-taskmanager.pid.processes   pid, number of the log files, identity of the process, and
                                                           pid and identity of its supervisor where it has one

    with PidFile(path, "taskmanager").locked() as processes:      list[DaemonProcess], living and dead; written back
        ...

A pid alone says little: it may belong to another process by now. The identity is the boot of the machine and the
start time of the process in it; a line whose process has another one is stale. Both files go when the last line does.
A line whose supervisor runs is alive even while its process is dead: the supervisor will start the next one.

A line without identity counts only where its process is this user's and its command line is that of a daemon of this
kind; any other process with the number of a line here is not ours. It is skipped, with a warning.

Lines of these files get processes killed. So the files are this user's own, and no links: others' are refused
(NotPrivateError), and lines of another format are skipped, with a warning.

Source: flink-daemon.sh, whose pid files have the same names and lines; identities are ours.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.private_folder import NotPrivateError, make_private

_PROC = Path("/proc")
#: pattern of a pid; more digits are junk
_NUMBER = r"([1-9]\d{0,9})"
_PID_LINE = re.compile(_NUMBER)
#: identity of a process as _identity_line writes it; number 0 is the first log file's
_IDENTITY_LINE = re.compile(rf"{_NUMBER} (\d{{1,9}}) (\S+)(?: {_NUMBER} (\S+))?")
_SHOWN_MAX = 60
#: modules of daemons with another name
DAEMON_MODULES: Final = {"standalonejob": "standalone_job"}
_SUPERVISOR: Final = "engine.entrypoint.supervisor"
#: main class of a ZooKeeper server
ZOOKEEPER_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def _tell_on_stderr(text: str) -> None:
    sys.stderr.write(f"[WARN] {text}\n")


@dataclass(frozen=True)
class DaemonProcess:
    """One line: ``number`` is in the names of its log files; ``identity`` is "" when no such process was seen."""

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
        return tuple(pid for pid, identity in both if pid and identity and process_identity(pid) == identity)


def process_identity(pid: int) -> str:
    """Return a text that identifies a running process on this machine, or "" when none has that pid."""
    try:
        # The second field is the program's name in parentheses and may contain spaces.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except (OSError, ValueError):
        return ""
    # A zombie has ended; only its parent has not asked yet.
    return "" if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def is_daemon(pid: int, daemon: str) -> bool:
    """Return whether a process is this user's, and by its command line a daemon of a kind or its supervisor."""
    try:
        if (_PROC / str(pid)).stat().st_uid != os.geteuid():
            return False
        words = (_PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return False
    if daemon == "zookeeper" and ZOOKEEPER_MAIN in words:
        return True
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    is_supervised = module == _SUPERVISOR and daemon in words
    return is_supervised or module == f"engine.entrypoint.{DAEMON_MODULES.get(daemon, daemon)}"


class PidFile:
    """The daemons of one kind; ``daemon``: which, as the scripts call it."""

    def __init__(self, path: Path, daemon: str, tell: Callable[[str], None] = _tell_on_stderr) -> None:
        self.path = path
        self._daemon = daemon
        self._tell = tell
        self._said: set[tuple[Path, str]] = set()
        self._identities = path.with_name(f"{path.name}.processes")

    @contextmanager
    def locked(self) -> Iterator[list[DaemonProcess]]:
        """Yield all lines under the lock; what the list holds on exit is written back."""
        if not self.path.parent.is_dir():
            make_private(self.path.parent)
        descriptor = self._lock(os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
        try:
            processes = self._read()
            try:
                yield processes
            finally:
                self._write_or_tell(descriptor, processes)
        finally:
            os.close(descriptor)

    def read(self) -> list[DaemonProcess]:
        """Return all lines, read under the lock."""
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
            descriptor = open_own(self.path, access)
            fcntl.flock(descriptor, kind)
            if os.fstat(descriptor).st_nlink > 0:
                return descriptor
            os.close(descriptor)  # the holder of the lock has removed the file

    def _read(self) -> list[DaemonProcess]:
        known: dict[int, DaemonProcess] = {}
        for line in _lines(self._identities):
            fields = _IDENTITY_LINE.fullmatch(line)
            if fields is None:
                self._pass_over(self._identities, line)
                continue
            pid, number, identity, supervisor, its_identity = fields.groups()
            known[int(pid)] = DaemonProcess(int(pid), int(number), identity, int(supervisor or 0), its_identity or "")
        processes = []
        for line in _lines(self.path):
            if _PID_LINE.fullmatch(line) is None:
                self._pass_over(self.path, line)
                continue
            pid = int(line)
            process = known.get(pid) or DaemonProcess(pid, 0, process_identity(pid))
            if pid not in known and process.identity and not is_daemon(pid, self._daemon):
                self._pass_over(self.path, line, f"a process that is no {self._daemon} of this user")
                continue
            processes.append(process)
        return processes

    def _pass_over(self, path: Path, line: str, what: str = "a line that is no process") -> None:
        if (path, line) not in self._said:
            self._said.add((path, line))
            self._tell(f"{path}: passing over {what}: {line[:_SHOWN_MAX]!r}")

    def _write_or_tell(self, descriptor: int, processes: list[DaemonProcess]) -> None:
        """Write the lines; a full disk is no reason not to run what runs."""
        try:
            self._write(descriptor, processes)
        except OSError as error:
            pids = " ".join(str(process.pid) for process in processes)
            self._tell(
                f"{self.path} cannot be written: {error.strerror}. It should say that these run: {pids or 'none'}"
            )

    def _write(self, descriptor: int, processes: list[DaemonProcess]) -> None:
        if not processes:
            self._identities.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
            return
        known = [process for process in processes if process.identity]
        identities = open_own(self._identities, os.O_WRONLY | os.O_CREAT)
        try:
            _overwrite(identities, "".join(map(_identity_line, known)))
        finally:
            os.close(identities)
        _overwrite(descriptor, "".join(f"{process.pid}\n" for process in processes))


def _overwrite(descriptor: int, text: str) -> None:
    """Write in place: on a full disk the blocks that a file has are all that it gets."""
    content = text.encode()
    os.pwrite(descriptor, content, 0)
    os.ftruncate(descriptor, len(content))


def _identity_line(process: DaemonProcess) -> str:
    supervisor = f" {process.supervisor} {process.supervisor_identity}" if process.supervisor else ""
    return f"{process.pid} {process.number} {process.identity}{supervisor}\n"


def open_own(path: Path, access: int) -> int:
    """Return the descriptor of a file that is this user's own, and no link. Raises: NotPrivateError, OSError."""
    try:
        descriptor = os.open(path, access & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_own(path, "is a symbolic link") from None
        if error.errno == errno.EACCES and path.exists() and path.lstat().st_uid != os.geteuid():
            raise _not_own(path, "belongs to another user") from None
        raise
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode) and not status.st_mode & 0o022:
        if access & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
        return descriptor
    os.close(descriptor)
    if status.st_uid != os.geteuid():
        raise _not_own(path, "belongs to another user")
    raise _not_own(path, "can be written by others" if stat.S_ISREG(status.st_mode) else "is no file")


def _not_own(path: Path, what: str) -> NotPrivateError:
    return NotPrivateError(f"{path} {what}: remove it, or set DREY_PID_DIR to a folder of your own")


def _lines(path: Path) -> list[str]:
    """Return the whole lines of a file; no content of a line makes the reader fail."""
    try:
        descriptor = open_own(path, os.O_RDONLY)
    except FileNotFoundError:
        return []
    with os.fdopen(descriptor, errors="replace") as file:
        return file.read().split("\n")[:-1]
