"""Storage of a JobManager for state that outlives a leader: jobs, blobs, history.

    <high-availability.storageDir>/<cluster id>/{jobs,results,blobs,history}     with ZooKeeper, or where it is set
    <process's own folder>/{jobs,results,blobs}, <log>/history                    else: jobs end with the process

With ZooKeeper and without ``high-availability.storageDir`` it is a folder beside the logs, which is enough for
JobManagers of one machine; those of several need one that all of them reach, or a prefix of an object store. Without
ZooKeeper a folder that is set has the handles, too: the jobs of the one JobManager go on when it is started again.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from engine.blob.blob_store import BlobStore
from engine.blob.stored_blobs import StoredBlobs
from engine.commit.store_publication import objects_of
from engine.config.loader import Configuration
from engine.config.options import HA_CLUSTER_ID, HA_STORAGE_FOLDER, HA_TYPE, JOB_STORE_FOLDER
from engine.entrypoint.places import Places, home_folder
from engine.errors import ConfigurationError, PlanError
from engine.private_folder import NotPrivateError, make_closed
from engine.process_folder import ProcessFolder
from engine.storage.file_systems import file_system_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoragePlaces:
    """Folders, or prefixes of a store; ``is_durable``: they outlive the process."""

    folder: str
    history: str
    is_durable: bool

    @property
    def handles(self) -> Path:
        """The folder of job handles of a JobManager without a quorum."""
        return Path(self.folder) / "handles"

    @property
    def blobs(self) -> str:
        """The folder of files that ship with jobs."""
        return f"{self.folder}/blobs"


def blob_store(places: StoragePlaces, own: ProcessFolder) -> BlobStore:
    """Return the blobs of a JobManager; those of an object store are cached in its own folder."""
    objects = file_system_of(places.blobs).objects
    if objects is not None:
        return StoredBlobs(places.blobs, objects, own.path / "blobs", own.ensure)
    return BlobStore(Path(places.blobs), places.is_durable, own.ensure)


def shared_folder(configuration: Configuration, places: Places) -> str | None:
    """Return the folder of this cluster that its JobManagers share, or None where jobs end with theirs."""
    chosen = configuration.get(HA_STORAGE_FOLDER)
    if configuration.get(HA_TYPE) != "ZOOKEEPER" and not chosen:
        return None
    cluster_id: str = configuration.get(HA_CLUSTER_ID)
    name = cluster_id.strip("/").replace("/", "_")
    if not chosen:
        return os.fspath(places.log / "high-availability" / name)
    text = _path(chosen, configuration)
    return f"{text.rstrip('/')}/{name}" if "://" in text else os.fspath(home_folder() / text / name)


def _path(text: str, configuration: Configuration) -> str:
    """Return the path of a folder, which may be written as a URL, as Flink's are, or the URL of a store."""
    scheme, separator, path = text.partition("://")
    if not separator:
        return text
    if file_system_of(text).objects is not None and scheme.lower() not in ("http", "https"):
        if configuration.get(HA_TYPE) != "ZOOKEEPER":
            raise ConfigurationError(
                f"{HA_STORAGE_FOLDER.key}: {text} is an object store, which needs high-availability.type: ZOOKEEPER; "
                "a single JobManager without it keeps its jobs in a folder"
            )
        return text
    if scheme != "file" or not path.startswith("/"):
        raise ConfigurationError(
            f"{HA_STORAGE_FOLDER.key}: {text} is not a folder of this machine or one mounted here; {scheme}:// is not "
            "supported: JobManagers share a file system that renames atomically, such as NFS, or an object store: "
            "s3://, gs://, abfs:// or az://"
        )
    return path


def history_folder(configuration: Configuration, places: Places) -> str:
    """Return the folder of ended jobs."""
    chosen = configuration.get(JOB_STORE_FOLDER)
    return chosen or f"{shared_folder(configuration, places) or places.log}/history"


def storage_places(configuration: Configuration, places: Places, own: Path) -> StoragePlaces:
    """Return the folders; ``own`` is the process's. ConfigurationError where they cannot be made."""
    shared = shared_folder(configuration, places)
    history = history_folder(configuration, places)
    former = places.log / "history"
    count = len(list(former.glob("*.job")))
    if count and os.fspath(former) != history:
        _log.warning(
            "%d jobs that ended before lie in %s and are not shown: history is in %s now (%s, %s); move the files "
            "there, or set %s to where they are",
            count, former, history, HA_STORAGE_FOLDER.key, JOB_STORE_FOLDER.key, JOB_STORE_FOLDER.key,
        )  # fmt: skip
    if shared is None:
        return StoragePlaces(os.fspath(own), history, is_durable=False)
    if file_system_of(shared).folders is not None:
        _make_shared(Path(shared))
    else:
        _check_store(shared)
    return StoragePlaces(shared, history, is_durable=True)


def _make_shared(folder: Path) -> None:
    try:
        make_closed(folder.parent)
        make_closed(folder)
    except NotPrivateError as error:
        raise ConfigurationError(f"{HA_STORAGE_FOLDER.key}: {error}") from error
    except OSError as error:
        raise ConfigurationError(
            f"{HA_STORAGE_FOLDER.key}: {folder} cannot be made: {error.strerror or error}"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{HA_STORAGE_FOLDER.key}: {folder} cannot be written by this user")


def _check_store(prefix: str) -> None:
    """Raise ConfigurationError where a store has no such bucket, refuses these credentials, or ignores conditions."""
    try:
        objects_of(prefix).require_conditions(prefix)
    except (OSError, PlanError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError(f"{HA_STORAGE_FOLDER.key}: {prefix} cannot be used: {reason}") from error
