"""BlobModuleStore: the modules that came with a job, as entries of a module search path.

    search_path(job_id, artifacts) ─► a folder for each: with the ``.py`` file in it, or what an archive held

    <store>/<job id>/<key>               the blob
    <store>/<job id>/modules-<key>/      the folder on the path, made once, under another name first

Archives are unpacked: native modules in them can be loaded, and every worker reads plain files.

Thread: any; each folder is made once, whichever thread asks.

Held by: tests/blob/test_blobs.py
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.blob.archive import unpack
from engine.blob.blob_cache import BlobCache
from engine.errors import DataError
from engine.graph.job_graph import JobArtifact
from engine.ids import JobId

_MODULE_FILE = re.compile(r"[^\W\d]\w*\.py")


class BlobModuleStore:
    """Modules of jobs on this machine."""

    def __init__(self, cache: BlobCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()

    def search_path(self, job_id: JobId, artifacts: Sequence[JobArtifact]) -> tuple[str, ...]:
        """Return an entry of a module search path for each artifact, fetching what is not here."""
        return tuple(str(self._folder(job_id, artifact)) for artifact in artifacts)

    def release_job(self, job_id: JobId) -> None:
        """Remove what came with a job."""
        self._cache.release_job(job_id)

    def _folder(self, job_id: JobId, artifact: JobArtifact) -> Path:
        blob = self._cache.fetch(job_id, artifact.key)
        is_module = artifact.name.endswith(".py")
        if is_module and _MODULE_FILE.fullmatch(artifact.name) is None:
            raise DataError(f"a job brings {artifact.name[:100]!r}, which is not the name of a module")
        # The same content may come under two names.
        suffix = f"-{artifact.name}" if is_module else ""
        folder = blob.with_name(f"modules-{artifact.key}{suffix}")
        with self._lock:
            if not folder.is_dir():
                with self._cache.counted(job_id.value) as reserve:
                    self._make(blob, artifact.name if is_module else None, folder, reserve)
        return folder

    @staticmethod
    def _make(blob: Path, module_name: str | None, folder: Path, reserve: Callable[[int], None]) -> None:
        temporary = folder.with_name(f"unpacking-{secrets.token_hex(8)}")
        if module_name is None:
            unpack(blob, temporary, reserve=reserve)
        else:
            reserve(blob.stat().st_size)
            temporary.mkdir(mode=0o700)
            shutil.copyfile(blob, temporary / module_name)
        # Workers may have another user's rights, and get in by a descriptor; the folders above keep out all others.
        for path in (temporary, *temporary.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        temporary.rename(folder)
