"""BlobCache: blobs that a TaskManager has fetched from the JobManager, each once.

    fetch(job_id, key) ─► here? ─► being fetched by another thread? wait for it ─► GET, verified ─► Path
    with counted(job_id) as reserve: reserve(size) * ─► bytes of the limit, before they are written
    release_job(job_id) ─► its folder goes, its bytes are given back

Blocking, for task threads. Content is verified while it comes; what is wrong, too short or too long never gets its
name. When the JobManager does not answer, the leader of that moment is asked again for a while; after that there is a
ResourceError: the attempt fails, and another one may succeed.

Held by: tests/blob/test_blobs.py
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from engine.blob.blob_store import BlobStore, CorruptBlobError
from engine.errors import DiskFullError, EngineError, ResourceError, SpillError
from engine.ids import JobId
from engine.iomanager.disk_limit import DiskLimit, DiskShare
from engine.iomanager.disk_use import room_advice
from engine.network_address import split_address
from engine.rpc.credentials import AUTHORIZATION, Credentials

_CHUNK_BYTES = 256 * 1024
_TIMEOUT_S = 30.0
#: pauses between tries, a quarter of a minute in all: another JobManager may be about to lead
_PAUSES_S = (0.2, 0.5, 1.0, *[2.0] * 7)


class LostBlobError(EngineError):
    """A file that ships with a job is not where it was fetched to; no new attempt can use it."""


class BlobCache:
    """Blobs of jobs on this machine.

    Args:
        store: where they lie.
        leader_address: returns ``host:port`` of the leading JobManager, "" while no JobManager leads.
        credentials: signs what is asked.
        max_size: bytes of the largest blob.
        tls: client context when the JobManager speaks TLS.
        limit: limit of the disk where the store lies; None: the files are not counted.
    """

    def __init__(
        self,
        store: BlobStore,
        leader_address: Callable[[], str],
        credentials: Credentials | None,
        max_size: int,
        tls: ssl.SSLContext | None = None,
        limit: DiskLimit | None = None,
    ) -> None:
        self.store = store
        self._leader_address = leader_address
        self._credentials = credentials
        self._max_size = max_size
        self._tls = tls
        self._limit = limit or DiskLimit("")
        self._lock = threading.Lock()
        #: running fetches by job and key; guarded by: self._lock
        self._fetching: dict[tuple[str, str], Future[Path]] = {}
        #: share and bytes of each job whose files are here; guarded by: self._lock
        self._counted: dict[str, tuple[DiskShare, int]] = {}

    def fetch(self, job_id: JobId, key: str) -> Path:
        """Return the file of a blob, fetching it first when it is not here."""
        path = self.store.path(job_id.value, key)
        if path is not None:
            return path
        name = (job_id.value, key)
        with self._lock:
            fetching = self._fetching.get(name)
            if is_ours := fetching is None:
                fetching = self._fetching[name] = Future()
        assert fetching is not None, "it was there or was made"
        if is_ours:
            self._fetch_for_all(name, fetching)
        return fetching.result()

    def release_job(self, job_id: JobId) -> None:
        """Remove what was fetched for a job."""
        self.store.remove_job(job_id.value)
        with self._lock:
            counted = self._counted.pop(job_id.value, None)
        if counted is not None:
            share, size_bytes = counted
            share.give_back(size_bytes)

    @contextlib.contextmanager
    def counted(self, job_id: str) -> Iterator[Callable[[int], None]]:
        """Yield a call that takes bytes of the limit for a job's files: until it is released, or the block fails."""
        taken = 0

        def reserve(size_bytes: int) -> None:
            nonlocal taken
            self._count(job_id, size_bytes)
            taken += size_bytes

        try:
            yield reserve
        except BaseException:
            self._count(job_id, -taken)
            raise

    def _count(self, job_id: str, size_bytes: int) -> None:
        with self._lock:
            if size_bytes < 0 and job_id not in self._counted:
                return  # the job has ended meanwhile
            share, taken = self._counted.get(job_id) or (self._limit.share(job_id), 0)
            if size_bytes < 0:
                share.give_back(-size_bytes)
            else:
                try:
                    share.reserve(size_bytes)
                except OSError as error:
                    advice = room_advice([self._limit], size_bytes)
                    raise DiskFullError(f"no room for files that ship with job {job_id}: {advice}") from error
            self._counted[job_id] = share, taken + size_bytes

    def _fetch_for_all(self, name: tuple[str, str], fetching: Future[Path]) -> None:
        try:
            # The thread before us may have fetched it between our look and our turn.
            path = self.store.path(*name) or self._fetch_patiently(*name)
        except BaseException as error:
            self._forget(name)
            fetching.set_exception(error)
        else:
            self._forget(name)
            fetching.set_result(path)

    def _forget(self, name: tuple[str, str]) -> None:
        with self._lock:
            del self._fetching[name]

    def _fetch_patiently(self, job_id: str, key: str) -> Path:
        for pause_s in (*_PAUSES_S, None):
            address = self._leader_address()
            try:
                if not address:
                    raise ConnectionError("no JobManager leads")
                return self._fetch_once(address, job_id, key)
            except SpillError:
                raise
            except (OSError, http.client.HTTPException, CorruptBlobError) as error:
                if pause_s is None:
                    reason = str(error) or type(error).__name__
                    raise ResourceError(f"a blob of job {job_id} cannot be fetched from {address}: {reason}") from error
                time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def _fetch_once(self, address: str, job_id: str, key: str) -> Path:
        target = f"/jobs/{job_id}/blobs/{key}"
        connection = self._connection(address)
        try:
            headers = {}
            if self._credentials is not None:
                headers[AUTHORIZATION] = self._credentials.sign("GET", target)
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            if response.status == http.client.NOT_FOUND:
                raise LostBlobError(
                    f"the JobManager at {address} has no blob {key}, which ships with job {job_id}: the blobs of its "
                    "high-availability.storageDir were removed, or it has another storageDir. Submit the job again"
                )
            if response.status != http.client.OK:
                raise ResourceError(
                    f"the JobManager at {address} has no blob {key} of job {job_id} ({response.status})"
                )
            return self._written(response, job_id, key)
        finally:
            connection.close()

    def _written(self, response: http.client.HTTPResponse, job_id: str, key: str) -> Path:
        size = 0
        with self.counted(job_id) as reserve, self.store.writer(job_id, key) as writer:
            while chunk := response.read(_CHUNK_BYTES):
                size += len(chunk)
                if size > self._max_size:
                    raise ResourceError(f"blob {key} of job {job_id} has more than {self._max_size} bytes")
                reserve(len(chunk))
                writer.write(chunk)
            return writer.commit()

    def _connection(self, address: str) -> http.client.HTTPConnection:
        host, port = split_address(address)
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
