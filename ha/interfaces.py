"""The interfaces between components and leader services.

    election.start(contender)
        ──► contender.grant_leadership(epoch, session)     the contender becomes active ...
        election.confirm(LeaderInformation(...))           ... and says where it is reached
        ──► contender.revoke_leadership()                  it stops acting at once
    election.close()                                       gives leadership back (revokes first)

    retrieval.start(listener) ──► listener.notify_leader(LeaderInformation | None) at every change ──► retrieval.close()

Invariants: grant and revoke alternate; epochs grow from grant to grant; no call reaches a contender after ``close``
has returned. Calls come on a thread of the service (for embedded and standalone: the caller's own), so a contender
passes them to its event loop and returns.

    store.create(epoch, name, content) ─► replace(epoch, name, content, version) ... remove(epoch, name)

The store keeps small handles (where something large lies, and what became of it), written by the leader, read by the
next leader. A write under an epoch that is no longer in force changes nothing.

Source: Flink's LeaderContender, LeaderElection, LeaderRetrievalService, LeaderRetrievalListener and StateHandleStore.
Held by: tests/ha/test_zookeeper.py
Held by: tests/ha/test_embedded.py
"""

from __future__ import annotations

import uuid
from typing import NamedTuple, Protocol

from ha.information import LeaderInformation


class LeaderContender(Protocol):
    """Wants to lead."""

    def grant_leadership(self, epoch: int, session: uuid.UUID) -> None:
        """Begin to act under ``epoch``."""
        ...

    def revoke_leadership(self) -> None:
        """Stop acting at once."""
        ...

    def handle_error(self, error: Exception) -> None:
        """Handle a failed election; the process cannot go on."""
        ...


class LeaderElection(Protocol):
    """Decides which contender leads."""

    def start(self, contender: LeaderContender) -> None:
        """Enter a contender; it may be granted leadership before this returns."""
        ...

    def confirm(self, information: LeaderInformation) -> None:
        """Publish where the leader is reached; ignored when its epoch is not the granted one."""
        ...

    def has_leadership(self, epoch: int) -> bool:
        """Return whether ``epoch`` is granted to this contender now."""
        ...

    def close(self) -> None:
        """Leave the election."""
        ...


class LeaderRetrievalListener(Protocol):
    """A listener that is told which process leads."""

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Handle a new leader, or that there is none."""
        ...


class LeaderRetrieval(Protocol):
    """Watches which process leads."""

    @property
    def trouble(self) -> str:
        """The reason for which the watch has no answer; "" where there is none. Thread: any."""
        ...

    def start(self, listener: LeaderRetrievalListener) -> None:
        """Begin to watch; the present leader is told at once."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class SessionHealth(NamedTuple):
    """The session of a process at its quorum, as people watch it."""

    is_connected: bool
    #: True while the lease runs: the session lives for certain
    is_alive: bool
    #: number of sessions of this process that have ended against its will
    ended_count: int


class StaleEpochError(Exception):
    """The epoch of a write is no longer granted: another process leads, or none."""


class StateUnavailableError(Exception):
    """The store did not answer in time; whether something was written is not known."""


class ForeignStateError(Exception):
    """A content was not written by this cluster, or is damaged."""


class StoredState(NamedTuple):
    """A content, and the version that it has."""

    content: bytes
    version: int


class StateHandleStore(Protocol):
    """Small contents by name. Blocking and bounded in time; from any thread but the leader services' own.

    All raise StateUnavailableError, but only after they have looked whether a write without an answer took effect.
    """

    def names(self) -> tuple[str, ...]:
        """Return the names that there are, sorted."""
        ...

    def read(self, name: str) -> StoredState | None:
        """Return a content, or None; raises ForeignStateError."""
        ...

    def create(self, epoch: int, name: str, content: bytes) -> bool:
        """Store a content under a new name; return False when the name is there. Raises StaleEpochError."""
        ...

    def replace(self, epoch: int, name: str, content: bytes, version: int) -> bool:
        """Change a content that still has that version; return False when it has not. Raises StaleEpochError."""
        ...

    def remove(self, epoch: int, name: str) -> None:
        """Remove a name; one that is gone is no error. Raises StaleEpochError."""
        ...
