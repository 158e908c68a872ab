"""A quorum of ZooKeeper in virtual time: servers that lag, sessions that expire, elections, and a log of all writes.

    quorum.connect(session id, server, connection)     a session is opened, or found again: its id, 0 when it is gone
    quorum.ask(connection, request) ─► connection.answer(request, value or error)     in the order of the requests

The leader's tree is the truth; each server applies the same transactions in the same order, later. Reads are answered
from the tree of the server that is asked, so they may be old. A write is answered once its own server has applied it,
``sync`` once it has applied what the leader had then. Connections end when their server loses the leader. A session
lives while its client talks to a server that follows the leader, and for its time-out after that.

Source: ZooKeeper's guarantees: one order of writes, a client's requests in its order, watches before what follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError, RolledBackError

from tests.cluster_model.virtual_threads import NOWHERE


class Stat(NamedTuple):
    """The fields of a node that clients here look at."""

    czxid: int
    version: int
    ephemeralOwner: int  # noqa: N815  ZooKeeper's name


@dataclass(slots=True)
class Node:
    data: bytes
    czxid: int
    owner: int
    version: int = 0
    #: number of the next sequential child
    sequence: int = 0

    @property
    def stat(self):
        return Stat(self.czxid, self.version, self.owner)


class Change(NamedTuple):
    """One operation of a write. ``kind``: check, create, set, delete."""

    kind: str
    path: str
    data: bytes = b""
    version: int = -1
    is_ephemeral: bool = False
    is_sequential: bool = False


@dataclass
class Session:
    id: int
    timeout_s: float
    #: connection over which it is used now
    connection: object = None
    heard_s: float = 0.0
    #: timer of its end; None: its client talks
    ending: object = None


@dataclass
class Server:
    name: int
    #: seconds by which it is behind the leader
    lag_s: float = 0.01
    tree: dict = field(default_factory=lambda: {"/": Node(b"", 0, 0)})
    applied: int = 0
    is_up: bool = True
    connections: dict = field(default_factory=dict)
    #: (transaction, function) that wait until it has applied that
    waiting: list = field(default_factory=list)


def parent_of(path):
    return path.rpartition("/")[0] or "/"


class Quorum:
    """Three servers. ``on_write(session id, changes, tree)`` hears of each write that is done, before it is done."""

    def __init__(self, loop, chance, on_write):
        self.loop, self.chance, self.on_write = loop, chance, on_write
        self.servers = [Server(number) for number in range(3)]
        self.tree = {"/": Node(b"", 0, 0)}
        self.log = []
        self.sessions = {}
        self.zxid = 1 << 32
        self._next_session = 1
        #: when the present election is over
        self.leads_from_s = 0.0

    def _at(self, when_s, call, *args):
        return self.loop.call_at(when_s, call, *args, context=NOWHERE)

    @property
    def has_leader(self):
        return self.loop.time() >= self.leads_from_s

    # ---- sessions ----

    def connect(self, session_id, timeout_s, server, connection):
        """Open a session or go on with one; return its id, 0 when it is gone, None when the server does not serve."""
        if not server.is_up or not self.has_leader:
            return None
        self._catch_up(server)
        if session_id == 0:
            session_id = self._next_session = self._next_session + 1
            self.sessions[session_id] = Session(session_id, timeout_s)
        session = self.sessions.get(session_id)
        if session is None:
            return 0
        former, session.connection = session.connection, connection
        if former is not None and former is not connection:
            former.end()
        server.connections[connection] = None
        self.touch(session)
        return session_id

    def touch(self, session):
        """Hear of a session whose client goes on talking."""
        session.heard_s = self.loop.time()
        if session.ending is not None:
            session.ending.cancel()
            session.ending = None

    def silent(self, session_id, connection):
        """Hear nothing of a session any more: it ends by itself, unless its client comes back."""
        session = self.sessions.get(session_id)
        if session is None or session.connection is not connection or session.ending is not None:
            return
        # the client's last sign of life came within a third of the time-out
        heard_s = max(session.heard_s, self.loop.time() - self.chance.uniform(0, session.timeout_s / 3))
        session.ending = self._at(heard_s + session.timeout_s, self._expire, session)

    def _expire(self, session):
        if not self.has_leader:  # whoever leads next waits for as long again
            session.ending = self._at(self.leads_from_s + session.timeout_s, self._expire, session)
            return
        self.end_session(session.id)

    def end_session(self, session_id):
        """End a session: its ephemeral nodes go with it."""
        session = self.sessions.pop(session_id, None)
        if session is None:
            return
        if session.ending is not None:
            session.ending.cancel()
        if session.connection is not None:
            session.connection.end()
        mine = [path for path, node in self.tree.items() if node.owner == session_id]
        self._commit([Change("delete", path) for path in mine])

    # ---- faults ----

    def elect(self, seconds):
        """Lose the leader: no server serves until another one is elected."""
        self.leads_from_s = self.loop.time() + seconds
        for server in self.servers:
            self._drop(server)
            self._catch_up(server)
        for session in self.sessions.values():
            if session.ending is not None:
                session.ending.cancel()
            session.ending = self._at(self.leads_from_s + session.timeout_s, self._expire, session)

    def lose_server(self, server):
        """Have a server end, or be cut off from the others for longer than they bear."""
        server.is_up = False
        self._drop(server)

    def restore_server(self, server):
        server.is_up = True
        self._catch_up(server)

    def _drop(self, server):
        for connection in tuple(server.connections):
            connection.end()
        server.connections.clear()
        server.waiting.clear()

    # ---- requests ----

    def read(self, server, kind, path):
        """Return what a server knows: (value, error)."""
        node = server.tree.get(path)
        if kind == "exists":
            return (None if node is None else node.stat), None
        if node is None:
            return None, NoNodeError()
        if kind == "children":
            prefix = path.rstrip("/") + "/"
            return [
                each[len(prefix) :] for each in server.tree if each.startswith(prefix) and _is_child(each, path)
            ], None
        return (node.data, node.stat), None

    def write(self, session_id, changes):
        """Do all changes or none; return the zxid and a result for each."""
        results, failed = self._tried(changes)
        if failed is not None:
            return self.zxid, [failed[1] if index == failed[0] else RolledBackError() for index in range(len(changes))]
        self.on_write(session_id, changes, self.tree)
        named = [
            each._replace(path=result) if each.kind == "create" else each
            for each, result in zip(changes, results, strict=True)
        ]
        self._commit(named, session_id)
        return self.zxid, results

    def _tried(self, changes):
        """Return the result of each change, and which one fails, with its error."""
        results, made, gone = [], set(), set()
        for index, (kind, path, _, version, _, is_sequential) in enumerate(changes):
            node = None if path in gone else self.tree.get(path)
            if kind == "create":
                parent = self.tree.get(parent_of(path))
                if parent is None:
                    return results, (index, NoNodeError())
                if is_sequential:
                    path = f"{path}{parent.sequence:010d}"  # noqa: PLW2901  its name
                if path in made or (path in self.tree and path not in gone):
                    return results, (index, NodeExistsError())
                made.add(path)
                results.append(path)
                continue
            if node is None:
                return results, (index, NoNodeError())
            if version not in (-1, node.version):
                return results, (index, BadVersionError())
            if kind == "delete":
                if any(_is_child(each, path) for each in self.tree):
                    return results, (index, NotEmptyError())
                gone.add(path)
            results.append(True)
        return results, None

    def _commit(self, changes, session_id=0):
        self.zxid += 1
        transaction = (self.zxid, changes, session_id)
        _apply(self.tree, transaction)
        self.log.append(transaction)
        for server in self.servers:
            if server.is_up:
                self._at(self.loop.time() + server.lag_s * self.chance.random(), self._apply_up_to, server, self.zxid)

    def _catch_up(self, server):
        self._apply_up_to(server, self.zxid)

    def _apply_up_to(self, server, zxid):
        """Have a server apply transactions, and tell those that watch or wait."""
        if not server.is_up:
            return
        while server.applied < len(self.log) and self.log[server.applied][0] <= zxid:
            transaction = self.log[server.applied]
            server.applied += 1
            touched = _apply(server.tree, transaction)
            for connection in tuple(server.connections):
                connection.changed(touched)
        reached = self.log[server.applied - 1][0] if server.applied else 0
        due = [each for each in server.waiting if each[0] <= reached]
        server.waiting = [each for each in server.waiting if each[0] > reached]
        for _, then in due:
            then()

    def when_applied(self, server, zxid, then):
        """Call something once a server has applied what the leader had."""
        if not self.log or zxid < self.log[0][0] or (server.applied and self.log[server.applied - 1][0] >= zxid):
            then()
        else:
            server.waiting.append((zxid, then))


def _is_child(path, parent):
    return path != "/" and path != parent and parent_of(path) == parent


def _apply(tree, transaction):
    """Apply a transaction to a tree; return the paths that it touched."""
    zxid, changes, session_id = transaction
    touched = []
    for kind, path, data, _, is_ephemeral, is_sequential in changes:
        if kind == "check":
            continue
        touched.append(path)
        if kind == "create":
            tree[path] = Node(data, zxid, session_id if is_ephemeral else 0)
            parent = tree[parent_of(path)]
            parent.sequence += 1
            del is_sequential
        elif kind == "set":
            tree[path].data = data
            tree[path].version += 1
        else:
            tree.pop(path, None)
    return touched
