"""PartitionFolders: the folders for files of BLOCKING partitions, of which the one with most room is taken.

Held by: tests/exchange/test_partition_file.py
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from engine.errors import ConfigurationError, DiskFullError, SpillError
from engine.iomanager.disk_limit import DiskLimit, DiskShare
from engine.iomanager.disk_use import room_advice


class PartitionFolders:
    """Chooses among folders by what is free there: of the disk, and of the limit.

    Args:
        folders: existing ones, as ``IOManager.folders``: removed with their process, swept when it died.
        ensure: makes those again that were removed.
        limits: of each folder, as ``IOManager.limits``; default: counted, without a limit.
        job_id: whose files lie there, "" when that is not known.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        ensure: Callable[[], None] = lambda: None,
        limits: Sequence[DiskLimit] | None = None,
        job_id: str = "",
    ) -> None:
        if not folders:
            raise ConfigurationError("BLOCKING results need at least one folder")
        self._limits = dict(zip(folders, limits or [DiskLimit(folder) for folder in folders], strict=True))
        self._ensure = ensure
        self._job_id = job_id

    def of_job(self, job_id: str) -> PartitionFolders:
        """Return these folders for the files of a job."""
        return PartitionFolders(tuple(self._limits), self._ensure, tuple(self._limits.values()), job_id)

    def share(self, path: Path) -> DiskShare:
        """Return the share that the bytes of a file at a path of ``partition_path`` are taken from."""
        return self._limits[path.parent].share(self._job_id)

    def partition_path(self, name: str, need_bytes: int = 0, full: Collection[Path] = ()) -> Path:
        """Return the path of that name in the folder with most room.

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
        for folder, limit in self._limits.items():
            if folder not in full:
                try:
                    free[folder] = min(shutil.disk_usage(folder).free, limit.left_bytes)
                except OSError as error:
                    lost.append(f"{folder}: {error.strerror}")
        if lost and not free:
            raise SpillError(
                f"no place for {need_bytes} bytes of {name}: {', '.join(lost)}; check the directories of io.tmp.dirs"
            )
        best = max(free, key=lambda folder: free[folder], default=None)
        if best is None or free[best] < need_bytes:
            tried = ", ".join(str(folder) for folder in self._limits)
            most = max(free.values(), default=0)
            raise DiskFullError(
                f"no room for {need_bytes} bytes of {name} in {tried} (at most {max(most, 0)} free): "
                f"{room_advice(self._limits.values(), need_bytes)}"
            )
        return best / name
