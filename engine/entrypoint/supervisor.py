"""``python -m engine.entrypoint.supervisor ... jobmanager [arguments]``: keeps a JobManager running.

    start the child ─ it tells its ZooKeeper session ─ it dies ─► end that session: the next one leads at once
          ▲                                                └────► pause, 1 s doubled up to 60 s ─┐
          └──────────────────────────────────────────────────────────────────────────────────────┘
    SIGTERM, SIGINT ──► the child, then the end; exit code: the child's

It ends with its child when that stopped in peace (exit code 0, or a signal that asks for it), did not get ready the
first time, or is configured wrongly. The child ends with it, however it ends. The pid file holds the child's pid.

One thread and few modules: it must be small, and quick when its child is dead. What it logs goes to the child's file,
while there is no child.

Source: systemd's Restart=on-failure; the early end of the session is ours.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from engine.entrypoint.pid_file import DaemonProcess, PidFile, process_identity
from engine.entrypoint.places import find_places
from engine.errors import EngineError
from engine.log_output import LogFile, guard_output, line_of
from engine.python_command import python_command
from ha.session_end import SessionHandle, end_session

#: exit codes of a child, as entrypoint/daemon.py has them
_EXIT_NOT_STARTED, _EXIT_MISCONFIGURED = 1, 3
_ASKED_TO_END = (0, -signal.SIGTERM, -signal.SIGINT)
#: seconds after which a ready child counts as running well
_WELL_S = 3.0


def main(words: Sequence[str] | None = None) -> int:
    """Supervise until the end and return the exit code."""
    parser = argparse.ArgumentParser(prog="supervisor")
    parser.add_argument("--log-file", type=Path)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--foreground", action="store_true")
    parser.add_argument("--delay", type=float, nargs=2, default=(1.0, 60.0), metavar=("FIRST", "LONGEST"))
    parser.add_argument("--attempts", type=int)
    parser.add_argument("daemon")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    guard_output()
    return Supervisor(parser.parse_args(words)).run()


class _Child:
    """One run of the daemon, with the ends of its pipes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._ready, ready = os.pipe()
        self._session, session = os.pipe()
        life = ["--ready-fd", str(ready), "--session-fd", str(session), "--parent", str(os.getpid())]
        life += ["--log-file", str(options.log_file)] if options.log_file else []
        life += ["--foreground"] if options.foreground else []
        self.process = subprocess.Popen(
            python_command(f"engine.entrypoint.{options.daemon}", *life, *options.arguments),
            pass_fds=[ready, session],
            # A terminal's Ctrl-C comes to the supervisor, which passes it on once.
            process_group=0,
        )
        os.close(ready)
        os.close(session)
        for end in (self._ready, self._session):
            os.set_blocking(end, False)
        self.pipes = {self._ready, self._session}
        self.ready_s: float | None = None
        #: latest session, None: none was reported
        self.session: SessionHandle | None = None
        self._texts = {self._ready: b"", self._session: b""}

    def read(self, pipe: int) -> bytes:
        """Read the pipe; return the lines for the process that waits for the start."""
        try:
            received = os.read(pipe, 65536)
        except BlockingIOError:
            return b""
        if not received:
            self.pipes.discard(pipe)
            return b""
        *lines, self._texts[pipe] = (self._texts[pipe] + received).split(b"\n")
        if pipe == self._session:
            if lines:
                self.session = SessionHandle.decode(lines[-1])
            return b""
        if self.ready_s is None and any(line.startswith(b"ready ") for line in lines):
            self.ready_s = time.monotonic()
        return b"".join(line + b"\n" for line in lines)

    def close(self) -> None:
        """Close the pipes."""
        for pipe in self._texts:
            os.close(pipe)


