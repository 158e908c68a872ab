"""RenamedTarget: a folder on a file system that renames folders, and has neither locks nor puts with a condition.

    <parent>/.drey-staging/<name>/<job id>/owner.json, files of attempts     while the job runs
        output/part-00000-<job id>.<ext>   ready                             1  decided files, and that all are there
        replaced/                                                            2  the old output, where it is replaced
    <parent>/<name>/                                                         3  output/ ─rename─► the name

Readers see the old output or the new one; with ``overwrite`` none of both for the moment between 2 and 3. What stops
anywhere is repeated by the next leader, or undone by ``abort``, which puts the old output back.

Limits: nothing keeps two writers apart, so modes that add to an output are refused, and of two jobs that replace one at
the same time the later wins.

Held by: tests/commit/test_renamed_target.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from engine.commit.decision import DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.commit.store_target import StoreTarget
from engine.errors import JobExecutionError, PlanError
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import file_system_of
from engine.storage.fsspec_files import renames_folders


class RenamedTarget(StoreTarget):
    """Folders of servers that fsspec reaches."""

    name = "renamed"
    file_bytes_max: ClassVar[int] = 0

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError for modes that need more than one writer's care, and as for a store."""
        if spec.mode:
            raise PlanError(
                f"output {spec.path}: mode={spec.mode!r} adds files to an output, which needs a file system that keeps"
                " writers apart; write to an object store or a folder, or replace all of it with overwrite=True"
            )
        try:
            is_renaming = renames_folders(output)
        except OSError as error:
            raise PlanError(f"output {spec.path}: {error.strerror or error}") from error
        if not is_renaming:
            raise PlanError(
                f"output {spec.path}: nothing is written there, since its file system does not rename folders; write to"
                " a folder or an object store"
            )
        super().check(spec, output)

    def _try_conditions(self, path: str) -> None:
        """Do nothing: these servers have no conditions, and a rename is the switch."""

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Make the decided files the output, by a rename; idempotent."""
        files, staging = file_system_of(output.staging), output.staging
        new, ready, replaced = f"{staging}/output", f"{staging}/ready", f"{staging}/replaced"
        if not files.is_taken(ready):
            if not files.is_taken(staging):
                return {}
            self._assemble(output, new, after_step)
            files.replace(ready, b"")
            after_step("ready")
        if files.is_taken(new):
            if files.is_taken(output.target):
                if not output.overwrite:
                    raise OutputTakenError(
                        f"output {output.target} was created by another program while the job ran; it was left as it is"
                    )
                files.publish(output.target, replaced)
                after_step("set aside")
            files.publish(new, output.target)
            after_step("place")
        return {}

    def _assemble(self, output: DecidedOutput, new: str, after_step: Callable[[str], None]) -> None:
        files = file_system_of(new)
        for file in output.files:
            part = f"{new}/{file.part}"
            try:
                files.publish(f"{output.staging}/{file.name}", part)
            except FileNotFoundError:
                if not files.is_taken(part):
                    raise JobExecutionError(
                        f"{output.staging}/{file.name}: a staged file of the output {output.target} is missing"
                    ) from None
            after_step(f"move {file.part}")
        for text in output.texts:
            files.replace(f"{new}/{text.name}", text.content.encode())
        files.replace(f"{new}/_SUCCESS", b"")

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove the staging folder."""
        _remove(output.staging)
        after_step("remove staging")

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Put an output back that was set aside, and remove the staging folder."""
        files = file_system_of(staging.path)
        replaced = f"{staging.path}/replaced"
        if files.is_taken(replaced) and not files.is_taken(staging.output):
            files.publish(replaced, staging.output)
        _remove(staging.path)

    def leftovers(self, output: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the stagings of jobs at an output."""
        try:
            yield from super().leftovers(output)
        except FileNotFoundError:
            return

    def stagings_in(self, folder: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the stagings of outputs directly below a folder."""
        try:
            yield from super().stagings_in(folder)
        except FileNotFoundError:
            return

    def extent(self, staging: Staging) -> tuple[int, float | None]:
        """Return bytes, and the time of the last change."""
        files = file_system_of(staging.path)
        found = [files.status(f"{folder}/{name}") for folder, _, names in files.walk(staging.path) for name in names]
        changed_s = max((status.modified_ns / 1e9 for status in found), default=None)
        return sum(status.size_bytes for status in found), changed_s or None


def _remove(staging: str) -> None:
    """Remove a staging folder, and the folders around it that are empty then."""
    files = file_system_of(staging)
    files.delete_tree(staging)
    for above in (staging.rpartition("/")[0], staging.rpartition("/")[0].rpartition("/")[0]):
        try:
            if next(iter(files.entries(above)), None) is not None:
                return
        except FileNotFoundError:
            continue
        files.delete_tree(above)
