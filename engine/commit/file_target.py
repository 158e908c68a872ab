"""FileTarget: a single file with a name of its own, ``write_csv("out/day.csv", single_file=True)``.

    <parent>/.<name>.drey-<job id>/        the staging folder, with the file that the last attempt has written
    <parent>/<name>                        the file, after one rename

A rename replaces a file at once, so readers see the old one or the new one. A staged file that is gone was renamed:
what a leader repeats after a crash finds the output there.

``placed_files`` has those of file systems without folders.

Held by: tests/commit/test_file_target.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.commit.decision import DecidedOutput
from engine.commit.folder_check import check_file
from engine.commit.folder_target import FolderTarget
from engine.commit.output_target import OutputTakenError
from engine.errors import JobExecutionError
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import file_system_of, folders_of


class FileTarget(FolderTarget):
    """Files of this machine, and of file systems that are mounted on it."""

    name = "file"

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError when the file exists and is not replaced, or cannot be made."""
        check_file(spec, Path(output))

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Make the staged file the output with one rename; idempotent."""
        files = file_system_of(output.target)
        folders = folders_of(output.target, "the publication of an output")
        (staged,) = (f"{output.staging}/{file.name}" for file in output.files)
        if files.find(staged) is None:
            if files.find(output.target) is None:
                raise JobExecutionError(f"{staged}: the staged file of the output {output.target} is missing")
            return {}
        try:
            if output.overwrite:
                folders.rename(staged, output.target)
            else:
                folders.rename_if_absent(staged, output.target)
        except (FileExistsError, IsADirectoryError) as error:
            raise OutputTakenError(
                f"output {output.target} was created by another program while the job ran; it was left as it is"
            ) from error
        after_step("place")
        if not output.is_passing:
            folders.sync(os.fspath(Path(output.target).parent))
        return {}
