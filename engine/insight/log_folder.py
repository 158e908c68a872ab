"""LogFolder: the log files of one process, and those of jobs, as clients may read them.

    <folder>/flink-u-taskmanager-0-host.log      the process's own: its stem, then .log, .log.1, .out
    <folder>/jobs/<job id>/<name>                what attempts of a job wrote

    files(job_id=None) ─► names, sizes, times      read(name, offset, limit, job_id=None) ─► part of a file

Files are named, never addressed: a name with anything but letters, digits, ``.``, ``-`` and ``_``, or that begins with
a dot, is unknown; so is a link, and everything that is not a plain file. Another process's files in the same folder are
not shown.

Held by: tests/rest/test_log_folder.py
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from engine.errors import LogNotFoundError
from engine.gateways.insight import LogFile, LogPart

#: limit of bytes of a file in one answer
PART_BYTES_MAX = 8 << 20
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")
_UNKNOWN = "there is no log file of that name"
_JOB_ID = re.compile(r"[0-9a-f]{32}")
JOBS_FOLDER = "jobs"


@dataclass(frozen=True)
class LogFolder:
    """Log files of a process. ``main``: its newest log file; None: it keeps none."""

    main: Path | None

    def files(self, job_id: str | None = None) -> tuple[LogFile, ...]:
        """Return the files of the process, or of a job, by name."""
        folder = self._folder(job_id)
        if folder is None:
            return ()
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if self._is_shown(entry.name, job_id)]
                states = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
        except FileNotFoundError:
            return ()
        return tuple(
            LogFile(name, state.st_size, state.st_mtime_ns // 1_000_000)
            for name, state in sorted(states)
            if stat.S_ISREG(state.st_mode)
        )

    def read(self, name: str, offset: int = 0, limit: int = PART_BYTES_MAX, job_id: str | None = None) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``; a negative offset counts from the end.

        Raises:
            LogNotFoundError: there is no such file, or it is none of ours.
        """
        folder = self._folder(job_id)
        if folder is None or not self._is_shown(name, job_id):
            raise LogNotFoundError(_UNKNOWN)
        try:
            # Not even a link that was put there between the question and now is followed; a pipe does not block us.
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise LogNotFoundError(_UNKNOWN) from error
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise LogNotFoundError(_UNKNOWN)
            begin = max(0, state.st_size + offset) if offset < 0 else offset
            content = os.pread(descriptor, max(0, min(limit, PART_BYTES_MAX)), begin)
            return LogPart(content, begin, state.st_size)
        finally:
            os.close(descriptor)

    @property
    def output(self) -> str:
        """Name of the file with what the process wrote to standard output; "" when there is none."""
        return "" if self.main is None else self.main.with_suffix(".out").name

    @property
    def log(self) -> str:
        """Name of the newest log file; "" when there is none."""
        return "" if self.main is None else self.main.name

    def _folder(self, job_id: str | None) -> Path | None:
        if self.main is None:
            return None
        if job_id is None:
            return self.main.parent
        folder = self.main.parent / JOBS_FOLDER / job_id
        return folder if _JOB_ID.fullmatch(job_id) and not folder.is_symlink() else None

    def _is_shown(self, name: str, job_id: str | None) -> bool:
        assert self.main is not None, "a folder is known"
        return _NAME.fullmatch(name) is not None and (job_id is not None or name.startswith(f"{self.main.stem}."))
