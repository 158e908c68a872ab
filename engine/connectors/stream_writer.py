"""StreamWriter: rows for a client that takes them while the job runs, as small files in a folder that both see.

    task    00000-<nonce>-00000003.arrow ...  ──►  folder  ──►  client reads a file, and removes it
            waits while AHEAD of its own files are there            begins at once, ends the job when it has enough

The first file has one batch, so that the first rows come soon; later ones are larger. A file is there under its name
when it is whole. ``00000-<nonce>.end`` says that a subtask has no more. Where rows have an order the client takes one
subtask after the other: it names the one whose ``turn`` it is, and only that one waits; others go on writing, since one
that waits holds a slot that the one whose turn it is may need. Without an order (``turn-any``) all of them wait.

The target of the sink itself gets an empty file for each subtask, as staged and published as any.

Held by: tests/integration/test_result_streams.py
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from engine.errors import ResourceError
from engine.files.native_files import native_output
from engine.storage.file_systems import file_system_of

#: files of a subtask that wait for the client
AHEAD: Final = 4
_BYTES_MIN: Final = 256 << 10
_BYTES_MAX: Final = 4 << 20
_LOOK_S: Final = 0.005
TURN_OF_ANY: Final = "turn-any"


def turn_of(subtask: str) -> str:
    """Return the name of the file that says whose rows are taken."""
    return f"turn-{subtask}"


class StreamWriter:
    """Writes the files of one attempt. ``path``: the staged file of the attempt, whose name identifies it."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: str, folder: Path) -> None:
        self._schema = schema
        self._path = str(path)
        self._folder = str(folder)
        self._files = file_system_of(self._folder)
        name = self._path.rpartition("/")[2]
        _sink, self._subtask, self._nonce, *_ = name.partition(".")[0].split("-")
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._wanted_bytes = 0
        self._written: deque[str] = deque()
        self._file_count = 0
        self._row_count = 0
        file_system_of(self._path).create(self._path).close()

    def wait_for_room(self, is_ended: Callable[[], bool]) -> None:
        """Wait until the client has taken enough of what was written; ResourceError when it is gone."""
        turns = [f"{self._folder}/{name}" for name in (turn_of(self._subtask), TURN_OF_ANY)]
        while not is_ended():
            while self._written and self._files.find(self._written[0]) is None:
                self._written.popleft()
            if len(self._written) < AHEAD or not any(map(self._files.find, turns)):
                break
            time.sleep(_LOOK_S)
        if self._files.find(self._folder) is None:
            raise ResourceError("the client that reads the rows of this job is gone")

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        self._row_count += batch.num_rows
        if self._held_bytes >= self._wanted_bytes:
            self._flush()

    def _flush(self) -> None:
        name = f"{self._subtask}-{self._nonce}-{self._file_count:08d}.arrow"
        staged, place = f"{self._folder}/.{name}", f"{self._folder}/{name}"
        with native_output(staged) as file, pa.ipc.new_file(file, self._schema) as writer:
            for batch in self._held:
                writer.write_batch(batch)
        self._files.publish(staged, place)
        self._written.append(place)
        self._file_count += 1
        self._held, self._held_bytes = [], 0
        self._wanted_bytes = min(_BYTES_MAX, max(_BYTES_MIN, 2 * self._wanted_bytes))

    def finish(self) -> tuple[int, int, str]:
        """Write what is held, and that there is no more; return (rows, 0, "")."""
        if self._held:
            self._flush()
        self._files.create(f"{self._folder}/{self._subtask}-{self._nonce}.end").close()
        return self._row_count, 0, ""

    def abort(self) -> None:
        """Remove the staged file; what was written for the client is the client's."""
        self._held = []
        file_system_of(self._path).delete(self._path)
