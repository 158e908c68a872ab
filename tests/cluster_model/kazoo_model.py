"""The client of ZooKeeper in virtual time: what ``KazooClient`` does for a session, over a network that fails.

    client = KazooModel(...)            made by the real ZooKeeperSession, in its process
    client.cut(seconds)                 its packets are held up for so long; what is under way arrives later

A connection keeps the order of its requests and answers. Where it breaks, requests under way may arrive or not, answers
are lost, every pending request fails, and every watch is told so, as kazoo does it. A request that arrives late over
a broken connection counts, unless the session has gone on over another one.
"""

from __future__ import annotations

from collections import deque

from kazoo.client import KazooState
from kazoo.exceptions import ConnectionLoss, SessionExpiredError

from tests.cluster_model.quorum_model import Change
from tests.cluster_model.virtual_threads import NOWHERE, PROCESS

_WATCHES = {"exists", "data"}


class Answer:
    """kazoo's AsyncResult."""

    def __init__(self):
        self.value = self.exception = None
        self._is_done = False
        self._links = []

    def rawlink(self, link):
        if self._is_done:
            link(self)
        else:
            self._links.append(link)

    def complete(self, value, exception):
        self.value, self.exception, self._is_done = value, exception, True
        for link in self._links:
            link(self)


class Request:
    """A request under way. ``kind``: exists, data, children, sync, write."""

    def __init__(self, kind, path="", changes=(), watch=None):
        self.kind, self.path, self.changes, self.watch = kind, path, changes, watch
        self.is_transaction = False
        self.answer = Answer()


class Connection:
    """A connection of one client to one server."""

    def __init__(self, client, server):
        self.client, self.server, self.quorum = client, server, client.quorum
        self.session_id = 0
        #: as the server sees it
        self.is_open = True
        self.watches = {}
        self.inbox = deque()
        self._is_busy = False
        self._to_server_s = self._to_client_s = 0.0

    def _later(self, last_s):
        client = self.client
        return max(last_s, client.cut_until_s, client.loop.time() + client.chance.expovariate(200.0))

    def send(self, request):
        self._to_server_s = self._later(self._to_server_s)
        self.quorum.loop.call_at(self._to_server_s, self._arrived, request, context=NOWHERE)

    def _tell(self, call, *args):
        """Have the client hear something, if the connection is its own still."""
        self._to_client_s = self._later(self._to_client_s)
        self.quorum.loop.call_at(self._to_client_s, self.client.heard, self, call, *args, context=NOWHERE)

    # ---- the server's side ----

    def _arrived(self, request):
        session = self.quorum.sessions.get(self.session_id)
        if not self.server.is_up or session is None or session.connection is not self:
            return
        session.heard_s = self.quorum.loop.time()
        self.inbox.append(request)
        self._next()

    def _next(self):
        if self._is_busy or not self.inbox:
            return
        self._is_busy = True
        request = self.inbox.popleft()
        if request.kind in ("sync", "write"):
            hop_s = self.client.chance.expovariate(200.0)
            self.quorum.loop.call_later(hop_s, self._at_leader, request, context=NOWHERE)
            return
        value, error = self.quorum.read(self.server, request.kind, request.path)
        if request.watch is not None and (error is None or request.kind == "exists"):
            self.watches.setdefault(request.path, []).append(request.watch)
        self._answered(request, value, error)

    def _at_leader(self, request):
        quorum = self.quorum
        session = quorum.sessions.get(self.session_id)
        if session is None or session.connection is not self or not quorum.has_leader or not self.server.is_up:
            return  # it is lost on the way, and its connection is about to end
        if request.kind == "sync":
            quorum.when_applied(self.server, quorum.zxid, lambda: self._answered(request, request.path, None))
            return
        zxid, results = quorum.write(self.session_id, request.changes)
        if request.is_transaction:
            value, error = results, None
        else:
            failed = isinstance(results[0], Exception)
            value, error = (None, results[0]) if failed else (results[0], None)
        quorum.when_applied(self.server, zxid, lambda: self._answered(request, value, error))

    def _answered(self, request, value, error):
        self._is_busy = False
        if self.is_open:
            self._tell(self.client.answered, request, value, error)
            self._next()

    def changed(self, paths):
        """Tell of changes that are watched."""
        for path in paths:
            for watch in self.watches.pop(path, ()):
                self._tell(self.client.fired, watch)

    def end(self):
        """End it, as the server sees it; the client hears of it."""
        if self.is_open:
            self.is_open = False
            self.server.connections.pop(self, None)
            self.quorum.silent(self.session_id, self)
            self._tell(self.client.lost, self)


class _Inner:
    """kazoo's ConnectionHandler, of which the session wraps a method."""

    _connection_routine = None
    _write_sock = None

    def __init__(self, timeout_s):
        self._connect = lambda: (timeout_s * 1000 * 2 / 3, timeout_s * 1000)


class Transaction:
    """kazoo's TransactionRequest."""

    def __init__(self, client):
        self._client, self._changes = client, []

    def check(self, path, version):
        self._changes.append(Change("check", path, version=version))

    def create(self, path, value=b"", acl=None, ephemeral=False, sequence=False):
        self._changes.append(Change("create", path, value, -1, ephemeral, sequence))

    def set_data(self, path, value, version=-1):
        self._changes.append(Change("set", path, value, version))

    def delete(self, path, version=-1):
        self._changes.append(Change("delete", path, version=version))

    def commit_async(self):
        request = Request("write", changes=self._changes)
        request.is_transaction = True
        return self._client.ask(request)


