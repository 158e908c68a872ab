"""BesideTarget: what targets have in common whose attempts write into a staging folder beside the output.

The folder has an owner, and goes when the job is over (``engine.commit.staging``).

Held by: tests/commit/test_targets.py
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

from engine.commit.output_target import OutputTarget
from engine.commit.staging import adopt_staging, create_staging, remove_staging, staging_path, sweep_stale
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import is_folder


class BesideTarget(OutputTarget):
    """Targets that stage in a folder of a file system."""

    @abstractmethod
    def beside(self, output: str) -> Path:
        """Return the path that an output's staging folders are named after, and lie beside."""

    def staging(self, output: str, job_id: JobId) -> Staging:
        """Return the folder beside the output."""
        return Staging(os.fspath(staging_path(self.beside(output), job_id)), output, self.name)

    def sweep(self, output: str, cluster: str, is_over: Callable[[JobId], bool]) -> None:
        """Remove staging folders with which no process goes on."""
        sweep_stale(self.beside(output), cluster, is_over)

    def prepare(self, spec: SinkSpec, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Create the staging folder."""
        create_staging(self.beside(staging.output), job_id, cluster)

    def adopt(self, staging: Staging, job_id: JobId, cluster: str) -> None:
        """Become the owner of the staging folder."""
        adopt_staging(Path(staging.path), cluster)

    def abort(self, staging: Staging, job_id: JobId) -> None:
        """Remove the staging folder, and empty folders above the output that were made for it."""
        if is_folder(staging.path):
            remove_staging(Path(staging.path))

    def is_there(self, staging: Staging) -> bool:
        """Return whether there is a staging folder."""
        return is_folder(staging.path)
