"""Leader services inside one process: the first contender leads at once; the next one when it has left.

    EmbeddedLeaderService ── election() ──► LeaderElection of one contender
                          ── retrieval() ─► LeaderRetrieval of one listener
                          ── state_store() ─► contents of the process

Every grant has an epoch one higher than the last, so that fencing works here exactly as it does over ZooKeeper.
Thread safe; contenders and listeners are called outside the lock, in the thread that caused the change.

Source: Flink's EmbeddedLeaderService.
"""

from __future__ import annotations

import threading
import uuid

from ha.information import LeaderInformation
from ha.interfaces import LeaderContender, LeaderElection, LeaderRetrieval, LeaderRetrievalListener, StateHandleStore
from ha.memory_state import MemoryStateStore


class EmbeddedLeaderService:
    """One role that several contenders of this process may want."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._epoch = 0
        self._waiting: list[_EmbeddedElection] = []
        self._leader: _EmbeddedElection | None = None
        self._information: LeaderInformation | None = None
        self._listeners: list[LeaderRetrievalListener] = []
        self._store = MemoryStateStore(self._is_granted)

    def election(self) -> LeaderElection:
        """Return an election for one contender."""
        return _EmbeddedElection(self)

    def retrieval(self) -> LeaderRetrieval:
        """Return a retrieval for one listener."""
        return _EmbeddedRetrieval(self)

    def state_store(self) -> StateHandleStore:
        """Return the contents, which end with this process."""
        return self._store

    def session_health(self) -> None:
        """Return None: there is no session."""

    def enter(self, election: _EmbeddedElection) -> None:
        """Join the queue of contenders; the first one leads when none does."""
        with self._lock:
            self._waiting.append(election)
        self._grant_next()

    def leave(self, election: _EmbeddedElection) -> None:
        """Give leadership or the place in the line back."""
        with self._lock:
            if election in self._waiting:
                self._waiting.remove(election)
            was_leader = self._leader is election
            if was_leader:
                self._information = None
            listeners = tuple(self._listeners) if was_leader else ()
        if not was_leader:
            return
        for listener in listeners:
            listener.notify_leader(None)
        election.contender.revoke_leadership()
        with self._lock:
            self._leader = None
        self._grant_next()

    def publish(self, election: _EmbeddedElection, information: LeaderInformation) -> None:
        """Tell listeners where the leader is, when it still is the leader."""
        with self._lock:
            if self._leader is not election or information.epoch != self._epoch:
                return
            self._information = information
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener.notify_leader(information)

    def is_leading(self, election: _EmbeddedElection, epoch: int) -> bool:
        """Return whether the election holds that epoch."""
        with self._lock:
            return self._leader is election and self._epoch == epoch

    def _is_granted(self, epoch: int) -> bool:
        with self._lock:
            return self._leader is not None and self._epoch == epoch

    def watch(self, listener: LeaderRetrievalListener) -> None:
        """Add a listener and tell it the present leader."""
        with self._lock:
            self._listeners.append(listener)
            information = self._information
        listener.notify_leader(information)

    def unwatch(self, listener: LeaderRetrievalListener) -> None:
        """Remove a listener."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def _grant_next(self) -> None:
        with self._lock:
            if self._leader is not None or not self._waiting:
                return
            election = self._waiting.pop(0)
            self._leader = election
            self._epoch += 1
            epoch = self._epoch
        election.contender.grant_leadership(epoch, uuid.uuid4())


class _EmbeddedElection:
    """One contender's part in the election."""

    def __init__(self, service: EmbeddedLeaderService) -> None:
        self._service = service
        self.contender: LeaderContender

    def start(self, contender: LeaderContender) -> None:
        """Enter."""
        self.contender = contender
        self._service.enter(self)

    def confirm(self, information: LeaderInformation) -> None:
        """Publish the leader."""
        self._service.publish(self, information)

    def has_leadership(self, epoch: int) -> bool:
        """Return whether ``epoch`` is held now."""
        return self._service.is_leading(self, epoch)

    def close(self) -> None:
        """Leave."""
        self._service.leave(self)


class _EmbeddedRetrieval:
    """One listener's watch."""

    trouble = ""

    def __init__(self, service: EmbeddedLeaderService) -> None:
        self._service = service
        self._listener: LeaderRetrievalListener | None = None

    def start(self, listener: LeaderRetrievalListener) -> None:
        """Begin to watch."""
        self._listener = listener
        self._service.watch(listener)

    def close(self) -> None:
        """Stop watching."""
        if self._listener is not None:
            self._service.unwatch(self._listener)
            self._listener = None