class KazooModel:
    """kazoo's client of one process."""

    def __init__(self, quorum, chance, timeout):
        self.quorum, self.loop, self.chance = quorum, quorum.loop, chance
        self.process = PROCESS.get()
        self.timeout_s = timeout
        self.cut_until_s = 0.0
        self.session_id = 0
        self._connection = _Inner(timeout)
        #: connection in use; None while there is none
        self.link = None
        self._is_closed = True
        self._queue, self._pending, self._watchers = [], [], []
        self._listeners = []

    # ---- what the session calls ----

    @property
    def client_id(self):
        return self.session_id, b"secret"

    def add_listener(self, listener):
        self._listeners.append(listener)

    def start_async(self):
        self._is_closed = False
        self.process.watchers.append(self._process_changed)
        self._soon(self._connect)

    def stop(self):
        """Close the session; where that is not possible it ends by itself."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.link is not None and self.cut_until_s <= self.loop.time():
            self.quorum.end_session(self.session_id)
        self._drop(ConnectionLoss())
        self.process.watchers.remove(self._process_changed)

    def close(self):
        pass

    def sync_async(self, path):
        return self.ask(Request("sync", path))

    def get_children_async(self, path):
        return self.ask(Request("children", path))

    def exists_async(self, path, watch=None):
        return self.ask(Request("exists", path, watch=watch))

    def get_async(self, path, watch=None):
        return self.ask(Request("data", path, watch=watch))

    def create_async(self, path, value=b"", acl=None, ephemeral=False, sequence=False):
        return self.ask(Request("write", changes=[Change("create", path, value, -1, ephemeral, sequence)]))

    def delete_async(self, path, version=-1):
        return self.ask(Request("write", changes=[Change("delete", path, version=version)]))

    def transaction(self):
        return Transaction(self)

    def ask(self, request):
        if self.link is None:
            self._queue.append(request)
        else:
            self._pending.append(request)
            self.link.send(request)
        return request.answer

    # ---- the connection ----

    def _soon(self, call, mean_s=0.05):
        self.process.begin(self.loop.call_later, self.chance.expovariate(1 / mean_s), call)

    def _connect(self):
        if self._is_closed or self.link is not None:
            return
        if self.cut_until_s > self.loop.time():
            self._soon(self._connect, 0.2)
            return
        connection = Connection(self, self.chance.choice(self.quorum.servers))
        found = self.quorum.connect(self.session_id, self.timeout_s, connection.server, connection)
        if found is None:
            self._soon(self._connect, 0.2)
        elif found == 0:
            self._expired()
        else:
            self.session_id = connection.session_id = found
            self.link = connection
            self._connection._connect()
            self._tell(KazooState.CONNECTED)
            queued, self._queue = self._queue, []
            for request in queued:
                self.ask(request)

    def _expired(self):
        self.session_id = 0
        self._tell(KazooState.LOST)
        self._fail(SessionExpiredError())
        self._soon(self._connect)

    def _drop(self, error):
        """Have no connection any more."""
        link, self.link = self.link, None
        if link is not None:
            link.end()
        self._fail(error)

    def _fail(self, error):
        failed, self._pending, self._queue = [*self._pending, *self._queue], [], []
        for request in failed:
            request.answer.complete(None, error)
        watchers, self._watchers = self._watchers, []
        for watch in watchers:
            watch(None)

    def _tell(self, state):
        for listener in self._listeners:
            listener(state)

    # ---- what comes over it ----

    def heard(self, connection, call, *args):
        """Hear something of a connection, in the process, unless it is of a former one."""
        if not self.process.is_dead:
            self.process.begin(self.loop.call_soon, self._heard, connection, call, *args)

    def _heard(self, connection, call, *args):
        if connection is self.link:
            call(*args)

    def answered(self, request, value, error):
        if request in self._pending:
            self._pending.remove(request)
            if request.watch is not None and (error is None or request.kind == "exists"):
                self._watchers.append(request.watch)
            request.answer.complete(value, error)

    def fired(self, watch):
        if watch in self._watchers:
            self._watchers.remove(watch)
            watch(None)

    def lost(self, connection):
        """Lose the connection."""
        self.link = None
        failed, self._pending, self._queue = [*self._pending, *self._queue], [], []
        for request in failed:
            request.answer.complete(None, ConnectionLoss())
        self._tell(KazooState.SUSPENDED)
        watchers, self._watchers = self._watchers, []
        for watch in watchers:
            watch(None)
        self._soon(self._connect)

    # ---- faults ----

    def cut(self, seconds):
        """Hold packets up; the client gives its connection up after two thirds of the time-out."""
        self.cut_until_s = max(self.cut_until_s, self.loop.time() + seconds)
        link = self.link
        if link is None:
            return
        self.quorum.silent(link.session_id, link)
        self.loop.call_at(self.cut_until_s, self._healed, link, context=NOWHERE)
        give_up_s = self.timeout_s * 2 / 3 - self.chance.uniform(0, self.timeout_s / 6)
        self.process.begin(self.loop.call_later, give_up_s, self._give_up, link)

    def _healed(self, link):
        session = self.quorum.sessions.get(link.session_id)
        is_cut = self.cut_until_s > self.loop.time()
        is_talking = not is_cut and not self.process.is_dead and not self.process.is_stopped
        if is_talking and session is not None and session.connection is link and link.is_open and link is self.link:
            self.quorum.touch(session)

    def _give_up(self, link):
        if link is self.link and self.cut_until_s > self.loop.time():
            # the server does not hear that it is given up
            self.lost(link)

    def _process_changed(self):
        """Hear that the process was stopped, goes on, or was killed: so do its signs of life."""
        link = self.link
        if link is None:
            return
        if self.process.is_dead:
            self.link = None
            link.end()
        elif self.process.is_stopped:
            self.quorum.silent(link.session_id, link)
        else:
            self._healed(link)
