"""An object store in memory, a FileSystem of the scheme ``model``: requests fail, or take effect unanswered.

It may be slow, for threads alone: what waits for it on the loop of a process would stop everything. It may be full:
what is there is read and removed, and nothing is written.
"""

from __future__ import annotations

import errno

from tests.cluster_model import virtual_threads
from tests.cluster_model.virtual_threads import BEGIN_S, PROCESS, KilledError
from tests.storage.memory import MemoryStore

#: requests that may fail
_REQUESTS = (
    "create_if_absent",
    "delete",
    "delete_tree",
    "entries",
    "find",
    "open_stream",
    "put_version",
    "read",
    "read_version",
    "replace",
)
#: operations that need room
_WRITES = frozenset({"create_if_absent", "open_stream", "put_version", "replace"})


class StoreModel(MemoryStore):
    """What a process that was killed asks is not carried out."""

    schemes = ("model",)

    def __init__(self, chance):
        super().__init__()
        self.chance = chance
        #: path -> when it was written
        self._written_s = {}
        #: chance with which a request fails now, half of them after they were carried out
        self.failing = 0.0
        #: mean time that a request takes, seconds
        self.slow_s = 0.0
        self.is_full = False

    def put(self, path, content):
        super().put(path, content)
        self._written_s[path] = BEGIN_S + virtual_threads.now_s()  # the store's own clock

    def status(self, path):
        return super().status(path)._replace(modified_ns=int(self._written_s.get(path, 0.0) * 1e9))

    def below(self, folder):
        return [(name, size, self._written_s[f"{folder}/{name}"]) for name, size, _ in super().below(folder)]

    def attempt(self, path, needs_room, carry_out):
        process = PROCESS.get()
        if process is not None and process.is_dead:
            raise KilledError
        if self.slow_s and virtual_threads.is_thread():
            virtual_threads.pause(self.chance.expovariate(1 / self.slow_s))
        if self.is_full and needs_room:
            raise OSError(errno.ENOSPC, "the store of the model is full", path)
        fails = self.failing and self.chance.random() < self.failing
        if fails and self.chance.random() < 0.5:
            raise OSError(errno.EIO, "the store of the model does not answer", path)
        value = carry_out()
        if fails:
            raise OSError(errno.EIO, "the store of the model has not answered", path)
        return value


def _failing(name):
    plain, needs_room = getattr(MemoryStore, name), name in _WRITES
    return lambda self, path, *args, **named: self.attempt(path, needs_room, lambda: plain(self, path, *args, **named))


for _name in _REQUESTS:
    setattr(StoreModel, _name, _failing(_name))
