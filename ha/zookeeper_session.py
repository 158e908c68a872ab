"""ZooKeeperSession: one connection to ZooKeeper, one thread that owns it, and the lease.

    session.attach(driver) ─► driver.connected() ─ driver.check() again and again ─ driver.expired() ... detach(driver)
    session.ask(request, done, failed)       on the thread; ``request`` uses a call of kazoo that does not wait

             kazoo's threads                            the thread
    states, answers, watches ── post ──► inbox ── one after the other ──► drivers ──► contenders, listeners

Nothing on the thread ever waits for ZooKeeper, so that a leader is told in time that its lease has ended; few requests
are under way at once (kazoo blocks its caller when there are hundreds).

The lease: every sixth of the session time-out a ``sync`` goes to ZooKeeper's leader. Its good answer proves that the
session lived when it was sent, so it lives for a session time-out from then, and the lease ends at three quarters of
that: CLOCK_BOOTTIME, which runs on while the machine or the process sleeps. A lost connection alone changes nothing;
kazoo does not tell a session's end before it reaches a server again, which is too late.

Source: Curator's connection states; the lease is ours.
Held by: tests/ha/test_unrest.py
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, NoAuthError
from kazoo.exceptions import ConnectionLoss as ConnectionLossError
from kazoo.exceptions import SessionExpiredError as ExpiredError
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from ha.session_end import SessionHandle
from ha.zookeeper_close import close_client
from ha.zookeeper_hosts import parse_hosts, server_text
from ha.zookeeper_preflight import ServerState, examine, limits
from ha.zookeeper_settings import ZooKeeperSettings

_log = logging.getLogger(__name__)

_LEASE_SHARE = 0.75
_HEARTBEATS = 6
_PAUSE_MAX_S = 0.5
_JOIN_S = 10.0
#: seconds within which a session is closed; a process has ten to end in
_CLOSE_S = 5.0
#: seconds without a session after which the servers are asked for the cause, and seconds that they may take
_LOOK_AFTER_S = 1.0
_LOOK_S = 2.0
#: difference below which time-outs are equal, seconds
_SAME_S = 0.002
#: seconds after connecting within which kazoo reports the session time-out
_TOLD_S = 5.0
_NO_TIMEOUT = "this version of kazoo does not tell the session time-out that ZooKeeper grants: use kazoo 2.10 or 2.11"
#: errors that a state reports, too; the requests are sent again then
PASSING = (ConnectionLossError, ConnectionClosedError, ExpiredError)


def boot_time_s() -> float:
    """Return the time since the machine's start, with the time in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Driver(Protocol):
    """Works on the session's thread, which calls all of this."""

    def connected(self) -> None:
        """Look again: anything may have happened, and no watch is left."""

    def expired(self) -> None:
        """Handle the end of the session and its ephemeral nodes."""

    def check(self) -> None:
        """Do what is due; comes at every event, and often enough."""

    def failed(self, error: Exception) -> None:
        """Handle an error that the session cannot survive."""


