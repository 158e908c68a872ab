"""PartitionFolders: where files of BLOCKING partitions go: the process's spill folder with most free space."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ConfigurationError


class PartitionFolders:
    """Chooses among folders by free space.

    Args:
        folders: existing ones, as ``IOManager.folders``: removed with their process, swept when it died.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        if not folders:
            raise ConfigurationError("BLOCKING results need at least one folder")
        self._folders = tuple(folders)

    def partition_path(self, stem: str) -> Path:
        """Return the path of that name in the folder with most free space."""
        return max(self._folders, key=lambda folder: shutil.disk_usage(folder).free) / stem
