"""StoredBlobs: the blobs of a cluster in an object store, as far as they were asked for in a folder of this process.

    <prefix>/<job id>/<SHA-256 in hex>     the object, which every leader reads
    <folder>/<job id>/<SHA-256 in hex>     this process's copy (``BlobStore``)

    writer ─► (digest compared) ─► object ─► copy          path ─► copy │ object ─► (digest compared) ─► copy

The name is the digest of the content, so that a request which comes late writes what is there.

Held by: tests/blob/test_stored_blobs.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from engine.blob.blob_store import BlobStore, BlobWriter
from engine.errors import ResourceError
from engine.ids import JobId
from engine.storage.file_system import Objects, OutputStream
from engine.storage.file_systems import file_system_of

_CHUNK_BYTES: Final = 1 << 20


class StoredBlobs(BlobStore):
    """Blobs in a store. Thread: any; what is asked of the store blocks, and is a ResourceError where it fails."""

    def __init__(self, prefix: str, objects: Objects, folder: Path, ensure_around: Callable[[], object]) -> None:
        super().__init__(folder, ensure_around=ensure_around)
        self._prefix, self._objects = prefix, objects
        self._files = file_system_of(prefix)
        #: one blob is fetched at a time: several tasks want the same one
        self._turn = threading.Lock()

    def path(self, job_id: str, key: str) -> Path | None:
        """Return this process's copy of a blob, fetched when it is not here; None where there is none."""
        with self._turn:
            return super().path(job_id, key) or self._fetched(job_id, key)

    def _fetched(self, job_id: str, key: str) -> Path | None:
        try:
            with (
                self._files.open_stream(self._object(job_id, key), is_buffered=True) as content,
                super().writer(job_id, key) as writer,
            ):
                while chunk := content.read(_CHUNK_BYTES):
                    writer.write(chunk)
                return writer.commit()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._error("read from", error) from error

    def writer(self, job_id: str, key: str) -> BlobWriter:
        """Begin to write a blob, which is in the store when it is committed."""
        writer = super().writer(job_id, key)
        writer.keep = partial(self._upload, self._object(job_id, key))
        return writer

    def _upload(self, path: str, copy: Path) -> None:
        output: OutputStream | None = None
        try:
            output = self._files.create(path)
            with copy.open("rb") as content:
                while chunk := content.read(_CHUNK_BYTES):
                    _write_all(output, chunk)
            output.close()
        except OSError as error:
            raise self._error("written to", error) from error
        finally:
            if output is not None:
                output.abort()

    def changes(self) -> dict[JobId, float]:
        """Return the jobs that have blobs, and the time of the last change, seconds since 1970."""
        found = super().changes()
        for name, _, changed_s in self._objects.below(self._prefix):
            job_id = JobId(name.partition("/")[0])
            found[job_id] = max(found.get(job_id, 0.0), changed_s)
        return found

    def remove_job(self, job_id: str) -> None:
        """Remove all blobs of a job, in the store, too; OSError where it does not answer."""
        super().remove_job(job_id)
        self._objects.abort_uploads(f"{self._prefix}/{job_id}")
        self._files.delete_tree(f"{self._prefix}/{job_id}")

    def _object(self, job_id: str, key: str) -> str:
        self._path(job_id, key)  # it checks both
        return f"{self._prefix}/{job_id}/{key}"

    def _error(self, what: str, error: OSError) -> ResourceError:
        return ResourceError(f"a blob cannot be {what} {self._prefix}: {error.strerror or error}")


def _write_all(output: OutputStream, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[output.write(view) or 0 :]
