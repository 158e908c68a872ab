"""Log files of task attempts: what is logged and printed in a task's thread, and what its functions print elsewhere.

    <log folder>/jobs/<job id>/<vertex>-<subtask>-<attempt>.log

    install_task_logs(folder)                          once, at the start of a process that keeps logs
    with task_log(job_id, attempt, name): ...          in the task's thread
        json_fields() -> dict | None               the ids of its lines, where logs are JSON
        current_task_log() -> Path | None              for processes that work for this thread (Python workers)
        carried = carry_task_log()                     for another thread that works for this one: with carried: ...

The file is opened for appending, so the thread and its workers write to it side by side. What is logged there stands
in the log of the process as well; what is printed there does not. Without ``install_task_logs`` (embedded), or when
the file cannot be made, nothing is kept; what finds no room is dropped and counted: a log is not worth a task. Folders
of the oldest jobs go when there are more than JOBS_KEPT.

Held by: tests/functions/test_task_log.py
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from engine.ids import ExecutionAttemptId, JobId
from engine.log_format import FIELDS, JsonLines
from engine.log_output import FULL_DISK, LogFile, text_stream
from engine.private_folder import make_closed

_log = logging.getLogger(__name__)

JOBS_KEPT = 200


class _Current(threading.local):
    path: Path | None = None
    file: TextIO | None = None


class _Output:
    """Standard output or error: what a task's thread writes goes to its file, all else where it went before."""

    def __init__(self, process: TextIO) -> None:
        self._process = process

    def write(self, text: str) -> int:
        """Write a text."""
        file = _current.file
        if file is not None:
            return file.write(text)
        return self._process.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


class TaskLogHandler(logging.Handler):
    """Writes a record to the file of the task whose thread logs it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, if this is a task's thread."""
        file = _current.file
        if file is not None:
            try:
                file.write(f"{self.format(record)}\n")
            except Exception:  # whatever the arguments of a line do
                self.handleError(record)


_current = _Current()
_lock = threading.Lock()
#: folder of the logs; set once, before tasks run
_folder: Path | None = None
_is_json = False


def install_task_logs(folder: Path, formatter: logging.Formatter | None = None) -> TaskLogHandler:
    """Keep logs of tasks under ``folder`` from now on; returns the handler that was added to the root logger."""
    global _folder, _is_json
    _folder, _is_json = folder, isinstance(formatter, JsonLines)
    handler = TaskLogHandler()
    handler.setFormatter(formatter)
    logging.getLogger().addHandler(handler)
    divide_output()
    return handler


def divide_output() -> None:
    """Send what tasks' threads print to their logs from now on."""
    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), _Output):
            setattr(sys, name, _Output(getattr(sys, name)))


def task_log_path(folder: Path, job_id: JobId, attempt: ExecutionAttemptId) -> Path:
    """Return the log file of an attempt."""
    return folder / "jobs" / str(job_id) / f"{attempt.vertex}-{attempt.subtask_index}-{attempt.attempt_number}.log"


def current_task_log() -> Path | None:
    """Return the log file of the task whose thread this is."""
    return _current.path


def json_fields() -> dict[str, str] | None:
    """Return the fields of this thread's task for each JSON log line, None where logs are text."""
    return dict(FIELDS.values) if _is_json else None


def carry_task_log() -> contextlib.AbstractContextManager[None]:
    """Return a context in which another thread writes to this thread's log; it must be left before this thread ends."""
    return _carried(_current.path, _current.file, FIELDS.values)


@contextlib.contextmanager
def _carried(path: Path | None, file: TextIO | None, fields: Mapping[str, str]) -> Iterator[None]:
    _current.path, _current.file, FIELDS.values = path, file, fields
    try:
        yield
    finally:
        _current.path = _current.file = None
        FIELDS.values = {}


@contextlib.contextmanager
def task_log(job_id: JobId, attempt: ExecutionAttemptId, name: str) -> Iterator[None]:
    """Send what this thread logs to the attempt's file until the end of the block."""
    FIELDS.values = {"job": str(job_id), "task": name, "attempt": str(attempt)}
    path = None if _folder is None else task_log_path(_folder, job_id, attempt)
    file = None if path is None else _opened(path)
    if file is None:
        try:
            yield
        finally:
            FIELDS.values = {}
        return
    _current.path, _current.file = path, file
    try:
        _log.info("%s, attempt %s of job %s, begins", name, attempt, job_id)
        yield
        _log.info("%s, attempt %s of job %s, has ended", name, attempt, job_id)
    finally:
        _current.path = _current.file = None
        FIELDS.values = {}
        file.close()


def _opened(path: Path) -> TextIO | None:
    log = LogFile(path)
    try:
        if not path.parent.exists():
            make_closed(path.parent.parent)
            make_closed(path.parent)
            with _lock:
                _remove_oldest(path.parent.parent)
        log.open()
    except OSError as error:
        _log.warning("there is no log file for a task: %s", error)
        if error.errno not in FULL_DISK:
            return None
    return text_stream(log)


def _remove_oldest(jobs: Path) -> None:
    folders = sorted((folder.stat().st_mtime, folder) for folder in jobs.iterdir())
    for _, folder in folders[:-JOBS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
