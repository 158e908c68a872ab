"""ZooKeeperStateStore: small contents in nodes that only the leader of an epoch can change.

    <root>/<cluster id>/jobs/<name>      {"cluster": .., "name": .., "write": ..} <content>, sealed

    write    check(latch node of the epoch, version 0) + create | set_data(version) | delete     one transaction
    call     any thread ── posts ──► the session's thread works on it ── at every connection ──► the caller gets on

The path of a latch node is never used twice, so a transaction that reaches ZooKeeper after its epoch ended, however
late, changes nothing. Whether a write without an answer took effect is looked up over the next connection: each write
has a number of its own, by which it is recognised. A request of the connection before cannot arrive after that look,
since ZooKeeper takes a session's requests from one server at a time, in order.

Invariants: a call ends within the session time-out and ``_MARGIN_S``, whatever ZooKeeper does (within the connection
time-out while there was no connection yet); nothing above CONTENT_MAX_BYTES is sent, because ZooKeeper would cut the
connection of the whole process.

Source: Flink's ZooKeeperStateHandleStore; the number of a write is ours.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionMovedError,
)
from kazoo.exceptions import ConnectionLoss as ConnectionLossError

from ha.interfaces import ForeignStateError, StaleEpochError, StateUnavailableError, StoredState
from ha.state_limits import check_write, is_name
from ha.zookeeper_record import StateRecord, decode_state, encode_state
from ha.zookeeper_session import PASSING, ZooKeeperSession

#: seconds that a call may take in addition to the session time-out
_MARGIN_S = 2.0
_LOST = (*PASSING, SessionMovedError)

_Value = TypeVar("_Value")
#: requests of a call, in order: a function of the client (None: a connection), and its result
_Steps = Generator[Callable[[Any], Any] | None, Any, _Value]


class ZooKeeperStateStore:
    """The contents of one cluster. All methods: any thread but the session's."""

    def __init__(self, session: ZooKeeperSession, latch_of: Callable[[int], str]) -> None:
        self._session = session
        self._settings = session.settings
        #: function that returns the latch node of an epoch, "" when it is not granted here
        self._latch_of = latch_of
        self._lock = threading.Lock()
        #: number of writes that a lost leadership has stopped
        self.refused_writes = 0

    def names(self) -> tuple[str, ...]:
        """Return the names that ZooKeeper's leader knows, sorted; also those of nodes that others made."""
        return self._run(self._names)

    def read(self, name: str) -> StoredState | None:
        """Return a content, or None."""
        if not is_name(name):
            raise ForeignStateError(f"{self._path(name)}: no node of a cluster has such a name")
        found = self._run(lambda: self._find(name))
        return None if found is None else StoredState(found[0].content, found[1])

    def create(self, epoch: int, name: str, content: bytes) -> bool:
        """Store a content under a new name; return False when the name is there."""
        path, (write, sealed), acl = self._path(name), self._seal(name, content), self._session.acl
        return self._run(
            lambda: self._write(
                epoch, name, write, lambda transaction: transaction.create(path, sealed, acl=acl), is_new=True
            )
        )

    def replace(self, epoch: int, name: str, content: bytes, version: int) -> bool:
        """Change a content that still has that version; return False when it has not."""
        path, (write, sealed) = self._path(name), self._seal(name, content)
        return self._run(
            lambda: self._write(epoch, name, write, lambda transaction: transaction.set_data(path, sealed, version))
        )

    def remove(self, epoch: int, name: str) -> None:
        """Remove a name; one that is gone is no error."""
        check_write(name)
        path = self._path(name)
        self._run(lambda: self._write(epoch, name, "", lambda transaction: transaction.delete(path)))

    # ---- on the session's thread ----

    def _names(self) -> _Steps[tuple[str, ...]]:
        folder = self._settings.jobs_folder
        yield lambda client: client.sync_async(folder)
        try:
            return tuple(sorted((yield lambda client: client.get_children_async(folder))))
        except NoNodeError:
            return ()
        except NoAuthError as error:
            raise ForeignStateError(f"{folder} belongs to processes with another cluster secret") from error

    def _find(self, name: str) -> _Steps[tuple[StateRecord, int] | None]:
        path = self._path(name)
        try:
            data, stat = yield lambda client: client.get_async(path)
        except NoNodeError:
            return None
        except NoAuthError as error:
            raise ForeignStateError(f"{path} belongs to processes with another cluster secret") from error
        try:
            return decode_state(data, self._settings, name), stat.version
        except ValueError as error:
            raise ForeignStateError(f"{path}: {error}") from error

    def _write(
        self, epoch: int, name: str, write: str, change: Callable[[Any], None], *, is_new: bool = False
    ) -> _Steps[bool]:
        """Do one transaction; again when a connection was lost and it was not done. ``write``: its number."""
        is_lost = False
        while True:
            try:
                if is_lost and (yield from self._is_done(name, write)):
                    return True
                outcome = yield from self._attempt(epoch, name, change, is_new=is_new)
                if outcome is False and is_lost:
                    return (yield from self._is_done(name, write))
                if outcome is not None:
                    return outcome
            except _LOST:
                is_lost = True
                yield None

    def _attempt(self, epoch: int, name: str, change: Callable[[Any], None], *, is_new: bool) -> _Steps[bool | None]:
        """Do one transaction; return whether it changed something, None when the folder was not there."""
        latch = self._latch_of(epoch)
        if not latch:
            raise self._stale(epoch, name)
        of_latch, of_change = yield lambda client: _transaction(client, latch, change)
        if isinstance(of_latch, NoNodeError):
            raise self._stale(epoch, name)
        if not isinstance(of_change, Exception):
            return True
        # Another call may have made the folder since: what is new lacks nothing else.
        if isinstance(of_change, NoNodeError) and (not (yield from self._has_folder()) or is_new):
            return None
        if isinstance(of_change, NodeExistsError | BadVersionError | NoNodeError):
            return False
        if isinstance(of_change, NotEmptyError | NoAuthError):
            raise ForeignStateError(f"{self._path(name)} was made by others: {of_change!r}")
        raise of_change

    def _is_done(self, name: str, write: str) -> _Steps[bool]:
        """Check whether a transaction without an answer was carried out."""
        yield lambda client: client.sync_async(self._path(name))
        try:
            found = yield from self._find(name)
        except ForeignStateError:
            return False
        return found is None if write == "" else found is not None and found[0].write == write

    def _has_folder(self) -> _Steps[bool]:
        """Return whether the folder was there; it is now."""
        folder = self._settings.jobs_folder
        if (yield lambda client: client.exists_async(folder)) is not None:
            return True
        # Without the node above there is no latch either: the next transaction says that this process leads no more.
        with contextlib.suppress(NodeExistsError, NoNodeError):
            yield lambda client: client.create_async(folder, b"", acl=self._session.acl)
        return False

    # ---- any thread ----

    def _run(self, steps: Callable[[], _Steps[_Value]]) -> _Value:
        value: _Value = _Call(self._session, steps).result()
        return value

    def _path(self, name: str) -> str:
        return f"{self._settings.jobs_folder}/{name}"

    def _seal(self, name: str, content: bytes) -> tuple[str, bytes]:
        check_write(name, content)
        write = uuid.uuid4().hex
        return write, encode_state(StateRecord(write, content), self._settings, name)

    def _stale(self, epoch: int, name: str) -> StaleEpochError:
        with self._lock:
            self.refused_writes += 1
        return StaleEpochError(f"{self._path(name)} is not changed: epoch {epoch} leads no more")


