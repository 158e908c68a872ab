"""What really happened in ZooKeeper: its servers' transaction logs, read and checked against what was promised.

    read_history(data folder) ─► Transaction(zxid, session, [Change ...]) in the order of ZooKeeper
    check_history(transactions, folder) ─► faults, as sentences; [] when every promise was kept

    log file   "ZKLG" version:i32 db:i64, then records: crc:i64 length:i32 header body "B"; zeros behind the last
    header     session:i64 cxid:i32 zxid:i64 time_ms:i64 type:i32             all big-endian (jute)

The promises, for the latch folder and the jobs of one cluster:

    a write of a job carries the epoch of its writer; the latch node with that czxid is the first in the line then
    epochs of successive writes of a job never fall; a decision and a result, once there, never change
    the leader's record is written by the session that owns the first latch node

A failed transaction changes nothing and is skipped. Source: ZooKeeper's FileTxnLog and zookeeper.jute.
"""

import json
import struct
from typing import NamedTuple

CREATES = frozenset({1, 15, 19, 21})
DELETES = frozenset({2, 20})
SET_DATA, MULTI, CLOSE_SESSION, ERROR = 5, 14, -11, -1


class Change(NamedTuple):
    """``kind``: create, set or delete."""

    kind: str
    path: str
    data: bytes = b""
    is_ephemeral: bool = False


class Transaction(NamedTuple):
    zxid: int
    session: int
    changes: tuple[Change, ...] = ()
    ends_session: bool = False


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value if len(value) > 1 else value[0]

    def buffer(self):
        length = self.take("i")
        if length < 0:
            return b""
        self.at += length
        return self.data[self.at - length : self.at]


def _changes(kind, body):
    reader = _Reader(body)
    if kind in CREATES:
        path, data = reader.buffer().decode(), reader.buffer()
        for _ in range(reader.take("i")):
            reader.take("i")
            reader.buffer()
            reader.buffer()
        return (Change("create", path, data, bool(reader.take("b"))),)
    if kind in DELETES:
        return (Change("delete", reader.buffer().decode()),)
    if kind == SET_DATA:
        return (Change("set", reader.buffer().decode(), reader.buffer()),)
    if kind == MULTI:
        parts = [(reader.take("i"), reader.buffer()) for _ in range(reader.take("i"))]
        if any(part == ERROR for part, _ in parts):
            return ()
        return tuple(change for part, data in parts for change in _changes(part, data))
    return ()


def read_log(content):
    """Return the transactions of one log file."""
    reader = _Reader(content)
    assert reader.take("4s") == b"ZKLG"
    reader.take("iq")
    found = []
    while reader.at + 12 <= len(content):
        _, length = reader.take("qi")
        if length <= 0 or reader.at + length > len(content):
            break
        record = _Reader(content[reader.at : reader.at + length])
        reader.at += length + 1
        session, _, zxid, _, kind = record.take("qiqqi")
        body = record.data[record.at :]
        found.append(Transaction(zxid, session, _changes(kind, body), kind == CLOSE_SESSION))
    return found


def read_history(*folders):
    """Return all transactions that the logs of these servers hold, in order."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("log.*")):
            found |= {transaction.zxid: transaction for transaction in read_log(path.read_bytes())}
    return [found[zxid] for zxid in sorted(found)]


def handle_of(data):
    """Return the handle in a job's node, or None for what is not one."""
    try:
        return json.loads(data.partition(b"\n")[2])
    except ValueError:
        return None


def check_history(transactions, folder):
    """Return what was done that nobody was allowed to do. ``folder``: the cluster's node."""
    latch, jobs, record = f"{folder}/leader/latch/", f"{folder}/jobs/", f"{folder}/leader/connection_info"
    line, handles, faults, owned = {}, {}, [], {}

    def first():
        return min(line.items(), key=lambda node: node[0][-10:])[1] if line else (0, 0)

    for transaction in transactions:
        czxid, owner = first()
        for change in transaction.changes:
            is_job, where = change.path.startswith(jobs), f"zxid {transaction.zxid:#x}, {change.path}"
            if is_job and change.kind != "delete":
                faults += _faults_of_write(where, handles.get(change.path), handle_of(change.data), czxid)
                handles[change.path] = handle_of(change.data) or {}
            elif is_job and transaction.session != owner:
                faults.append(f"{where}: deleted by session {transaction.session:#x}, which does not lead")
            elif change.path == record and change.kind == "create" and transaction.session != owner:
                faults.append(f"{where}: written by session {transaction.session:#x}, which does not lead")
        for change in transaction.changes:
            if change.kind == "delete":
                line.pop(change.path, None)
                handles.pop(change.path, None)
            elif change.kind == "create" and change.path.startswith(latch):
                line[change.path] = (transaction.zxid, transaction.session)
                owned.setdefault(transaction.session, []).append(change.path)
        if transaction.ends_session:
            for path in owned.pop(transaction.session, ()):
                line.pop(path, None)
    return faults


def _faults_of_write(where, before, handle, czxid):
    if handle is None:
        return [f"{where}: not a handle"]
    faults = []
    if handle["epoch"] != czxid:
        faults.append(f"{where}: written under epoch {handle['epoch']}, {czxid} leads")
    if before:
        if handle["epoch"] < before["epoch"]:
            faults.append(f"{where}: epoch {handle['epoch']} after {before['epoch']}")
        faults += [
            f"{where}: the {part} was {before[part]} and is {handle[part]}"
            for part in ("decision", "result")
            if before.get(part) and handle.get(part) != before[part]
        ]
    return faults
