"""ZooKeeperElection: the first of a line of latch nodes leads, under the number of the transaction that made its node.

    line up ──► latch/<token>-0000000007   ephemeral, ours when its owner is our session
    look    ──► is it the first? ── yes ──► grant(epoch = czxid)      while the lease runs
                     └─ no ──► watch the one before it only; look again when that is gone
    lease or session ends, or the node is gone ──► revoke; line up again with a new node

A node leads only once: a contender that was revoked gets a new node, so epochs only grow. The token finds a node whose
creation was never confirmed. The leader's record is replaced in one transaction with a check of the latch node, whose
path is never used twice, so only the leader can publish.

What happens when a leader's nodes are removed or changed by others:

    connection_info              published again at once; the leadership goes on
    latch/<token>-<sequence>     the leadership ends at once, and the first in the line leads under a higher epoch
    latch, leader, the roots     the same: their leaves go with them, and the next contender that looks makes them again

Source: Curator's LeaderLatch and Flink's ZooKeeperLeaderElectionDriver.
Held by: tests/ha/test_zookeeper.py
Held by: tests/ha/test_unrest.py
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.security import OPEN_ACL_UNSAFE

from ha.information import LeaderInformation
from ha.interfaces import LeaderContender
from ha.zookeeper_record import encode_leader
from ha.zookeeper_session import ZooKeeperSession, boot_time_s

_log = logging.getLogger(__name__)
#: reason of a leader that leaves by itself
_LEFT = "it has left"
_SEQUENCE_DIGITS = 10
#: seconds until a failed publication of the record is tried again
_PUBLISH_PAUSE_S = 0.2


class ZooKeeperElection:
    """One contender's part. Public methods: any thread; the rest: the session's."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._settings = session.settings
        self._contender: LeaderContender | None = None
        #: epoch of the current leadership, 0: none. Read by any thread.
        self._epoch = 0
        self._token = uuid.uuid4().hex
        #: tokens of nodes of former leaderships
        self._left: set[str] = set()
        self._path = ""
        #: epoch for which this contender is the first in the queue, 0: it is not
        self._next_epoch = 0
        self._information: LeaderInformation | None = None
        #: number of the current read of the record; answers to earlier ones are dropped
        self._look_at_record = 0
        #: time at which a failed publication is tried again, 0.0: none failed
        self._publish_again_s = 0.0
        #: number of the current round; answers and watches of earlier ones are dropped
        self._round = 0

    def start(self, contender: LeaderContender) -> None:
        """Line up; leadership comes when it comes."""
        self._contender = contender
        self._session.attach(self)

    def confirm(self, information: LeaderInformation) -> None:
        """Publish where the leader is, when it still leads under that epoch."""
        self._session.post(lambda: self._confirm(information))

    def has_leadership(self, epoch: int) -> bool:
        """Return whether ``epoch`` is granted now, and the lease runs."""
        return epoch > 0 and self._epoch == epoch and self._session.is_alive()

    def latch_path(self, epoch: int) -> str:
        """Return the node that exists as long as ``epoch`` leads, "" when it is not granted. On the thread only."""
        return self._path if self.has_leadership(epoch) else ""

    def close(self) -> None:
        """Leave the line; leadership is revoked before."""
        if self._contender is not None:
            self._session.detach(self, self._end)
            self._contender = None

    # ---- Driver ----

    def connected(self) -> None:
        """Look from the beginning, at what ZooKeeper's leader knows."""
        self._round += 1
        self._session.check_limits()
        self._ask(lambda client: client.sync_async("/"), lambda _: self._look())

    def expired(self) -> None:
        """All nodes are gone with the session."""
        self._left.clear()
        self._line_up_again("its ZooKeeper session has ended")
        self._left.clear()

    def check(self) -> None:
        """Revoke when the lease has ended, grant when it runs, publish what is not yet."""
        if self._epoch and not self._session.is_alive():
            self._line_up_again("its lease has ended")
            if self._session.is_connected:
                self.connected()
        elif self._next_epoch and not self._epoch and self._session.is_alive():
            self._epoch = self._next_epoch
            _log.info("granted leadership under epoch %d", self._epoch)
            assert self._contender is not None, "a driver that is attached has a contender"
            self._contender.grant_leadership(self._epoch, uuid.uuid4())
        elif self._publish_again_s and boot_time_s() >= self._publish_again_s:
            self._publish_again_s = 0.0
            self._look()

    def failed(self, error: Exception) -> None:
        """Report the error to the contender."""
        if self._contender is not None:
            self._contender.handle_error(error)

    # ---- the line ----

    def _ask(
        self,
        request: Callable[[Any], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Ask for this round: answers that come after it are dropped."""
        of_this_round = self._this_round
        self._session.ask(request, of_this_round(done), of_this_round(failed) if failed is not None else None)

    def _this_round(self, action: Callable[[Any], None]) -> Callable[[Any], None]:
        now = self._round

        def act(value: Any) -> None:
            if now == self._round:
                action(value)

        return act

    def _look(self) -> None:
        self._ask(lambda client: client.get_children_async(self._settings.latch_folder), self._see, self._no_folder)

    def _no_folder(self, error: Exception) -> None:
        if not isinstance(error, NoNodeError):
            self.failed(error)
            return
        names = self._settings.latch_folder.strip("/").split("/")
        paths = ["/" + "/".join(names[: depth + 1]) for depth in range(len(names))]
        # The root is open, so that clusters with other secrets can share it.
        open_depth = len(self._settings.root.strip("/").split("/"))

        def make(depth: int) -> None:
            if depth == len(paths):
                self._look()
                return
            acl = OPEN_ACL_UNSAFE if depth < open_depth else self._session.acl
            self._ask(
                lambda client: client.create_async(paths[depth], b"", acl=acl),
                lambda _: make(depth + 1),
                lambda error: not_made(depth, error),
            )

        def not_made(depth: int, error: Exception) -> None:
            if isinstance(error, NodeExistsError):
                make(depth + 1)
            elif isinstance(error, NoNodeError):  # another client removes what is made here
                make(0)
            else:
                self.failed(error)

        make(0)

    def _see(self, names: list[str]) -> None:
        folder = self._settings.latch_folder
        for name in names:
            if name.partition("-")[0] in self._left:
                path = f"{folder}/{name}"
                self._ask(lambda client, path=path: client.delete_async(path), _ignore, _ignore)  # type: ignore[misc]
        line = sorted(names, key=lambda name: name[-_SEQUENCE_DIGITS:])
        mine = next((name for name in line if name.partition("-")[0] == self._token), None)
        if mine is None:
            if self._path:
                self._line_up_again("its node is gone")
            self._ask(
                lambda client: client.create_async(
                    f"{folder}/{self._token}-", b"", acl=self._session.acl, ephemeral=True, sequence=True
                ),
                lambda _: self._look(),
                self._no_folder,
            )
            return
        self._path = f"{folder}/{mine}"
        place = line.index(mine)
        watched = self._path if place == 0 else f"{folder}/{line[place - 1]}"
        fired = self._this_round(lambda _: self._look())
        self._ask(
            lambda client: client.exists_async(watched, watch=self._session.watch(lambda: fired(None))),
            self._is_first if place == 0 else self._is_behind,
        )

    def _is_behind(self, stat: Any) -> None:
        if stat is None:
            self._look()

    def _is_first(self, stat: Any) -> None:
        if stat is None:
            self._look()
        elif stat.ephemeralOwner != self._session.session_id:
            # It has our token, but its session is gone, so it will go as well.
            self._line_up_again("its node belongs to another session")
            self._look()
        else:
            self._next_epoch = stat.czxid
            if self._epoch:
                self._publish()

    def _line_up_again(self, reason: str) -> None:
        """Give leadership and place up; the next node gets another token, and so another epoch."""
        self._round += 1
        self._left.add(self._token)
        self._token, self._path, self._next_epoch = uuid.uuid4().hex, "", 0
        epoch, self._epoch = self._epoch, 0
        self._information, self._publish_again_s = None, 0.0
        if epoch and self._contender is not None:
            level = logging.INFO if reason == _LEFT else logging.WARNING
            _log.log(level, "revoked leadership under epoch %d: %s", epoch, reason)
            self._contender.revoke_leadership()

    def _end(self) -> None:
        """Leave; a node that another driver's session keeps would hold the line up."""
        path = self._path
        self._line_up_again(_LEFT)
        if path:
            self._session.ask(lambda client: client.delete_async(path), _ignore, _ignore)

    # ---- the record ----

    def _confirm(self, information: LeaderInformation) -> None:
        if self._epoch and information.epoch == self._epoch:
            self._information = information
            self._publish()

    def _publish(self, *, is_watched: bool = False) -> None:
        """Write this leader's address to the record; then read it again, with a watch."""
        if self._information is None:
            return
        self._look_at_record += 1
        number, path = self._look_at_record, self._settings.information_path
        content = encode_leader(self._information, self._settings)

        def of_this_look(action: Callable[[Any], None]) -> Callable[[Any], None]:
            return self._this_round(lambda value: action(value) if number == self._look_at_record else None)

        def read(answer: Any) -> None:
            data, stat = answer
            if data != content or stat.ephemeralOwner != self._session.session_id:
                self._replace(path, content, stat.version)
            elif not is_watched:
                self._publish(is_watched=True)

        def missing(error: Exception) -> None:
            if isinstance(error, NoNodeError):
                self._replace(path, content, None)
            else:
                self.failed(error)

        def changed(_: Any) -> None:
            _log.warning("%s was removed or changed while this process leads: it is published again", path)
            self._publish()

        fired = of_this_look(changed)
        watch = self._session.watch(lambda: fired(None)) if is_watched else None
        self._ask(lambda client: client.get_async(path, watch=watch), of_this_look(read), of_this_look(missing))

    def _replace(self, path: str, content: bytes, version: int | None) -> None:
        """Make the record; ``version`` is of the one that is there, None where there is none."""
        self._look_at_record += 1  # a watch tells of what is done here
        latch = self._path

        def request(client: Any) -> Any:
            transaction = client.transaction()
            transaction.check(latch, 0)
            if version is not None:
                transaction.delete(path, version)
            transaction.create(path, content, acl=self._session.acl, ephemeral=True)
            return transaction.commit_async()

        def written(results: list[Any]) -> None:
            failures = [result for result in results if isinstance(result, Exception)]
            if not failures:
                self._publish(is_watched=True)
                return
            # The latch is gone, or another record came in between.
            _log.warning("%s could not be published, it is tried again: %r", path, failures)
            self._publish_again_s = boot_time_s() + _PUBLISH_PAUSE_S

        self._ask(request, written)


def _ignore(_: object) -> None:
    """Do nothing."""
