"""Output that is not worth a process: what cannot be written is dropped, counted, and told once when writing works.

    print, logging ─► LogOutput ─► descriptor        a full disk, a terminal that is gone: the lines are lost
                                                     it works again: one line says how many, since when and why
    LogFile(path)                                    the same for a file that is made again when it was removed

    guard_output()                                   standard output and error of this process from now on

``write`` never raises and keeps nothing: a buffer that cannot be emptied would fail again at each write and at the end.

Thread: any.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from engine.private_folder import close_to_others

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
#: seconds between two checks whether the log's file still has its name
_LOOK_S = 1.0
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


def line_of(text: str, now_s: float) -> str:
    """Return a line as the logs of processes have them, for what is said without ``logging``."""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now_s))
    return f"{at},{int(now_s * 1000) % 1000:03d} WARNING {text}\n"


class LogOutput(io.RawIOBase):
    """Writes bytes to a descriptor that belongs to other code."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        # A signal's handler may print while its thread prints.
        self._lock = threading.RLock()
        # guarded by: self._lock
        self._lost_lines = 0
        self._lost_from_s = 0.0
        self._reason = ""
        #: identity of the file that lost lines: the descriptor may lead to another file later
        self._lost_by: tuple[int, int] | None = None
        self._is_torn = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor; OSError when there is none."""
        if self._descriptor < 0:
            raise OSError("there is no file")
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return self._descriptor >= 0 and os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        """Write all, or drop it; return its size."""
        content = bytes(data)
        with self._lock:
            try:
                self._prepare()
                self._write_all(self._told(content))
            except OSError as error:
                self._lose(content, error)
            else:
                self._lost_lines, self._is_torn = 0, False
            self._finish()
        return len(content)

    def _prepare(self) -> None:
        """Open a descriptor, or raise OSError."""

    def _finish(self) -> None:
        """Go on after a write."""

    def _told(self, content: bytes) -> bytes:
        """Prepend the note about lost lines, and end a torn line."""
        if not self._lost_lines or (self._lost_by is not None and self._lost_by != self._identity()):
            return content
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._lost_from_s))
        text = f"{self._lost_lines} lines are missing here, from {since} on: {self._reason}"
        told = line_of(f"{__name__} - {text}", time.time())
        return (b"\n" if self._is_torn else b"") + told.encode() + content

    def _write_all(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            count = os.write(self._descriptor, rest)
            if count == 0:
                raise OSError("nothing is taken")
            self._is_torn = rest[count - 1] != ord("\n")
            rest = rest[count:]

    def _lose(self, content: bytes, error: OSError) -> None:
        if not self._lost_lines:
            self._lost_from_s = time.time()
            self._reason = error.strerror or str(error)
            self._lost_by = self._identity()
        self._lost_lines += max(1, content.count(b"\n"))

    def _identity(self) -> tuple[int, int] | None:
        try:
            state = os.fstat(self._descriptor)
        except OSError:
            return None
        return state.st_dev, state.st_ino


class LogFile(LogOutput):
    """A file that is appended to, made anew when it or its folder was removed.

    Args: keeps_open: between two writes; else it is opened for each.
    """

    def __init__(self, path: Path, keeps_open: bool = True) -> None:
        super().__init__(-1)
        self._path = path
        self._keeps_open = keeps_open
        self._looked_s = 0.0

    @property
    def size(self) -> int:
        """Bytes of the file, 0 when it is not open."""
        with self._lock:
            return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    def open(self) -> None:
        """Open the file now; raises OSError."""
        with self._lock:
            self._prepare()

    def reopen(self) -> None:
        """Open the file of that name at the next write: this one was renamed."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)

    def close(self) -> None:
        """Close the file; idempotent."""
        self.reopen()
        super().close()

    def _prepare(self) -> None:
        now_s = time.monotonic()
        if self._descriptor >= 0 and now_s - self._looked_s >= _LOOK_S and not self._is_there():
            self.reopen()
        if self._descriptor < 0:
            self._descriptor = _opened(self._path)
        self._looked_s = now_s

    def _finish(self) -> None:
        if not self._keeps_open:
            self.reopen()

    def _told(self, content: bytes) -> bytes:
        # The same log, also when its file is another one.
        self._lost_by = None
        return super()._told(content)

    def _is_there(self) -> bool:
        try:
            state = self._path.stat()
        except OSError:
            return False
        return (state.st_dev, state.st_ino) == self._identity()


def _opened(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, _FILE_MODE)
    except FileNotFoundError:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        descriptor = os.open(path, flags, _FILE_MODE)
    close_to_others(descriptor)
    return descriptor


def text_stream(output: LogOutput) -> TextIO:
    """Return a text stream that writes line by line."""
    options = {"encoding": "utf-8", "errors": "backslashreplace"}
    return io.TextIOWrapper(output, **options, line_buffering=True)  # type: ignore[arg-type, type-var]


def guard_output() -> None:
    """Make standard output and error of this process drop what they cannot write; idempotent."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(getattr(stream, "buffer", None), LogOutput):
            continue
        with contextlib.suppress(OSError, ValueError):  # without a descriptor: the output is captured
            descriptor = stream.fileno()
            stream.flush()
            setattr(sys, name, text_stream(LogOutput(descriptor)))
