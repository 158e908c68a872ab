"""What components and leader services know of each other.

    election.start(contender)
        ──► contender.grant_leadership(epoch, session)     the contender becomes active ...
        election.confirm(LeaderInformation(...))           ... and says where it is reached
        ──► contender.revoke_leadership()                  it stops acting at once
    election.close()                                       gives leadership back (revokes first)

    retrieval.start(listener) ──► listener.notify_leader(LeaderInformation | None) at every change ──► retrieval.close()

Invariants: grant and revoke alternate; epochs grow from grant to grant; no call reaches a contender after ``close``
has returned. Calls come on a thread of the service (for embedded and standalone: the caller's own), so a contender
hands them to its event loop and returns.

Source: Flink's LeaderContender, LeaderElection, LeaderRetrievalService and LeaderRetrievalListener.
"""

from __future__ import annotations

import uuid
from typing import Protocol

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
        """Hear that the election itself failed; the process cannot go on."""
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
    """Wants to know who leads."""

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Hear of the leader, or that there is none now."""
        ...


class LeaderRetrieval(Protocol):
    """Watches who leads."""

    def start(self, listener: LeaderRetrievalListener) -> None:
        """Begin to watch; the present leader is told at once."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...
