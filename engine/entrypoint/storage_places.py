"""Storage of a JobManager for state that outlives a leader: jobs, blobs, history.

    <high-availability.storageDir>/<cluster id>/{jobs,results,blobs,history}     with ZooKeeper, or where it is set
    <process's own folder>/{jobs,results,blobs}, <log>/history                    else: jobs end with the process

With ZooKeeper and without ``high-availability.storageDir`` it is a folder beside the logs, which is enough for
JobManagers of one machine; those of several need one that all of them reach. Without ZooKeeper a folder that is set
has the handles, too: the jobs of the one JobManager go on when it is started again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engine.config.loader import Configuration
from engine.config.options import HA_CLUSTER_ID, HA_STORAGE_FOLDER, HA_TYPE, JOB_STORE_FOLDER
from engine.entrypoint.places import Places, home_folder
from engine.errors import ConfigurationError
from engine.private_folder import NotPrivateError, make_closed


@dataclass(frozen=True)
class StoragePlaces:
    """Folders; ``is_durable``: they outlive the process."""

    folder: Path
    history: Path
    is_durable: bool

    @property
    def handles(self) -> Path:
        """The folder of job handles of a JobManager without a quorum."""
        return self.folder / "handles"

    @property
    def blobs(self) -> Path:
        """The folder of files that ship with jobs."""
        return self.folder / "blobs"


def shared_folder(configuration: Configuration, places: Places) -> Path | None:
    """Return the folder of this cluster that its JobManagers share, or None where jobs end with theirs."""
    chosen = configuration.get(HA_STORAGE_FOLDER)
    if configuration.get(HA_TYPE) != "ZOOKEEPER" and not chosen:
        return None
    folder = home_folder() / _path(chosen) if chosen else places.log / "high-availability"
    cluster_id: str = configuration.get(HA_CLUSTER_ID)
    return folder / cluster_id.strip("/").replace("/", "_")


def _path(text: str) -> str:
    """Return the path of a folder that may be written as a URL, as Flink's are."""
    scheme, separator, path = text.partition("://")
    if not separator:
        return text
    if scheme != "file" or not path.startswith("/"):
        raise ConfigurationError(
            f"{HA_STORAGE_FOLDER.key}: {text} is not a folder of this machine or one mounted here; {scheme}:// is not "
            "supported: JobManagers share a file system that renames atomically, such as NFS"
        )
    return path


def history_folder(configuration: Configuration, places: Places) -> Path:
    """Return the folder of ended jobs."""
    chosen = configuration.get(JOB_STORE_FOLDER)
    return Path(chosen) if chosen else (shared_folder(configuration, places) or places.log) / "history"


def storage_places(configuration: Configuration, places: Places, own: Path) -> StoragePlaces:
    """Return the folders; ``own`` is the process's. ConfigurationError where they cannot be made."""
    shared = shared_folder(configuration, places)
    history = history_folder(configuration, places)
    if shared is None:
        return StoragePlaces(own, history, is_durable=False)
    try:
        make_closed(shared.parent)
        make_closed(shared)
    except NotPrivateError as error:
        raise ConfigurationError(f"{HA_STORAGE_FOLDER.key}: {error}") from error
    except OSError as error:
        raise ConfigurationError(
            f"{HA_STORAGE_FOLDER.key}: {shared} cannot be made: {error.strerror or error}"
        ) from error
    if not os.access(shared, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{HA_STORAGE_FOLDER.key}: {shared} cannot be written by this user")
    return StoragePlaces(shared, history, is_durable=True)
