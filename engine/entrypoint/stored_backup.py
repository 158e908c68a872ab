"""StoredBackup: backups of the cluster that is configured here, from outside of its processes.

    StoredBackup(configuration) ─► write(path)       the cluster may run
                                └► restore(path)     no JobManager leads: this process does for a moment

Held by: tests/chaos/test_backups.py
"""

from __future__ import annotations

import queue
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.client.elected_leader import zookeeper_settings
from engine.config.loader import Configuration
from engine.config.options import HA_TYPE
from engine.dispatcher.file_handles import FileHandles, HeldError
from engine.dispatcher.state_backup import BackupError, BackupPlaces, read_backup, restore, write_backup
from engine.entrypoint.places import find_places
from engine.entrypoint.servers import load_credentials
from engine.entrypoint.storage_places import history_folder, shared_folder
from engine.storage.store_client import use_store_settings
from ha.interfaces import ForeignStateError, StaleEpochError, StateHandleStore, StateUnavailableError
from ha.services import create_ha_services

#: seconds in which a leader that was stopped is gone
_LEAD_S = 30.0
_PURPOSE = b"state backup"
_LEADS = "a JobManager leads: stop the cluster before a backup is restored"


class _Contender:
    """Leads for a moment."""

    def __init__(self) -> None:
        self.epochs: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()

    def grant_leadership(self, epoch: int, session: uuid.UUID) -> None:
        """Take note of the epoch."""
        self.epochs.put(epoch)

    def revoke_leadership(self) -> None:
        """Do nothing: writes of an epoch that ended are refused."""

    def handle_error(self, error: Exception) -> None:
        """Take note of the error."""
        self.epochs.put(error)


class StoredBackup:
    """Blocking. ``is_stored``: there is something to back up."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._is_elected = configuration.get(HA_TYPE) == "ZOOKEEPER"
        self._credentials = load_credentials(configuration)
        places = find_places()
        folder = shared_folder(configuration, places)
        if folder is None:
            raise BackupError("neither high-availability.type nor .storageDir is set: nothing is stored of jobs")
        self._places = BackupPlaces(folder, history_folder(configuration, places))
        use_store_settings(configuration.storage_texts())

    def write(self, path: Path) -> int:
        """Write a backup and return the number of jobs in it that have not ended."""
        with _understood():
            return write_backup(path, self._places, self._store(), self._credentials.key(_PURPOSE))

    def restore(self, path: Path) -> int:
        """Restore a backup and return the number of jobs that go on."""
        backup = read_backup(path, self._credentials.key(_PURPOSE))
        with _understood(), self._leading() as (store, epoch):
            return restore(backup, self._places, store, epoch)

    def _store(self) -> StateHandleStore:
        if self._is_elected:
            settings = zookeeper_settings(self._configuration, self._credentials)
            return create_ha_services("ZOOKEEPER", zookeeper=settings).state_store()
        return FileHandles(Path(self._places.storage) / "handles", lambda epoch: False)

    @contextmanager
    def _leading(self) -> Iterator[tuple[StateHandleStore, int]]:
        """Keep every JobManager from leading meanwhile."""
        if not self._is_elected:
            handles = FileHandles(Path(self._places.storage) / "handles", lambda epoch: True)
            try:
                handles.hold()  # for the rest of this process
            except HeldError:
                raise BackupError(_LEADS) from None
            yield handles, 1
            return
        settings = zookeeper_settings(self._configuration, self._credentials)
        services = create_ha_services("ZOOKEEPER", zookeeper=settings)
        contender, election = _Contender(), services.election()
        election.start(contender)
        try:
            epoch = contender.epochs.get(timeout=_LEAD_S)
            if isinstance(epoch, Exception):
                raise BackupError(f"the backup is not restored: {epoch}") from epoch
            yield services.state_store(), epoch
        except queue.Empty:
            services.state_store().names()  # where ZooKeeper does not answer, that is the reason
            raise BackupError(_LEADS) from None
        finally:
            election.close()


@contextmanager
def _understood() -> Iterator[None]:
    """Turn errors of the state store into a BackupError."""
    try:
        yield
    except (StateUnavailableError, ForeignStateError, StaleEpochError) as error:
        raise BackupError(f"the handles of jobs cannot be read or written: {error}") from error
