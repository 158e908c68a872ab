"""StoreOutput: a new object that is written in parts while its content is made.

    write ... ─► part ─► (thread) put of an iterator ─► multipart upload    completed by ``close``, undone by ``abort``
    write, close, all of it within one part ─► one put

The object is there when it is closed, whole, and not before. The client takes parts from a queue and holds few of
them, so that a store that is slow slows the writer.

Of a process that is killed the store keeps the parts that it has; they are no object (``store_uploads``).

Held by: tests/storage/test_store_writing.py
"""

from __future__ import annotations

import contextlib
import io
import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final

from engine.storage.store_client import asked, client_library, client_of, place_of, told
from engine.storage.store_counters import note

#: bytes of a part, of which a store takes 10,000, and parts that are sent at the same time
PART_BYTES: Final = 8 << 20
_AT_ONCE: Final = 2
#: seconds between two looks at the thread that sends
_LOOK_S: Final = 0.2
#: objects that this process writes, by path
_OPEN: Final[weakref.WeakValueDictionary[str, StoreOutput]] = weakref.WeakValueDictionary()


class _AbortedError(Exception):
    """The object is not wanted any more."""


class _Upload:
    """The thread that gives parts to the client. It does not know the StoreOutput, which may be forgotten."""

    def __init__(self, path: str) -> None:
        self._path, self._place = path, place_of(path)
        self._parts: queue.Queue[bytes | None] = queue.Queue(1)
        self._error: BaseException | None = None
        self._is_aborted = False
        self._client = client_of(self._place)
        self._thread = threading.Thread(target=self._send, name="drey-upload", daemon=True)
        self._thread.start()

    def put(self, part: bytes | None) -> None:
        """Give a part to the thread, None behind the last one; raise what it failed with."""
        while self._error is None:
            with contextlib.suppress(queue.Full):
                self._parts.put(part, timeout=_LOOK_S)
                return
        self._raise()

    def complete(self) -> None:
        """Complete the object."""
        self.put(None)
        self._thread.join()
        self._raise()

    def abort(self) -> None:
        """Have the store forget the parts."""
        self._is_aborted = True
        with contextlib.suppress(OSError):
            self.put(None)
        self._thread.join()

    def _raise(self) -> None:
        if self._error is not None and not isinstance(self._error, _AbortedError):
            with told(self._path, requests=0):
                raise self._error

    def _send(self) -> None:
        put = client_library(self._path).put
        try:
            put(self._client, self._place.key, self._iterated(), chunk_size=PART_BYTES, max_concurrency=_AT_ONCE)
        except BaseException as error:  # it is raised where the object is written
            self._error = error

    def _iterated(self) -> Iterator[bytes]:
        while True:
            part = self._parts.get()
            if self._is_aborted:
                raise _AbortedError
            if part is None:
                return
            yield part


class StoreOutput(io.RawIOBase):
    """A new object. Thread: one writes."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self._held = bytearray()
        self._taken = 0
        self._upload: _Upload | None = None
        _OPEN[path] = self

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes, as many as the part has room for."""
        view = memoryview(data).cast("B")[: PART_BYTES - len(self._held)]
        self._held += view
        self._taken += len(view)
        if len(self._held) >= PART_BYTES:
            self._upload = self._upload or _Upload(self.path)
            part, self._held = bytes(self._held), bytearray()
            self._upload.put(part)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes that were taken."""
        return self._taken

    def close(self) -> None:
        """Complete the object; idempotent."""
        if self.closed:
            return
        super().close()
        place = place_of(self.path)
        note(place.root, written_bytes=self._taken)
        if self._upload is None:
            put, client, content = client_library(self.path).put, client_of(place), bytes(self._held)
            asked(self.path, lambda: put(client, place.key, content, use_multipart=False))
            return
        if self._held:
            self._upload.put(bytes(self._held))
        self._upload.complete()
        # Its beginning and its end are requests, too.
        note(place.root, requests=2 + -(-self._taken // PART_BYTES))

    def abort(self) -> None:
        """Leave nothing of the object, unless it is closed."""
        if not self.closed:
            super().close()
            if self._upload is not None:
                self._upload.abort()

    def __del__(self) -> None:
        """Leave nothing of an object that was forgotten."""
        self.abort()


def written_bytes(path: str) -> int | None:
    """Return the bytes so far of an object that this process writes; None where it writes none."""
    output = _OPEN.get(path)
    return None if output is None else output.tell()
