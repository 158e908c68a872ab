"""FolderTarget: a folder of plain files on a file system that renames folders.

Files are staged beside the output (``staging``) and become it with one rename (``folder_publication``).

Held by: tests/commit/test_targets.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from engine.commit.beside_target import BesideTarget
from engine.commit.decision import DecidedOutput
from engine.commit.folder_check import check_folder, resolve_target
from engine.commit.folder_publication import clean_staging, place_output
from engine.commit.staging import is_left_at
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import extent_of, file_system_of

_STAGING: Final = re.compile(r"\.(.*)\.drey-([0-9a-f]{32})(?:\.done)?")


class FolderTarget(BesideTarget):
    """Folders of this machine, and of file systems that are mounted on it."""

    name = "folder"

    def resolved(self, spec: SinkSpec) -> str:
        """Return the absolute path, symbolic links followed."""
        return os.fspath(resolve_target(spec.path))

    def check(self, spec: SinkSpec, output: str) -> None:
        """Raise PlanError when the folder exists and is neither replaced nor added to, or cannot be made."""
        check_folder(spec, Path(output))

    def beside(self, output: str) -> Path:
        """Return the output itself."""
        return Path(output)

    def publish(
        self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None], *, is_durable: bool
    ) -> Mapping[str, int | str]:
        """Make the staged files the output with one rename."""
        place_output(output, after_step, is_durable)
        return {}

    def clean(self, output: DecidedOutput, job_id: JobId, after_step: Callable[[str], None]) -> None:
        """Remove the staging folder."""
        clean_staging(output.staging, after_step)

    def is_of_cluster(self, staging: Staging, cluster: str) -> bool:
        """Return whether the owner in the staging folder belongs to the cluster, or is gone."""
        return is_left_at(staging.path, cluster)

    def stagings_in(self, folder: str) -> Iterator[tuple[JobId, Staging]]:
        """Yield the staging folders in a folder; one that is renamed to be removed counts, too."""
        for entry in file_system_of(folder).entries(folder):
            match = _STAGING.fullmatch(entry.name)
            if match is not None:
                yield JobId(match[2]), Staging(entry.path, f"{folder}/{match[1]}", self.name)

    def extent(self, staging: Staging) -> tuple[int, float | None]:
        """Return bytes, and the time of the last change."""
        return extent_of(staging.path)
