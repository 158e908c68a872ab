"""The state of a cluster as one file: handles, files of jobs that have not ended, and the history of those that have.

    write_backup(path, places, handles, key) ─► path          read_backup(path, key) ─► Backup ─► restore(places, ...)

    tar.gz   handles/<job id>              what the state store has of the job
             storage/{jobs,results,blobs}/...   storage/identity
             history/<job id>.job
             manifest.json                 SHA-256 of each of these, version and time of the backup
             seal                          HMAC-SHA256 of the manifest under a key of the cluster's secret

A backup may be made while the cluster runs. Handles are read before the files and after them: where one has changed,
all is read again; a job that has ended meanwhile is left out. A journal that grows is kept as far as it was read,
which is what a leader that dies leaves, too. The seal is checked, and every digest, before anything is restored:
graphs hold functions, which run. Nothing is restored over other jobs. Files come first and handles last, so a restore
that was cut off has no effect, and is repeated. Blocking.

Held by: tests/dispatcher/test_state_backup.py
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import re
import tarfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from engine import __version__
from engine.dispatcher.job_handle import JobHandle, decode_handle
from engine.dispatcher.storage_folder import names_below, read_identity
from engine.errors import EngineError, ResourceError
from engine.ids import JobId
from engine.storage.file_systems import file_system_of
from engine.versions import BACKUP
from ha.interfaces import ForeignStateError, StateHandleStore

#: tries to read handles and files between which no handle changes
_TRIES: Final = 20
_PAUSE_S: Final = 0.25
_MEMBER: Final = re.compile(
    r"handles/[0-9a-f]{32}|storage/identity|storage/(jobs|blobs)/[0-9a-f]{32}/[A-Za-z0-9_-][A-Za-z0-9._-]*"
    r"|storage/results/[A-Za-z0-9_-][A-Za-z0-9._-]*|history/[0-9a-f]{32}\.job"
)
_KINDS: Final = ("jobs", "blobs", "results")


class BackupError(ResourceError):
    """A backup cannot be made, or is damaged, of another cluster, or in the way of what is there."""


class BackupPlaces(NamedTuple):
    """The folders, or prefixes of a store, of a cluster."""

    storage: str
    history: str


class _Manifest(msgspec.Struct, frozen=True):
    version: int
    drey: str
    time_ms: int
    #: SHA-256 of each member by its name
    files: dict[str, str]


class Backup(NamedTuple):
    """A backup whose seal and digests are right. ``handles``: contents by job."""

    path: Path
    time_ms: int
    handles: dict[str, bytes]
    members: tuple[str, ...]


class _ChangedError(Exception):
    """A handle is not the one that the files were read for."""


# ---- to write one ----


def write_backup(path: Path, places: BackupPlaces, store: StateHandleStore, key: bytes) -> int:
    """Write a backup, which others cannot read; return the number of jobs in it that have not ended."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        for tries in range(_TRIES):
            if tries:
                time.sleep(_PAUSE_S)
            try:
                count = _write(temporary, places, store, key)
            except _ChangedError:
                temporary.unlink(missing_ok=True)
            else:
                temporary.replace(path)
                return count
    except OSError as error:
        raise BackupError(f"{path}: the backup is not written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    raise BackupError("handles of jobs change too often: make the backup when fewer jobs begin and end")


def _write(path: Path, places: BackupPlaces, store: StateHandleStore, key: bytes) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar:
        writer = _Writer(tar)
        before = _handles(store)
        identity = read_identity(places.storage)
        if identity:
            writer.add("storage/identity", identity.encode())
        for kind in _KINDS:
            for name in names_below(f"{places.storage}/{kind}"):
                if name.partition("-")[0] in before:
                    writer.add_all(
                        f"storage/{kind}/{name}", f"{places.storage}/{kind}/{name}", is_folder=kind != "results"
                    )
        after = _handles(store)
        if any(after.get(name, content) != content for name, content in before.items()):
            raise _ChangedError
        kept = {name: content for name, content in before.items() if name in after}
        for name, content in kept.items():
            if not writer.has(_files_of(decode_handle(JobId(name), content))):
                raise _ChangedError
            writer.add(f"handles/{name}", content)
        for name in names_below(places.history):
            if name.endswith(".job"):
                writer.add_all(f"history/{name}", f"{places.history}/{name}", is_folder=False)
        manifest = msgspec.json.encode(_Manifest(BACKUP.newest, __version__, int(time.time() * 1000), writer.digests))
        writer.add("manifest.json", manifest)
        writer.add("seal", _seal(key, manifest))
        return len(kept)


def _handles(store: StateHandleStore) -> dict[str, bytes]:
    """Return the handles of jobs; nodes of others are left alone."""
    found = {}
    for name in store.names():
        try:
            state = store.read(name)
            if state is not None and decode_handle(JobId(name), state.content) is not None:
                found[name] = state.content
        except ForeignStateError:
            continue
    return found


def _files_of(handle: JobHandle) -> Iterator[str]:
    """Yield the members without which a leader cannot go on with a job."""
    for stored in (handle.graph, handle.decision):
        if stored is not None:
            yield f"storage/jobs/{handle.job_id}/{stored.file}"
    if handle.result is not None and handle.result.file is not None:
        yield f"storage/results/{handle.result.file.file}"


class _Writer:
    """Members of a backup, and their digests."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.digests: dict[str, str] = {}

    def has(self, members: Iterator[str]) -> bool:
        """Whether all of them are there."""
        return all(member in self.digests for member in members)

    def add_all(self, member: str, path: str, *, is_folder: bool) -> None:
        """Add a file, or the files of a folder, as far as they are there."""
        if is_folder:
            for name in names_below(path):
                self.add_all(f"{member}/{name}", f"{path}/{name}", is_folder=False)
        elif _MEMBER.fullmatch(member):  # what is half written has another name
            try:
                self.add(member, file_system_of(path).read(path))
            except FileNotFoundError:
                return

    def add(self, member: str, content: bytes) -> None:
        """Add a member."""
        self.digests[member] = hashlib.sha256(content).hexdigest()
        header = tarfile.TarInfo(member)
        header.size, header.mode = len(content), 0o600
        self._tar.addfile(header, io.BytesIO(content))


def _seal(key: bytes, manifest: bytes) -> bytes:
    return hmac.new(key, manifest, hashlib.sha256).hexdigest().encode()


# ---- to read one ----


def read_backup(path: Path, key: bytes) -> Backup:
    """Check a backup, all of it; BackupError says what is wrong."""
    digests: dict[str, str] = {}
    small: dict[str, bytes] = {}
    try:
        for member, content in _members(path):
            digests[member] = hashlib.sha256(content).hexdigest()
            if member in ("manifest.json", "seal") or member.startswith("handles/"):
                small[member] = content
        manifest = small.pop("manifest.json")
        if not hmac.compare_digest(_seal(key, manifest), small.pop("seal")):
            raise BackupError(f"{path} was not made with this cluster's secret, or was changed")
        said = msgspec.json.decode(manifest, type=_Manifest)
    except (OSError, EOFError, zlib.error, tarfile.TarError, msgspec.MsgspecError, KeyError, ValueError) as error:
        raise BackupError(f"{path} is no backup, or is damaged: {error}") from error
    del digests["manifest.json"], digests["seal"]
    BACKUP.check(said.version, os.fspath(path))
    wrong = {name for name in digests.keys() | said.files.keys() if digests.get(name) != said.files.get(name)}
    wrong |= {name for name in digests if not _MEMBER.fullmatch(name)}
    if wrong:
        raise BackupError(f"{path} is damaged: {min(wrong)[:80]} is not what was written")
    handles = {name.removeprefix("handles/"): content for name, content in small.items()}
    return Backup(path, said.time_ms, handles, tuple(sorted(digests)))


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path, "r:gz") as tar:
        for header in tar:
            file = tar.extractfile(header) if header.isreg() else None
            if file is None:
                raise ValueError(f"{header.name[:80]} is no file")
            yield header.name, file.read()


def restore(backup: Backup, places: BackupPlaces, store: StateHandleStore, epoch: int) -> int:
    """Restore files, then handles under an epoch that leads; return the number of jobs that go on."""
    others = [name for name, content in _handles(store).items() if backup.handles.get(name) != content]
    if others:
        raise BackupError(
            f"{len(others)} other jobs are there ({others[0]}): a backup is restored where there are none. "
            "Cancel them, or set another high-availability.cluster-id"
        )
    try:
        for member, content in _members(backup.path):
            kind, _, name = member.partition("/")
            if member in backup.members and kind in ("storage", "history"):
                path = f"{places.storage if kind == 'storage' else places.history}/{name}"
                _make_folders(path)
                file_system_of(path).replace(path, content)
        for name, content in backup.handles.items():
            store.create(epoch, name, content)
    except (OSError, EngineError) as error:
        raise BackupError(f"{backup.path} is not restored: {error}") from error
    return len(backup.handles)


def _make_folders(path: str) -> None:
    if file_system_of(path).folders is not None:
        Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
