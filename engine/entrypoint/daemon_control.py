"""Starting and stopping daemons: what ``bin/*.sh`` do.

    launch = begin_start(places, "taskmanager", arguments)     the process runs, its pid is in the pid file
    launch.wait(timeout_s) ─► StartOutcome                      ready, failed (with its last words), or still waiting
    stop_daemons(places, "taskmanager", all_of_them=False)      SIGTERM, after 10 s SIGKILL

A daemon is a session of its own without terminal, works in the root of the installation, and writes a log file and,
beside it, ``.out``: what it prints outside of the log. The files of the run before are kept under ``.1`` and so on.
One that is supervised is started by its supervisor, which enters it in the pid file and is asked to end it.

Source: flink-daemon.sh. It returns at once and says nothing of a start that fails; waiting for the process to be
ready, and showing why it is not, is ours.
Held by: tests/entrypoint/test_pid_file.py
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TextIO

from engine.entrypoint.log_files import rotate_logs
from engine.entrypoint.pid_file import DAEMON_MODULES, DaemonProcess, PidFile, process_identity
from engine.entrypoint.places import Places, home_folder
from engine.log_output import FULL_DISK
from engine.private_folder import NotPrivateError, append_privately, make_closed
from engine.python_command import python_command

#: seconds that a process may take to end after SIGTERM
STOP_TIMEOUT_S = 10.0
#: outcome of waiting for a process that has not come so far that it says what it waits for
NOT_READY_YET = "it is not ready yet"
_LAST_LINES = 20
_POLL_S = 0.02


class StartState(Enum):
    """Results of starting a daemon."""

    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True)
class StartOutcome:
    """``text``: where it is reached, what it waits for, or why it failed."""

    state: StartState
    text: str


def complain(text: str) -> None:
    """Write what is wrong for the person at the terminal."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def say(text: str) -> None:
    """Write a line for the person at the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def daemon_command(
    daemon: str, life: Sequence[str], arguments: Sequence[str], supervision: Sequence[str] | None = None
) -> list[str]:
    """Return the command of a daemon's process, or of its supervisor's. ``life``: its log and its ready pipe."""
    if supervision is not None:
        return python_command("engine.entrypoint.supervisor", *life, *supervision, daemon, *arguments)
    return python_command(f"engine.entrypoint.{DAEMON_MODULES.get(daemon, daemon)}", *life, *arguments)


def working_directory(daemon: str) -> Path:
    """Return the working directory of a daemon: the root, or the current one if it runs a user's script."""
    return Path.cwd() if daemon in DAEMON_MODULES else home_folder()


@dataclass
class Launch:
    """A daemon that was started and may not be ready yet."""

    places: Places
    daemon: str
    process: subprocess.Popen[bytes]
    log_file: Path
    pipe: int
    _text: str = field(default="")

    def wait(self, timeout_s: float) -> StartOutcome:
        """Wait until it is ready or has failed; WAITING after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        waits_for = NOT_READY_YET
        while True:
            while "\n" in self._text:
                line, _, self._text = self._text.partition("\n")
                word, _, text = line.partition(" ")
                if word == "ready":
                    return StartOutcome(StartState.READY, text)
                if word == "failed":
                    return self._failed(text)
                if word == "warning":
                    complain(f"[WARN] {text}")
                else:
                    waits_for = text
            rest_s = deadline - time.monotonic()
            if rest_s <= 0:
                return StartOutcome(StartState.WAITING, waits_for)
            if select.select([self.pipe], [], [], rest_s)[0]:
                received = os.read(self.pipe, 65536)
                if not received:
                    return self._failed("")
                self._text += received.decode(errors="replace")

    def end(self) -> None:
        """End the process and take it out of the pid file."""
        _end_processes([DaemonProcess(self.process.pid, 0, process_identity(self.process.pid))])
        self.process.wait()
        self._forget()

    @property
    def pid(self) -> int:
        """The daemon's process; it may have a supervisor, which is ``process`` then."""
        lines = PidFile(self.places.pid_file(self.daemon), self.daemon).read()
        return next((line.pid for line in lines if line.supervisor == self.process.pid), self.process.pid)

    def close(self) -> None:
        """Wait no more."""
        os.close(self.pipe)

    def _failed(self, why: str) -> StartOutcome:
        try:
            code: int | str = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._forget()
        lines = [why or f"it ended with exit code {code} before it was ready", f"log: {self.log_file}"]
        for path in (self.log_file, self.log_file.with_suffix(".out")):
            lines.extend(f"    {line}" for line in _last_lines(path))
        return StartOutcome(StartState.FAILED, "\n".join(lines))

    def _forget(self) -> None:
        with PidFile(self.places.pid_file(self.daemon), self.daemon).locked() as processes:
            mine = self.process.pid
            processes[:] = [process for process in processes if mine not in (process.pid, process.supervisor)]


