"""ZooKeeperRetrieval: tells a listener which process leads, and every change of it.

    read the record, with a watch ──► notify ... the watch fires ──► read again

A record that no holder of the secret wrote counts as none, and so does one of a lower epoch than one before. A lost
connection changes nothing: the last known leader may well lead. Source: Flink's ZooKeeperLeaderRetrievalDriver.

Held by: tests/ha/test_zookeeper.py
"""

from __future__ import annotations

import logging
from typing import Any

from kazoo.exceptions import NoNodeError

from ha.information import LeaderInformation
from ha.interfaces import LeaderRetrievalListener
from ha.zookeeper_record import decode_leader
from ha.zookeeper_session import ZooKeeperSession

_log = logging.getLogger(__name__)


class ZooKeeperRetrieval:
    """One listener's watch. ``start``, ``close``: any thread; the rest: the session's."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self.trouble = ""
        self._session = session
        self._path = session.settings.information_path
        self._listener: LeaderRetrievalListener | None = None
        self._known: LeaderInformation | None = None
        self._has_told = False
        self._highest_epoch = 0
        self._round = 0

    def start(self, listener: LeaderRetrievalListener) -> None:
        """Begin to watch; the listener hears as soon as ZooKeeper has answered."""
        self._listener = listener
        self._session.attach(self)

    def close(self) -> None:
        """Stop watching."""
        if self._listener is not None:
            self._session.detach(self, self._end)

    def connected(self) -> None:
        """Read from the beginning: watches are gone with the connection."""
        self._look()

    def expired(self) -> None:
        """Go on: this says nothing about the leader."""

    def check(self) -> None:
        """Do nothing: nothing is due."""

    def failed(self, error: Exception) -> None:
        """Keep the error that the session has reported: it is why no leader is known."""
        self.trouble = str(error)

    def _end(self) -> None:
        self._round += 1
        self._listener = None

    def _look(self) -> None:
        self._round += 1
        now = self._round

        def fired() -> None:
            if now == self._round:
                self._look()

        def read(answer: Any) -> None:
            if now == self._round:
                self._tell(self._decoded(answer[0]))

        def missing(error: Exception) -> None:
            if not isinstance(error, NoNodeError):
                _log.error("the leader's record cannot be read: %r", error)
            elif now == self._round:
                self._session.ask(lambda client: client.exists_async(self._path, watch=watch), appeared)

        def appeared(stat: Any) -> None:
            if now != self._round:
                return
            if stat is None:
                self._tell(None)
            else:
                self._look()

        watch = self._session.watch(fired)
        self._session.ask(lambda client: client.get_async(self._path, watch=watch), read, missing)

    def _decoded(self, content: bytes) -> LeaderInformation | None:
        try:
            information = decode_leader(content, self._session.settings)
        except ValueError as error:
            _log.error("no process leads: %s", error)
            self.trouble = str(error)
            return None
        self.trouble = ""
        if information.epoch < self._highest_epoch:
            _log.error("%s names epoch %d after %d", self._path, information.epoch, self._highest_epoch)
            return None
        self._highest_epoch = information.epoch
        return information

    def _tell(self, information: LeaderInformation | None) -> None:
        if self._listener is not None and not (self._has_told and information == self._known):
            self._known, self._has_told = information, True
            self._listener.notify_leader(information)