class Supervisor:
    """Runs one child after the other. One thread."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._pid_file = PidFile(find_places().pid_file(options.daemon), options.daemon)
        self._is_asked_to_end = False
        self._ready_fd: int | None = options.ready_fd
        # The child puts the file away when it is full.
        self._log = LogFile(options.log_file, keeps_open=False) if options.log_file else None
        self._delay_s: float = options.delay[0]
        self._failures = 0
        self._woken, waking = os.pipe()
        for end in (self._woken, waking):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, _heard)

    def run(self) -> int:
        """Start children until there is nothing to start again; return the last one's exit code."""
        if self._ready_fd is not None:
            os.set_inheritable(self._ready_fd, False)
        is_first = True
        while True:
            child = _Child(self._options)
            self._enter(child.process.pid)
            code = self._watch(child)
            ending = self._end_session(child, code)
            child.close()
            if not self._goes_on(child, code, is_first=is_first):
                ending.join()
                return code if code >= 0 else 128 - code
            ending.join()
            self._say(f"process {child.process.pid} {_cause(code)}; the next one starts in {self._delay_s:g} s")
            self._tell_nobody()
            if self._pause():
                return 0
            is_first = False

    def _watch(self, child: _Child) -> int:
        """Wait for the end of a child, take what it says, pass signals on; return its exit code."""
        while True:
            ready, _, _ = select.select([self._woken, *child.pipes], [], [])
            for pipe in ready:
                if pipe != self._woken:
                    self._tell(child.read(pipe))
            if self._woken in ready:
                for number in os.read(self._woken, 512):
                    if number != signal.SIGCHLD:
                        self._is_asked_to_end = True
                        child.process.send_signal(number)
                code = child.process.poll()
                if code is not None:
                    for pipe in tuple(child.pipes):
                        self._tell(child.read(pipe))
                    return code

    def _goes_on(self, child: _Child, code: int, *, is_first: bool) -> bool:
        """Return whether another child is to follow, and note how long to wait for it."""
        if self._is_asked_to_end or code in _ASKED_TO_END or code == _EXIT_MISCONFIGURED:
            return False
        if is_first and child.ready_s is None:
            return False
        if child.ready_s is not None and time.monotonic() - child.ready_s >= _WELL_S:
            self._failures = 0
        first_s, longest_s = self._options.delay
        self._delay_s = min(first_s * 2**self._failures, longest_s)
        self._failures += 1
        if self._options.attempts is not None and self._failures > self._options.attempts:
            self._say(f"process {child.process.pid} {_cause(code)}: given up after {self._options.attempts} attempts")
            return False
        return True

    def _end_session(self, child: _Child, code: int) -> threading.Thread:
        """Begin to end the session of a dead child; one that ended in peace has done it."""
        handle = child.session if code != 0 else None

        def end() -> None:
            if handle is None:
                return
            began_s = time.monotonic()
            is_ended = end_session(handle, handle.timeout_s)
            took_ms = (time.monotonic() - began_s) * 1000
            how = f"is closed after {took_ms:.0f} ms" if is_ended else "could not be closed and ends by itself"
            self._say(f"ZooKeeper session 0x{handle.session_id & (1 << 64) - 1:x} of process {child.process.pid} {how}")

        thread = threading.Thread(target=end, name="drey-session-end", daemon=True)
        thread.start()
        return thread

    def _pause(self) -> bool:
        """Wait before the next start; return whether it is to be the end instead."""
        until_s = time.monotonic() + self._delay_s
        while (rest_s := until_s - time.monotonic()) > 0:
            woken = select.select([self._woken], [], [], rest_s)[0]
            if woken and any(number != signal.SIGCHLD for number in os.read(self._woken, 512)):
                return True
        return False

    def _enter(self, child_pid: int) -> None:
        """Enter the child in the pid file in place of the one before, or of this process."""
        try:
            self._enter_line(child_pid, os.getpid())
        except (OSError, EngineError) as error:
            self._say(f"the pid file does not name process {child_pid}: {error}")

    def _enter_line(self, child_pid: int, mine: int) -> None:
        with self._pid_file.locked() as processes:
            at = next((n for n, line in enumerate(processes) if mine in (line.pid, line.supervisor)), len(processes))
            number = processes[at].number if at < len(processes) else 0
            line = DaemonProcess(child_pid, number, process_identity(child_pid), mine, process_identity(mine))
            processes[at : at + 1] = [line]

    def _tell(self, lines: bytes) -> None:
        """Pass on a child's report of its start, as long as a process waits for it."""
        if lines and self._ready_fd is not None:
            try:
                os.write(self._ready_fd, lines)
            except BrokenPipeError:
                self._tell_nobody()
            if lines.startswith((b"ready ", b"failed ")) or b"\nready " in lines or b"\nfailed " in lines:
                self._tell_nobody()

    def _tell_nobody(self) -> None:
        descriptor, self._ready_fd = self._ready_fd, None
        if descriptor is not None:
            os.close(descriptor)

    def _say(self, text: str) -> None:
        """Write a line as the child's log has them."""
        line = line_of(f"engine.entrypoint.supervisor [MainThread] - {text}", time.time())
        if self._log is not None:
            self._log.write(line.encode())
        if self._options.foreground or not self._options.log_file:
            sys.stderr.write(line)
            sys.stderr.flush()


def _cause(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _heard(number: int, frame: FrameType | None) -> None:
    """Do nothing: the number comes over the pipe."""


if __name__ == "__main__":
    sys.exit(main())
