"""StoreTarget: plain files below a prefix of an object store, which has no folders that could be renamed.

    <parent>/.drey-staging/<name>/<job id>/owner.json, files of attempts      while the job runs
    <parent>/<name>/part-00000-<job id>.<ext>, _SUCCESS, _drey.json           published (``store_publication``)

Attempts upload their files in parts below the staging prefix; a file that is not complete is no object. When the job
is decided, the store copies them to their names; nothing of them goes through this process. The next job with the
same output, and ``ha gc``, remove what a killed one has left: its staging prefix, uploads that it had begun, and what
it had begun to publish.

Held by: tests/commit/test_store_target.py
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from engine.commit.decision import DecidedOutput
from engine.commit.folder_check import check_partitions
from engine.commit.output_target import OutputTarget, decided_files
from engine.commit.staging import OWNER_FILE, StagingOwner, is_dead, is_left, this_process
from engine.commit.store_publication import StorePublication, objects_of
from engine.errors import PlanError
from engine.graph.deployment import StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import extent_of, file_system_of

STAGING_FOLDER: Final = ".drey-staging"
_READ_ALONE: Final = ("http://", "https://")
#: bytes that a store copies in one request
_COPIED_BYTES_MAX: Final = 4 << 30


class StoreTarget(OutputTarget):
    """Prefixes of object stores."""

    name = "store"
    file_bytes_max: ClassVar[int] = _COPIED_BYTES_MAX

    def resolved(self, spec: SinkSpec) -> str:
        """Return the URL without slashes at its end."""
        scheme, _, rest = spec.path.partition("://")
        return f"{scheme.lower()}://{rest.strip('/')}"

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError when something is there that is neither replaced nor added to, or the store refuses."""
        if output.startswith(_READ_ALONE):
            raise PlanError(f"output {spec.path}: web servers are read and not written; write to a folder or a store")
        if "/" not in output.partition("://")[2]:
            raise PlanError(f"output {spec.path} is a whole bucket; write to a prefix of it, such as {output}/output")
        self.check_place(spec, output)

    def check_place(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError when there are objects that are neither replaced nor added to, or the store refuses."""
        files = file_system_of(output)
        try:
            status = files.find(output)
            if status is not None and status.is_file:
                raise PlanError(f"output {spec.path} is an object; an output is a prefix of several")
            has_files = status is not None and any(names for _, _, names in files.walk(output) if _data(names))
        except OSError as error:
            raise PlanError(f"output {spec.path}: {error.strerror or error}") from error
        if has_files and spec.mode:
            check_partitions(output, spec)
        if has_files and not spec.overwrite and not spec.mode:
            raise PlanError(
                f"output {spec.path} already exists; pass overwrite=True to replace it, or mode='append' to add to it"
            )

    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return a prefix beside the output."""
        return Staging(f"{_stagings_of(output)}/{job_id}", output, self.name)

    def sweep(self, output: str, cluster: str, is_over: Callable[[JobId], bool]) -> None:
        """Remove what killed jobs left at the output."""
        for job_id, staging in self.leftovers(output):
            owner = read_store_owner(staging)
            if owner is not None and owner.cluster:
                is_stale = owner.cluster == cluster and is_over(job_id)
            else:
                is_stale = owner is not None and is_dead(owner)
            if is_stale:
                self.abort(staging, job_id)

    def leftovers(self, output: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the stagings of jobs at an output."""
        place = _stagings_of(output)
        for entry in list(file_system_of(place).entries(place)):
            if entry.is_folder:
                yield JobId(entry.name), Staging(f"{place}/{entry.name}", output, self.name)

    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Put the owner into the staging prefix; PlanError where the store ignores conditions."""
        try:
            # First of all: what a killed process leaves beside its owner can be swept.
            self.adopt(staging, job_id, cluster)
            self._try_conditions(staging.path)
        except OSError as error:
            raise PlanError(f"output {staging.output} cannot be written: {error.strerror or error}") from error

    def _try_conditions(self, path: str) -> None:
        try:
            objects_of(path).require_conditions(path)
        except PlanError:
            _remove_staging(path)
            raise

    def adopt(self, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Become the owner of the staging prefix."""
        owner = msgspec.structs.replace(this_process(), cluster=cluster)
        file_system_of(staging.path).replace(f"{staging.path}/{OWNER_FILE}", msgspec.json.encode(owner))

    def decided(
        self,
        spec: SinkSpec,
        sink_index: int,
        staging: Staging,
        files: Sequence[StagedFile],
        job_id: JobId,
        *,
        is_passing: bool = False,
    ) -> DecidedOutput:
        """Return the output; its files have the job's id in their names, so that none has the name of another."""
        output = super().decided(spec, sink_index, staging, files, job_id, is_passing=is_passing)
        return msgspec.structs.replace(output, files=decided_files(files, f"-{job_id}", keeps_statistics=False))

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Have the store copy the files to their names; all of them count at one moment."""
        StorePublication(output.target, after_step).publish(output, job_id, self._settle)
        return {}

    def _settle(self, output: str, job_id: JobId) -> bool:
        """Undo or complete the publication of another job that does not go on; return whether that was done."""
        staging = self.staging(output, job_id)
        owner = read_store_owner(staging)
        if owner is not None and (owner.cluster or not is_dead(owner)):
            return False
        self.abort(staging, job_id)
        return True

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove the staging prefix."""
        _remove_staging(output.staging)
        after_step("remove staging")

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Undo a publication that had begun, complete one that had come to count, and remove the staging prefix."""
        StorePublication(staging.output).settle(job_id)
        _remove_staging(staging.path)

    def is_there(self, staging: Staging) -> bool:
        """Return whether there is a staging prefix."""
        return file_system_of(staging.path).find(staging.path) is not None

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether the owner in the staging prefix belongs to the cluster, or is gone."""
        return is_left(read_store_owner(staging), cluster)

    def stagings_in(self, folder: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the stagings of outputs directly below a prefix."""
        place = f"{folder}/{STAGING_FOLDER}"
        for entry in list(file_system_of(place).entries(place)):
            yield from self.leftovers(f"{folder}/{entry.name}")

    def extent(self, staging: Staging) -> tuple[int, float | None]:
        """Return bytes, and the time of the last change."""
        return extent_of(staging.path)


def read_store_owner(staging: Staging) -> StagingOwner | None:
    """Return the process that answers for a staging prefix; None where that is not known."""
    place = f"{staging.path}/{OWNER_FILE}"
    try:
        return msgspec.json.decode(file_system_of(place).read(place), type=StagingOwner)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _stagings_of(output: str) -> str:
    parent, _, name = output.rpartition("/")
    return f"{parent}/{STAGING_FOLDER}/{name}"


def _data(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith((".", "_"))]


def _remove_staging(path: str) -> None:
    """Remove a staging prefix, its owner last, so that what a crash leaves can still be swept."""
    objects = objects_of(path)
    objects.abort_uploads(path)
    names = [name for name, _, _ in objects.below(path)]
    try:
        objects.delete_all(f"{path}/{name}" for name in names if name != OWNER_FILE)
        objects.delete_all(f"{path}/{name}" for name in names if name == OWNER_FILE)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
