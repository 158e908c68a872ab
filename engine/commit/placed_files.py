"""Targets of a single file with a name of its own where there are no folders: in object stores, and on servers.

    StoreFileTarget     the store copies the staged object to its name: readers see the old one or the new one
    RenamedFileTarget   as a folder on a server, but that what is renamed is the file

What is not to be replaced is claimed first, so that of two jobs one writes, and a leader that repeats the publication
of a killed one knows the object for its own:

    <parent>/.drey-staging/<name>/claim      1  the job, if there was no claim    2  ... copying, if there is no object

Held by: tests/commit/test_placed_files.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.commit.renamed_target import RenamedTarget
from engine.commit.store_publication import objects_of
from engine.commit.store_target import StoreTarget
from engine.errors import JobExecutionError, PlanError
from engine.graph.deployment import StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import file_system_of

_CLAIM: Final = "claim"
_COPYING: Final = b" copying"


def check_no_prefix(spec: SinkSpec, output: str) -> None:
    """Raise PlanError where a name is that of a folder or a prefix, or of a file that is not replaced."""
    try:
        status = file_system_of(output).find(output)
    except OSError as error:
        raise PlanError(f"output {spec.path}: {error.strerror or error}") from error
    if status is not None and status.is_folder:
        raise PlanError(
            f"output {spec.path} has files below it, and single_file=True writes a file; name one, such as"
            f" {output}/data.{spec.format}"
        )
    if status is not None and not spec.overwrite:
        raise PlanError(f"output {spec.path} already exists; pass overwrite=True to replace it")


class StoreFileTarget(StoreTarget):
    """Objects of stores."""

    name = "store_file"

    def check_place(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError for a prefix, and for an object that is not replaced."""
        check_no_prefix(spec, output)

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
        """Return the output. Raises: JobExecutionError: it is larger than what a store copies."""
        if sum(bool(file.name) for file in files) > 1:
            raise JobExecutionError(
                f"output {spec.path}: a single file in a store has at most {self.file_bytes_max >> 30} GB; leave"
                " single_file=True out, or write the file to a folder and copy it"
            )
        return super().decided(spec, sink_index, staging, files, job_id, is_passing=is_passing)

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Have the store copy the file to its name; idempotent."""
        files, (staged,) = file_system_of(output.target), (f"{output.staging}/{file.name}" for file in output.files)
        if files.find(staged) is None:
            if files.find(output.target) is None:
                raise JobExecutionError(f"{staged}: the staged file of the output {output.target} is missing")
            return {}
        if not output.overwrite:
            self._claim(output, job_id, after_step)
        objects_of(output.target).copy(staged, output.target)
        after_step("copy")
        return {}

    def _claim(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Become the one job that writes an object which is not there. Raises: OutputTakenError."""
        objects, own = objects_of(output.target), str(job_id).encode()
        place = _claim_at(output.staging)
        while True:
            found = objects.read_version(place)
            if found is None:
                objects.put_version(place, own, None)
                after_step("claim")
            elif found[0] == own + _COPYING:
                return
            elif found[0] == own:
                if file_system_of(output.target).find(output.target) is not None:
                    raise OutputTakenError(
                        f"output {output.target} was created by another program while the job ran; it was left as it is"
                    )
                objects.put_version(place, own + _COPYING, found[1])
                after_step("copying")
            elif not self._settle(output.target, JobId(found[0].decode().split()[0])):
                raise OutputTakenError(f"output {output.target} is written by another job at this moment")

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove the staging prefix and the claim; without the staged file a claim means nothing to this job."""
        super().clean(output, job_id, after_step)
        _unclaim(output.staging, job_id)

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Remove the staging prefix and the claim; an object that was copied stays."""
        super().abort(staging, job_id)
        _unclaim(staging.path, job_id)


class RenamedFileTarget(RenamedTarget):
    """Files of servers that fsspec reaches."""

    name = "renamed_file"

    def check_place(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError for a folder, and for a file that is not replaced."""
        check_no_prefix(spec, output)

    def _assemble(self, output: DecidedOutput, new: str, after_step: Callable[[str], None]) -> None:
        files = file_system_of(new)
        (staged,) = (f"{output.staging}/{file.name}" for file in output.files)
        try:
            files.publish(staged, new)
        except FileNotFoundError:
            if not files.is_taken(new):
                raise JobExecutionError(f"{staged}: the staged file of the output {output.target} is missing") from None
        after_step("move")


def _claim_at(staging: str) -> str:
    return f"{staging.rpartition('/')[0]}/{_CLAIM}"


def _unclaim(staging: str, job_id: JobId) -> None:
    objects, place = objects_of(staging), _claim_at(staging)
    found = objects.read_version(place)
    if found is not None and found[0].startswith(str(job_id).encode()):
        objects.delete_all([place])
