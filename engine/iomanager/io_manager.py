"""IOManager: where a process spills.

    io = IOManager(["/data1/tmp", "/data2/tmp"])      sweeps what dead processes left, makes a locked folder in each
    space = io.space(identity)                        one for each operator that may spill
    io.close()                                        closes spaces, joins threads, removes the folders

A missing directory is made, with a line in the log; one that cannot be used is a ConfigurationError. Threads are
started by the first block that is written to (read from) a directory: a process that never spills has none.

    operator ── SpillWriter ─► write queue ─► thread ─► directory 0     chosen by free space, next one when it is full
             ◄─ SpillReader ◄─ read queue  ◄─ thread ◄─

Memory outside of pages: ``io_buffers`` (recycled blocks), one block per open writer, ``queue_depth`` blocks per
directory, ``prefetch + 1`` blocks per open reader, which count as pages where they are many.

Source: Flink's IOManagerAsync, with one folder per process and the sweep at start.
Held by: tests/iomanager/test_spill_directory.py
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from engine.closing import close_all
from engine.config.options import TMP_DIRS
from engine.errors import ConfigurationError, SpillError
from engine.iomanager.disk_limit import DiskLimit
from engine.iomanager.io_buffers import IoBuffers
from engine.iomanager.spill_directory import FOLDER_PREFIX, SpillDirectory
from engine.iomanager.spill_identity import SpillIdentity
from engine.iomanager.spill_space import SpillSpace
from engine.memory.manager import MemoryManager
from engine.process_folder import sweep

_LOG = logging.getLogger(__name__)

#: numbers of spill files: unique in the process, so that no file's block passes for another's
_file_numbers = itertools.count(1)


class IOManager:
    """The spill directories of a process and the spaces in them."""

    def __init__(
        self,
        directories: Sequence[str],
        *,
        compression: str = "lz4",
        queue_depth: int = 8,
        limit_bytes: int = 0,
        memory_manager: MemoryManager | None = None,
    ) -> None:
        """Sweep and open the directories.

        Args: compression: "lz4" or "none"; queue_depth: blocks waiting per directory before writers wait;
            limit_bytes: of this process's files in each directory, 0: no limit; memory_manager: blocks beyond the room
            for I/O take what operators have reserved in it.
        Raises: ConfigurationError when a directory cannot be used.
        """
        if compression not in ("lz4", "none"):
            raise ConfigurationError(f"spill compression {compression!r}: choose lz4 or none")
        self._compress = compression == "lz4"
        self._buffers = IoBuffers(manager=memory_manager)
        self._spaces: set[SpillSpace] = set()
        self._job_spaces: dict[str, SpillSpace] = {}
        self._jobs_lock = threading.Lock()
        self._closed = False
        self._directories: list[SpillDirectory] = []
        for index, directory in enumerate(dict.fromkeys(directories)):
            try:
                self._open(Path(directory), index, queue_depth, limit_bytes)
            except OSError as error:
                for opened in self._directories:
                    opened.close()
                raise ConfigurationError(
                    f"{TMP_DIRS.key}: the spill directory {directory} cannot be used: {error.strerror}"
                ) from error
        if not self._directories:
            raise ConfigurationError(f"{TMP_DIRS.key}: no spill directory is given")

    def _open(self, directory: Path, index: int, queue_depth: int, limit_bytes: int) -> None:
        is_new = not directory.exists()
        self._directories.append(SpillDirectory.create(directory, index, queue_depth, limit_bytes))
        if is_new:
            _LOG.warning("%s: %s was not there and has been made", TMP_DIRS.key, directory)
        sweep(directory, FOLDER_PREFIX)

    @property
    def folders(self) -> list[Path]:
        """The folder of this process in each usable directory."""
        return [directory.folder for directory in self._directories]

    @property
    def first_directory(self) -> SpillDirectory:
        """The directory for files that are in one place alone."""
        return self._directories[0]

    @property
    def limits(self) -> list[DiskLimit]:
        """The limit of each of these folders."""
        return [directory.limit for directory in self._directories]

    def ensure_folders(self) -> None:
        """Make those folders again that were removed, as far as that is possible. Thread: any."""
        for directory in self._directories:
            try:
                directory.ensure()
            except OSError as error:
                _LOG.warning("the spill folder %s cannot be made again: %s", directory, error)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that open spaces have written."""
        return sum(space.spilled_bytes for space in list(self._spaces))

    @property
    def buffer_bytes_out(self) -> int:
        """Bytes of block memory in use by writers, readers and queues; 0 when all are closed."""
        return self._buffers.bytes_out

    def space(self, identity: SpillIdentity) -> SpillSpace:
        """Return a new space for one operator of the task; to be closed by its owner."""
        if self._closed:
            raise SpillError("the I/O manager is closed")
        space = SpillSpace(
            identity,
            self._directories,
            self._buffers,
            self._compress,
            lambda: next(_file_numbers) & 0x7FFF_FFFF,
            self._spaces.discard,
            lambda: self._job_spaces.get(identity.job_id),
        )
        self._spaces.add(space)
        return space

    def job_space(self, job_id: str) -> SpillSpace:
        """Return the space of a job, for what outlives the task that wrote it: until ``release_job``. Thread: any."""
        with self._jobs_lock:
            if job_id not in self._job_spaces:
                self._job_spaces[job_id] = self.space(SpillIdentity(job_id, 0, 0, 0))
            return self._job_spaces[job_id]

    def release_job(self, job_id: str) -> None:
        """Close the space of an ended job, if there is one."""
        with self._jobs_lock:
            space = self._job_spaces.pop(job_id, None)
        if space is not None:
            space.close()

    def close(self) -> None:
        """Close every space, join the threads, remove the folders; idempotent.

        Raises: the first SpillError, after everything else was closed.
        """
        if self._closed:
            return
        self._closed = True
        close_all([*(space.close for space in self._spaces), *(folder.close for folder in self._directories)])

    def __enter__(self) -> IOManager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
