"""PartitionFolders: the folders for files of BLOCKING partitions, of which the one with most free space is taken.

Held by: tests/exchange/test_partition_file.py
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from engine.errors import ConfigurationError, DiskFullError, SpillError


class PartitionFolders:
    """Chooses among folders by free space.

    Args:
        folders: existing ones, as ``IOManager.folders``: removed with their process, swept when it died.
        ensure: makes those again that were removed.
    """

    def __init__(self, folders: Sequence[Path], ensure: Callable[[], None] = lambda: None) -> None:
        if not folders:
            raise ConfigurationError("BLOCKING results need at least one folder")
        self._folders = tuple(folders)
        self._ensure = ensure

    def partition_path(self, name: str, need_bytes: int = 0, full: Collection[Path] = ()) -> Path:
        """Return the path of that name in the folder with most free space.

        Args:
            name: of the file.
            need_bytes: that must be free there.
            full: folders that are not to be tried.

        Raises:
            DiskFullError: no folder has that much room.
            SpillError: the folders are gone.
        """
        self._ensure()
        free: dict[Path, int] = {}
        lost = []
        for folder in self._folders:
            if folder not in full:
                try:
                    free[folder] = shutil.disk_usage(folder).free
                except OSError as error:
                    lost.append(f"{folder}: {error.strerror}")
        if lost and not free:
            raise SpillError(
                f"no place for {need_bytes} bytes of {name}: {', '.join(lost)}; check the directories of io.tmp.dirs"
            )
        best = max(free, key=lambda folder: free[folder], default=None)
        if best is None or free[best] < need_bytes:
            tried = ", ".join(str(folder) for folder in self._folders)
            most = max(free.values(), default=0)
            raise DiskFullError(
                f"no room for {need_bytes} bytes of {name} in {tried} (at most {most} free): "
                "free some space or add a directory to io.tmp.dirs"
            )
        return best / name