def _transaction(client: Any, latch: str, change: Callable[[Any], None]) -> Any:
    transaction = client.transaction()
    transaction.check(latch, 0)
    change(transaction)
    return transaction.commit_async()


class _Call:
    """Steps that a thread waits for while the session's thread takes them. A Driver as long as they last."""

    def __init__(self, session: ZooKeeperSession, make_steps: Callable[[], _Steps[Any]]) -> None:
        self._session = session
        self._make_steps = make_steps
        self._steps: _Steps[Any] | None = None
        self._ended = threading.Event()
        self._value: Any = None
        self._error: Exception | None = None
        self._awaits_turn = True
        self._awaits_connection = False

    def result(self) -> Any:
        """Take the steps; return what comes of them, or raise it."""
        settings = self._session.settings
        longest_s = settings.session_timeout_s if self._session.session_id else settings.connection_timeout_s
        self._session.attach(self)
        try:
            has_ended = self._ended.wait(longest_s + _MARGIN_S)
        finally:
            self._session.detach(self, self._give_up)
        if self._error is not None:
            raise self._error
        if not has_ended:
            raise StateUnavailableError(f"ZooKeeper at {settings.hosts} has not answered for {longest_s:g} s")
        return self._value

    # ---- Driver ----

    def connected(self) -> None:
        """Go on at the next check."""

    def expired(self) -> None:
        """Go on: what was asked is answered with an error."""

    def check(self) -> None:
        """Begin, or go on when there is a connection again."""
        if self._awaits_turn or (self._awaits_connection and self._session.is_connected):
            self._awaits_turn = self._awaits_connection = False
            self._go_on(None, None)

    def failed(self, error: Exception) -> None:
        """End: there is no ZooKeeper, or it does not know us."""
        self._end(None, StateUnavailableError(str(error)))

    # ---- the steps ----

    def _go_on(self, value: Any, error: Exception | None) -> None:
        if self._ended.is_set():
            return
        if self._steps is None:
            self._steps = self._make_steps()
        try:
            request = self._steps.send(value) if error is None else self._steps.throw(error)
            while request is not None and not self._session.is_connected:
                # kazoo would keep it, and block its caller when it keeps too many.
                request = self._steps.throw(ConnectionLossError())
        except StopIteration as end:
            self._end(end.value, None)
        except _LOST:  # what only reads begins again
            self._steps, self._awaits_connection = None, True
        except Exception as failure:
            self._end(None, failure)
        else:
            if request is None:
                self._awaits_connection = True
            else:
                self._session.ask_all(request, self._go_on)

    def _end(self, value: Any, error: Exception | None) -> None:
        if not self._ended.is_set():
            self._value, self._error = value, error
            self._ended.set()

    def _give_up(self) -> None:
        self._end(None, None)
