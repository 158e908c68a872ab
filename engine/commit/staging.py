"""The staging folder of one sink and job: beside the target, on the same file system, so that a rename is enough.

    <parent>/.<target name>.drey-<job id>/
        owner.json                    what made it: host, boot, process, cluster; folders made on the way
        <sink>-<subtask>-<nonce>-<n>.ext  files of attempts, another one when one is full
        decision.json  output/  ...   see decision.py and publish.py

    create ─► (attempts write, another process adopts it) ─► abort, or publish removes it
    sweep_stale(target)           removes those with which no process goes on

A process that was killed leaves its staging behind. The next job with the same target sweeps it, when owner.json says
that it belonged to a process of this machine that is gone. Staging of other machines is never touched. Where jobs
outlive their process, staging belongs to the cluster: only the cluster sweeps it, and only when the job is over.

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from engine.commit.target_lock import remove_stale_lock
from engine.errors import PlanError
from engine.ids import JobId
from engine.storage.file_systems import file_system_of, folders_of
from engine.storage.temporary_files import boot_id
from engine.storage.temporary_files import is_left as is_left_temporary

OWNER_FILE = "owner.json"
#: name of an overwritten target that is set aside, if two paths cannot be exchanged
REPLACED = "replaced"
#: time after which an empty folder is none that a process is about to own
_UNOWNED_NS = 600 * 10**9


class StagingOwner(msgspec.Struct, frozen=True):
    """The process that answers for a staging folder."""

    host: str
    boot: str
    pid: int
    #: start of the process, seconds since the epoch: tells a reused pid
    started_s: float
    #: folders above the target that were created for it, innermost first
    created_parents: tuple[str, ...] = ()
    #: the cluster whose next leader goes on with the job; "": none does when the process is dead
    cluster: str = ""


def staging_path(target: Path, job_id: JobId) -> Path:
    """Return the folder in which a job stages the output for a resolved target."""
    return target.with_name(f".{target.name}.drey-{job_id}")


def create_staging(target: Path, job_id: JobId, cluster: str = "") -> Path:
    """Create the staging folder, and the folders above the target that are missing; return its path.

    Raises: PlanError where that cannot be; the folders made for it are gone then.
    """
    made: tuple[str, ...] = ()
    staging = staging_path(target, job_id)
    folders = folders_of(os.fspath(target), "a staging folder")
    try:
        made = folders.make_missing(os.fspath(target.parent))
        folders.make(os.fspath(staging))
    except OSError as error:
        folders.remove_empty(made)
        raise PlanError(f"output {target} cannot be created: {error.strerror or error}") from error
    own_staging(staging, made, cluster)
    return staging


def adopt_staging(staging: Path, cluster: str = "") -> None:
    """Become the owner of a staging folder that another process made for a job which goes on here.

    A folder that is gone is made again; that its files are missing is noticed when they are published.
    """
    folders_of(os.fspath(staging), "a staging folder").make(os.fspath(staging))
    own_staging(staging, (), cluster)


def remove_staging(staging: Path) -> None:
    """Remove a staging folder that is not published and the empty folders made for it; idempotent.

    A target that was set aside for its replacement goes back to its place, and a lock that no process holds goes.
    """
    owner = read_owner(staging)
    _restore_replaced(staging)
    remove_stale_lock(_target(staging))
    # The owner goes last: what a crash leaves half removed can still be swept.
    files = file_system_of(os.fspath(staging))
    with contextlib.suppress(FileNotFoundError):
        for entry in files.entries(os.fspath(staging)):
            if entry.name != OWNER_FILE:
                files.delete_tree(entry.path)
    files.delete_tree(os.fspath(staging))
    if owner is not None:
        folders_of(os.fspath(staging), "a staging folder").remove_empty(owner.created_parents)


def sweep_stale(target: Path, cluster: str = "", is_over: Callable[[JobId], bool] = lambda job_id: False) -> list[Path]:
    """Remove staging folders of the target with which no process goes on; return them.

    ``is_over`` tells whether another job of this process's ``cluster`` has ended.
    """
    prefix = f".{target.name}.drey-"
    swept = []
    remove_stale_lock(target)
    with contextlib.suppress(FileNotFoundError):
        for entry in file_system_of(os.fspath(target)).entries(os.fspath(target.parent)):
            if not entry.name.startswith(prefix) or not entry.is_folder or entry.is_link:
                continue
            if is_stale(Path(entry.path), JobId(entry.name.removeprefix(prefix)), cluster, is_over):
                remove_staging(Path(entry.path))
                swept.append(Path(entry.path))
    return swept


def is_stale(staging: Path | str, job_id: JobId, cluster: str, is_over: Callable[[JobId], bool]) -> bool:
    """Return whether no process goes on with what a job staged, by its owner."""
    owner = read_owner(staging)
    if owner is None:
        return is_unowned(os.fspath(staging))
    if owner.cluster:
        return owner.cluster == cluster and is_over(job_id)
    return is_dead(owner)


def is_unowned(staging: str) -> bool:
    """Return whether a process of this machine has ended before it became the owner of a folder that it made."""
    files = file_system_of(staging)
    if files.folders is None:
        return False
    try:
        names = [entry.name for entry in files.entries(staging)]
        if names:
            return all(map(is_left_temporary, names))
        return time.time_ns() - files.status(staging).modified_ns > _UNOWNED_NS
    except (FileNotFoundError, NotADirectoryError):
        return False


def own_staging(staging: Path | str, created_parents: tuple[str, ...], cluster: str) -> None:
    """Answer for a staging folder; what was made for it before stays known."""
    before = read_owner(staging)
    parents = created_parents or (before.created_parents if before is not None else ())
    owner = msgspec.structs.replace(this_process(), created_parents=parents, cluster=cluster)
    # Without a cluster no process goes on after a crash of the machine.
    place = f"{staging}/{OWNER_FILE}"
    file_system_of(place).replace(place, msgspec.json.encode(owner), is_durable=bool(cluster))


def _target(staging: Path) -> Path:
    return staging.with_name(staging.name.removeprefix(".").rpartition(".drey-")[0])


def _restore_replaced(staging: Path) -> None:
    target = os.fspath(_target(staging))
    replaced = os.fspath(staging / REPLACED)
    files = file_system_of(target)
    if files.is_taken(replaced) and not files.is_taken(target):
        folders_of(target, "a staging folder").rename(replaced, target)


@cache
def _started_s(own_pid: int) -> float:
    """Return the start time of this process, seconds since the epoch, as psutil reports it to others."""
    try:
        ticks = int(Path(f"/proc/{own_pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        booted = next(line for line in Path("/proc/stat").read_text(encoding="ascii").splitlines() if "btime" in line)
        return ticks / os.sysconf("SC_CLK_TCK") + int(booted.split()[1])
    except (OSError, ValueError, LookupError, StopIteration):
        import psutil

        return psutil.Process(own_pid).create_time()


def this_process() -> StagingOwner:
    """Return this process as an owner."""
    return StagingOwner(socket.gethostname(), boot_id(), os.getpid(), _started_s(os.getpid()))


def read_owner(staging: Path | str) -> StagingOwner | None:
    """Return the owner of a staging folder; None where that is not known."""
    try:
        place = f"{staging}/{OWNER_FILE}"
        return msgspec.json.decode(file_system_of(place).read(place), type=StagingOwner)
    except (OSError, msgspec.MsgspecError):
        return None


def is_left_at(staging: str, cluster: str) -> bool:
    """Return whether a folder belongs to a cluster, or to a process of this machine that has ended."""
    owner = read_owner(staging)
    return is_unowned(staging) if owner is None else is_left(owner, cluster)


def is_left(owner: StagingOwner | None, cluster: str) -> bool:
    """Return whether an owner belongs to a cluster, or is a process of this machine that has ended."""
    if owner is None:
        return False
    return owner.cluster == cluster if owner.cluster else is_dead(owner)


def is_dead(owner: StagingOwner) -> bool:
    """Return whether an owner was a process of this machine that is gone."""
    import psutil

    if owner.host != socket.gethostname():
        return False
    if owner.boot != boot_id():
        return True
    try:
        return abs(psutil.Process(owner.pid).create_time() - owner.started_s) > 1.0
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