def _last_lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    except FileNotFoundError:
        return []


def enter(places: Places, daemon: str, pid: int) -> int:
    """Enter a process in the pid file, without the stale lines; return its number. Caller holds no lock."""
    with PidFile(places.pid_file(daemon), daemon).locked() as processes:
        number = _prepare_entry(places, daemon, processes)
        processes.append(DaemonProcess(pid, number, process_identity(pid)))
        return number


def _prepare_entry(places: Places, daemon: str, processes: list[DaemonProcess]) -> int:
    processes[:] = [process for process in processes if process.is_alive]
    if processes:
        say(f"[INFO] {len(processes)} instance(s) of {daemon} are already running on {places.host}.")
    used = {process.number for process in processes}
    return next(number for number in range(len(used) + 1) if number not in used)


def begin_start(
    places: Places, daemon: str, arguments: Sequence[str], supervision: Sequence[str] | None = None
) -> Launch:
    """Start a daemon and enter it in the pid file; does not wait for it to be ready.

    ``supervision``: what its supervisor is told; None: it has none.
    """
    with PidFile(places.pid_file(daemon), daemon).locked() as processes:
        number = _prepare_entry(places, daemon, processes)
        log_file = places.log_file(daemon, number)
        output_file = _output_file(log_file)
        reading, writing = os.pipe()
        with output_file as output:
            process = subprocess.Popen(
                daemon_command(
                    daemon, ["--log-file", str(log_file), "--ready-fd", str(writing)], arguments, supervision
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=working_directory(daemon),
                start_new_session=True,
                pass_fds=[writing],
            )
        os.close(writing)
        processes.append(DaemonProcess(process.pid, number, process_identity(process.pid)))
    return Launch(places, daemon, process, log_file, reading)


def _output_file(log_file: Path) -> TextIO:
    """Put the logs of the run before away and return what a daemon prints to; a full disk hinders no start."""
    output_file = log_file.with_suffix(".out")
    try:
        make_closed(log_file.parent)
        rotate_logs(log_file)
        rotate_logs(output_file)
        return append_privately(output_file)
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        say(f"[WARN] {output_file} cannot be written: {error.strerror}; what the daemon prints is lost.")
        return open(os.devnull, "a")  # noqa: PTH123 - a device; closed by the caller


def stop_daemons(places: Places, daemon: str, *, all_of_them: bool) -> int:
    """End the latest daemon of a kind, or all; says what it does, also when there is none; returns an exit code."""
    path = places.pid_file(daemon)
    if not os.path.lexists(path):
        say(f"No {daemon} daemon to stop on host {places.host}.")
        return 0
    try:
        _stop(places, daemon, PidFile(path, daemon), all_of_them=all_of_them)
    except NotPrivateError as error:
        sys.stderr.write(f"error: no {daemon} daemon is stopped: {error}\n")
        return 1
    return 0


def _stop(places: Places, daemon: str, file: PidFile, *, all_of_them: bool) -> None:
    with file.locked() as processes:
        for process in processes:
            if not process.is_alive:
                say(f"No {daemon} daemon (pid: {process.pid}) is running anymore on {places.host}.")
        living = [process for process in processes if process.is_alive]
        processes[:] = living
        chosen = living if all_of_them else living[-1:]
        for process in chosen:
            say(f"Stopping {daemon} daemon (pid: {process.pid}) on host {places.host}.")
        _end_processes(chosen)
        processes[:] = [process for process in living if process not in chosen]


def _end_processes(processes: Sequence[DaemonProcess]) -> None:
    """Ask processes to end; end them by force when they have not after a while."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    left = _wait_for_end(processes, STOP_TIMEOUT_S)
    for process in left:
        say(f"Daemon (pid: {process.pid}) did not end within {STOP_TIMEOUT_S:g} s; it is killed.")
        _signal(process, signal.SIGKILL)
    _wait_for_end(left, STOP_TIMEOUT_S)


def _signal(process: DaemonProcess, number: signal.Signals) -> None:
    """Send a signal; a supervisor passes SIGTERM on, and must not restart a process that was killed."""
    for pid in process.living_pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if number == signal.SIGTERM:
            return


def _wait_for_end(processes: Sequence[DaemonProcess], timeout_s: float) -> list[DaemonProcess]:
    deadline = time.monotonic() + timeout_s
    left = [process for process in processes if process.is_alive]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        left = [process for process in left if process.is_alive]
    return left
