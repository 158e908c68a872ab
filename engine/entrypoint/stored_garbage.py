"""StoredGarbage: the orphans of the cluster that is configured here, from outside of its processes.

    garbage = StoredGarbage(configuration) ─► folder (None: nothing is stored) ─► find(outputs) ─► remove(orphan)

Handles are read as every process of the cluster may; only a leader writes them.

Held by: tests/dispatcher/test_orphans.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.client.elected_leader import zookeeper_settings
from engine.config.loader import Configuration
from engine.config.options import HA_TYPE
from engine.dispatcher.file_handles import FileHandles
from engine.dispatcher.orphans import Orphan, find_orphans, remove_orphan
from engine.entrypoint.places import find_places
from engine.entrypoint.servers import load_credentials
from engine.entrypoint.storage_places import shared_folder
from engine.errors import ResourceError
from ha.interfaces import ForeignStateError, StateHandleStore, StateUnavailableError
from ha.services import create_ha_services


class StoredGarbage:
    """Blocking."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.folder = shared_folder(configuration, find_places())
        self._store: StateHandleStore | None = None

    def find(self, outputs: Iterable[str] = ()) -> list[Orphan]:
        """Return the orphans; ResourceError when they cannot be determined."""
        assert self.folder is not None, "nothing is stored"
        try:
            return find_orphans(self.folder, self._handles(), outputs)
        except (StateUnavailableError, ForeignStateError, OSError) as error:
            raise ResourceError(f"files in {self.folder} cannot be compared with their handles: {error}") from error

    def remove(self, orphan: Orphan) -> bool:
        """Remove one that lies in files, unless it is needed now; return whether it is gone. Raises OSError."""
        try:
            return remove_orphan(orphan, self._handles())
        except StateUnavailableError as error:
            raise ResourceError(str(error)) from error

    def _handles(self) -> StateHandleStore:
        if self._store is None:
            if self._configuration.get(HA_TYPE) == "ZOOKEEPER":
                settings = zookeeper_settings(self._configuration, load_credentials(self._configuration))
                self._store = create_ha_services("ZOOKEEPER", zookeeper=settings).state_store()
            else:
                assert self.folder is not None, "nothing is stored"
                self._store = FileHandles(Path(self.folder) / "handles", lambda epoch: False)
        return self._store