class ZooKeeperSession:
    """The session of a process's elections and retrievals. attach, detach, post, is_alive: any thread."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self.settings = settings
        self.is_connected = False
        self.session_id = 0
        self.acl = CREATOR_ALL_ACL if settings.is_private else OPEN_ACL_UNSAFE
        #: number of sessions that have ended, but for the last one
        self.ended_count = 0
        #: number of watches that fired, for tests
        self.watches_fired = 0
        self._lock = threading.Lock()
        # guarded by: self._lock
        self._users = 0
        self._client: Any = None
        self._thread: threading.Thread | None = None
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # written on the thread only
        self._drivers: list[Driver] = []
        self._lease_end_s = 0.0
        self._negotiated_s = 0.0
        self._is_asking = False
        self._next_heartbeat_s = 0.0
        self._connect_by_s = 0.0
        self._connected_s = 0.0
        self._next_look_s = 0.0
        self._looking: threading.Thread | None = None
        self._has_checked_limits = False
        self._dead: object = None
        # written on kazoo's thread only
        self._handed_over = 0

    # ---- any thread ----

    def attach(self, driver: Driver) -> None:
        """Add a driver; the first one opens the connection."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._open()
        self.post(lambda: self._add(driver))

    def detach(self, driver: Driver, last: Callable[[], None]) -> None:
        """Call ``last`` on the thread and remove the driver; the last driver closes the connection. Other threads."""
        removed = threading.Event()

        def remove() -> None:
            last()
            self._drivers.remove(driver)
            removed.set()

        self.post(remove)
        if not removed.wait(_JOIN_S):
            _log.error("the ZooKeeper thread does not answer")
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._close()

    def post(self, action: Callable[[], None]) -> None:
        """Run an action on the thread."""
        self._inbox.put(action)

    def is_alive(self) -> bool:
        """Whether the lease runs: the session lives for certain."""
        return boot_time_s() < self._lease_end_s

    # ---- on the thread ----

    def ask(
        self,
        request: Callable[[Any], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Send a request; ``done`` or ``failed`` is called with what comes of it.

        An answer that was lost with its connection is not reported: ``connected`` or ``expired`` follows.
        """
        self.ask_all(request, lambda value, error: self._answered(value, error, done, failed))

    def ask_all(self, request: Callable[[Any], Any], answered: Callable[[Any, Exception | None], None]) -> None:
        """Send a request; ``answered`` is called in any case, also when the answer was lost (one of PASSING)."""
        try:
            answer = request(self._client)
        except PASSING as error:
            lost = error
            self.post(lambda: answered(None, lost))
        else:
            answer.rawlink(lambda answer: self.post(lambda: answered(answer.value, answer.exception)))

    def watch(self, fired: Callable[[], None]) -> Callable[[object], None]:
        """Return a watch for kazoo that calls ``fired`` on the thread."""

        def note() -> None:
            self.watches_fired += 1
            fired()

        return lambda event: self.post(note)

    def _answered(
        self,
        value: Any,
        error: Exception | None,
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None,
    ) -> None:
        if error is None:
            done(value)
        elif isinstance(error, PASSING):
            return
        elif isinstance(error, NoAuthError | AuthFailedError):
            folder = self.settings.folder
            self._fail(PermissionError(f"ZooKeeper's node {folder} belongs to processes with another cluster secret"))
        elif failed is not None:
            failed(error)
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        _log.error("ZooKeeper: %s", error)
        for driver in tuple(self._drivers):
            driver.failed(error)

    def _add(self, driver: Driver) -> None:
        self._drivers.append(driver)
        if self.is_connected:
            driver.connected()

    # ---- the connection ----

    def _open(self) -> None:
        settings = self.settings
        logger = logging.getLogger(f"{__name__}.kazoo")
        logger.setLevel(logging.ERROR)
        client = self._client = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_timeout_s,
            auth_data=[("digest", f"drey:{settings.key(b'digest').hex()}")],
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": _PAUSE_MAX_S},
            logger=logger,
            use_ssl=bool(settings.tls_ca),
            ca=settings.tls_ca or None,
            certfile=settings.tls_certificate or None,
            keyfile=settings.tls_key or None,
            check_hostname=bool(settings.tls_ca),
        )
        client.add_listener(self._state_changed)
        self._note_negotiated(client)
        self._connect_by_s = boot_time_s() + settings.connection_timeout_s
        self._next_look_s = min(boot_time_s() + _LOOK_AFTER_S, self._connect_by_s)
        self._thread = threading.Thread(target=self._run, name="drey-zookeeper", daemon=True)
        self._thread.start()
        client.start_async()

    def _close(self) -> None:
        self._inbox.put(None)
        assert self._thread is not None, "an open session has a thread"
        self._thread.join(_JOIN_S)
        close_client(self._client, _CLOSE_S)
        if self._looking is not None:
            self._looking.join(_JOIN_S)
        self._client = self._thread = self._looking = None
        self.is_connected, self.session_id, self._lease_end_s = False, 0, 0.0
        self._inbox = queue.SimpleQueue()

    def _note_negotiated(self, client: Any) -> None:
        """Read from kazoo the time-out that the server has set, which it does not expose (its issue 769)."""
        connect = getattr(getattr(client, "_connection", None), "_connect", None)
        if connect is None:
            raise RuntimeError(_NO_TIMEOUT)

        def noted(*arguments: Any) -> tuple[float, float]:
            read_timeout_ms, connect_timeout_ms = connect(*arguments)
            # kazoo reads for two thirds of the session time-out
            self.post(lambda: self._granted(read_timeout_ms * 1.5 / 1000))
            return read_timeout_ms, connect_timeout_ms

        client._connection._connect = noted

    def _granted(self, timeout_s: float) -> None:
        asked_s = self.settings.session_timeout_s
        if timeout_s != self._negotiated_s and abs(timeout_s - asked_s) > _SAME_S:
            why = "its minSessionTimeout and maxSessionTimeout allow no other"
            _log.warning("ZooKeeper grants sessions of %g s, not of %g s: %s", timeout_s, asked_s, why)
        self._negotiated_s = timeout_s
        self._next_heartbeat_s = 0.0

    def _state_changed(self, state: str) -> None:
        """Come on kazoo's thread: only posts."""
        session_id, password = self._client.client_id if state == KazooState.CONNECTED else (0, b"")
        if session_id != self._handed_over and session_id:
            self._hand_over(session_id, password)
        self.post(lambda: self._now(state, session_id))

    def _hand_over(self, session_id: int, password: bytes) -> None:
        """Send the guardian of this process the handle that closes its session."""
        self._handed_over = session_id
        settings = self.settings
        if settings.guardian_pipe is not None:
            files = settings.tls_ca, settings.tls_certificate, settings.tls_key
            handle = SessionHandle(settings.hosts, session_id, password, settings.session_timeout_s, *files)
            try:
                os.write(settings.guardian_pipe, handle.encode())
            except OSError as error:  # without it the session ends by itself, later
                _log.warning("the supervisor does not accept the session: %s", error)

    def _now(self, state: str, session_id: int) -> None:
        self.is_connected = state == KazooState.CONNECTED
        self._is_asking = False
        is_gone = self.session_id != 0 and (state == KazooState.LOST or session_id not in (0, self.session_id))
        if is_gone:
            self.session_id, self._lease_end_s = 0, 0.0
            self.ended_count += 1
            _log.warning("the ZooKeeper session has ended")
            for driver in tuple(self._drivers):
                driver.expired()
        if self.is_connected:
            self.session_id = session_id
            self._connected_s = boot_time_s()
            for driver in tuple(self._drivers):
                driver.connected()
        elif not is_gone:
            _log.info("the connection to ZooKeeper is interrupted; the lease is still valid")

    # ---- the thread ----

    def _run(self) -> None:
        while True:
            try:
                action = self._inbox.get(timeout=self._pause_s())
            except queue.Empty:
                pass
            else:
                if action is None:
                    return
                self._guarded(action)
            self._guarded(self._check)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            _log.exception("the leader services failed")
            self._fail(error)

    def _pause_s(self) -> float:
        until_s = min(self._next_heartbeat_s, self._lease_end_s) if self.is_alive() else self._next_heartbeat_s
        return min(max(until_s - boot_time_s(), 0.005), _PAUSE_MAX_S)

    def _check(self) -> None:
        now_s = boot_time_s()
        if self.session_id:
            self._connect_by_s = 0.0
        elif now_s >= self._next_look_s and self._connect_by_s > 0 and self._looking is None:
            self._look(self._examine)
        if self.is_connected and self._negotiated_s == 0 and now_s - self._connected_s > _TOLD_S:
            self._connected_s = now_s
            self._fail(RuntimeError(_NO_TIMEOUT))
        if self._has_died():
            self._fail(RuntimeError("ZooKeeper's client has ended of itself: nothing will connect this process again"))
        for driver in tuple(self._drivers):
            driver.check()
        if not self.is_connected or self._negotiated_s == 0 or self._is_asking:
            self._next_heartbeat_s = max(self._next_heartbeat_s, now_s + _PAUSE_MAX_S)
        elif now_s >= self._next_heartbeat_s:
            self._heartbeat()

    def _has_died(self) -> bool:
        """Return whether kazoo's thread has died of an error that it does not expect and does not report."""
        routine = getattr(getattr(self._client, "_connection", None), "_connection_routine", None)
        if routine is None or routine is self._dead or routine.is_alive():
            return False
        self._dead = routine
        return True

    # ---- what is wrong, when something is ----

    def check_limits(self) -> None:
        """Warn, once, when the servers are not set up for sessions of this length. On the thread."""
        if not self._has_checked_limits and self._looking is None:
            self._has_checked_limits = True
            self._look(self._examine_limits)

    def _look(self, work: Callable[[], Callable[[], None]]) -> None:
        """Ask the servers on another thread; the result of ``work`` is called on this one."""

        def look() -> None:
            told = work()
            self.post(lambda: self._looked(told))

        self._looking = threading.Thread(target=look, name="drey-zookeeper-look", daemon=True)
        self._looking.start()

    def _looked(self, told: Callable[[], None]) -> None:
        if self._looking is not None:
            self._looking.join()
            self._looking = None
        told()

    def _examine(self) -> Callable[[], None]:
        states = examine(self.settings, _LOOK_S)
        return lambda: self._judge(states)

    def _judge(self, states: tuple[ServerState, ...]) -> None:
        """Give up when no server will ever do, or when the time is over."""
        now_s = boot_time_s()
        if self.session_id or self._connect_by_s == 0:
            return
        self._next_look_s = min(now_s + _LOOK_AFTER_S, max(self._connect_by_s, now_s))
        is_over = now_s >= self._connect_by_s
        if not is_over and not all(state.is_hopeless for state in states):
            return
        self._connect_by_s = 0.0
        hosts, waited_s = self.settings.hosts, self.settings.connection_timeout_s
        begin = f"no ZooKeeper of {hosts} has answered for {waited_s:g} s" if is_over else f"no ZooKeeper at {hosts}"
        found = "; ".join(f"{state.server}: {state.text}" for state in states if state.text)
        hint = "" if all(state.is_hopeless for state in states) else ". Does it run (bin/start-zookeeper-quorum.sh)?"
        self._fail(ConnectionError(f"{begin}: {found or 'it serves, but gives no session'}{hint}"))

    def _examine_limits(self) -> Callable[[], None]:
        found: dict[str, list[str]] = {}
        for host, port in parse_hosts(self.settings.hosts):
            for text in limits(self.settings, host, port, _LOOK_S):
                found.setdefault(text, []).append(server_text(host, port))
        for text, servers in found.items():
            _log.warning("ZooKeeper at %s: %s", ", ".join(servers), text)
        return lambda: None

    def _heartbeat(self) -> None:
        sent_s, session_id = boot_time_s(), self.session_id
        self._is_asking = True
        self._next_heartbeat_s = sent_s + self._negotiated_s / _HEARTBEATS

        def lives(answer: object) -> None:
            if session_id == self.session_id:
                self._is_asking = False
                self._next_heartbeat_s = sent_s + self._negotiated_s / _HEARTBEATS
                self._lease_end_s = max(self._lease_end_s, sent_s + _LEASE_SHARE * self._negotiated_s)

        self.ask(lambda client: client.sync_async("/"), lives)
