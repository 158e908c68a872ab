"""BlobServer: blobs of jobs at the JobManager, over its HTTP server.

    PUT /jobs/{job_id}/blobs/{key}    201; again: the same      400 another name or digest, 413 too large, 507 disk full
    GET /jobs/{job_id}/blobs/{key}    the content               404 it was never uploaded

Both need the cluster secret. A body goes to disk as it comes: memory holds a part of it. The key is the digest of the
content, so a blob that is there is right, and uploading it again changes nothing.

Blobs come before their job. ``sweep`` removes those of jobs that were never submitted; the others are removed with
``remove_job`` when their job ends.

Held by: tests/blob/test_blobs.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from engine.blob.blob_store import BlobNameError, BlobStore, CorruptBlobError
from engine.clock import Clock, SystemClock
from engine.errors import DiskFullError, ResourceError
from engine.ids import JobId
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route, json_response

_log = logging.getLogger(__name__)

#: bytes of a body that are written at once
_WRITE_BYTES = 1024 * 1024
#: time limit of a whole upload, seconds
_UPLOAD_S = 600.0
#: seconds after which an upload without a submission is removed
_UNUSED_S = 3600.0


class BlobServer:
    """Routes over a BlobStore."""

    def __init__(self, store: BlobStore, max_size: int, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        path = "/jobs/{job_id}/blobs/{key}"
        self.routes = (
            Route("PUT", path, self._put, Access.SECRET, max_size, is_streamed=True),
            Route("GET", path, self._get, Access.SECRET, 0),
        )

    async def remove_job(self, job_id: JobId) -> None:
        """Remove all blobs of a job."""
        await asyncio.to_thread(self._store.remove_job, job_id.value)

    async def sweep(self, known: Callable[[], Collection[JobId]]) -> None:
        """Remove, again and again, what no job uses."""
        while True:
            await asyncio.sleep(_UNUSED_S / 2)
            try:
                await self.remove_unused(known())
            except OSError as error:
                _log.warning("blobs that no job uses could not be looked for: %s", error)

    async def remove_unused(self, known: Collection[JobId]) -> None:
        """Remove blobs of jobs that are not known and that were brought an hour ago."""
        await asyncio.to_thread(self._remove_unused, frozenset(known))

    def _remove_unused(self, known: Collection[JobId]) -> None:
        for job_id, changed_s in self._store.changes().items():
            if job_id not in known and self._clock.wall_ms() / 1000 - changed_s > _UNUSED_S:
                self._store.remove_job(job_id.value)

    async def _put(self, request: HttpRequest) -> HttpResponse:
        job_id, key = request.variables["job_id"], request.variables["key"]
        if request.body_digest not in ("", key):  # "": a TLS peer that does not sign
            raise HttpError(400, "the key is not the SHA-256 of the body")
        try:
            async with asyncio.timeout(_UPLOAD_S):
                await self._write(request, job_id, key)
        except (BlobNameError, CorruptBlobError) as error:
            raise HttpError(400, str(error)) from error
        except DiskFullError as error:
            raise HttpError(507, str(error)) from error
        except ResourceError as error:
            raise HttpError(500, str(error)) from error
        return json_response({"key": key}, 201)

    async def _write(self, request: HttpRequest, job_id: str, key: str) -> None:
        assert request.chunks is not None, "the route is streamed"
        pending: list[bytes] = []
        pending_bytes = 0
        with self._store.writer(job_id, key) as writer:
            async for chunk in request.chunks:
                pending.append(chunk)
                pending_bytes += len(chunk)
                if pending_bytes >= _WRITE_BYTES:
                    await asyncio.to_thread(writer.write, b"".join(pending))
                    pending, pending_bytes = [], 0
            writer.write(b"".join(pending))
            await asyncio.to_thread(writer.commit)

    async def _get(self, request: HttpRequest) -> HttpResponse:
        try:
            # It may be fetched from an object store first.
            path = await asyncio.to_thread(self._store.path, request.variables["job_id"], request.variables["key"])
        except BlobNameError as error:
            raise HttpError(400, str(error)) from error
        except ResourceError as error:
            raise HttpError(503, str(error)) from error
        if path is None:
            raise HttpError(404, "this job has no such blob")
        return HttpResponse(file=path, content_type="application/octet-stream")
