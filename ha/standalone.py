"""One fixed leader: no election, its address is configuration.

Without a quorum there is no source of growing numbers, so the caller gives the epoch (a standalone JobManager takes the
milliseconds of its start). The one contender leads from ``start`` to ``close``; listeners are told the fixed address.

Source: Flink's StandaloneHaServices.
Held by: tests/ha/test_embedded.py
"""

from __future__ import annotations

import uuid

from ha.information import LeaderInformation
from ha.interfaces import LeaderContender, LeaderRetrievalListener


class StandaloneElection:
    """Grants its only contender at once."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._contender: LeaderContender | None = None

    def start(self, contender: LeaderContender) -> None:
        """Grant leadership; a second contender is an error."""
        if self._contender is not None:
            raise RuntimeError("a standalone election has one contender")
        self._contender = contender
        contender.grant_leadership(self._epoch, uuid.uuid4())

    def confirm(self, information: LeaderInformation) -> None:
        """Do nothing: the address is fixed."""

    def has_leadership(self, epoch: int) -> bool:
        """Return whether the contender is in, under that epoch."""
        return self._contender is not None and epoch == self._epoch

    def close(self) -> None:
        """Revoke leadership."""
        contender, self._contender = self._contender, None
        if contender is not None:
            contender.revoke_leadership()


class StandaloneRetrieval:
    """Retrieves a fixed leader."""

    trouble = ""

    def __init__(self, information: LeaderInformation) -> None:
        self._information = information

    def start(self, listener: LeaderRetrievalListener) -> None:
        """Tell the listener the leader at once."""
        listener.notify_leader(self._information)

    def close(self) -> None:
        """Do nothing."""
