"""Prepared statements: what clients have prepared and not closed, with the parameters that they have given.

    prepare(text, owner) ─► handle      of(handle, owner) ─► Prepared       close(handle, owner)

    a handle    128 random bits, good for its owner alone: the session that has prepared it
    bounded     COUNT_MAX of all clients; text and parameters of BYTES_MAX each, ALL_BYTES_MAX together. Where there are
                more, the session that has most loses the one that it has not used for longest
    expiry      one that was not used for ``timeout_s`` is gone: clients go away without closing anything

A handle that is not there is an error that says why it may be gone. Thread: any.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from engine.clock import Clock, SystemClock
from engine.errors import PlanError

_log = logging.getLogger(__name__)

COUNT_MAX: Final = 10_000
BYTES_MAX: Final = 8 << 20
ALL_BYTES_MAX: Final = 256 << 20


@dataclass
class Prepared:
    """A statement of a client. ``parameters``: a stream of IPC, empty where none were given."""

    text: str
    owner: str
    used_s: float
    parameters: bytes = b""

    @property
    def size_bytes(self) -> int:
        """Bytes that it takes."""
        return len(self.text) + len(self.parameters)


class PreparedStatements:
    """The prepared statements of all clients."""

    def __init__(self, timeout_s: float, count_max: int = COUNT_MAX, clock: Clock | None = None) -> None:
        self.timeout_s = timeout_s
        self._count_max = count_max
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        #: statements by handle, in the order of their last use; guarded by: self._lock
        self._statements: OrderedDict[bytes, Prepared] = OrderedDict()

    def prepare(self, text: str, owner: str) -> bytes:
        """Keep a statement; return its handle. Raises: PlanError for a text that is too long."""
        if len(text) > BYTES_MAX:
            raise PlanError(
                f"flight sql: the statement has {len(text):,} characters, at most {BYTES_MAX:,} are kept; send its "
                "values as parameters or as a table"
            )
        handle, now_s = secrets.token_bytes(16), self._clock.monotonic_s()
        with self._lock:
            self._forget_old(now_s)
            self._statements[handle] = Prepared(text, owner, now_s)
            self._make_room(handle)
        return handle

    def of(self, handle: bytes, owner: str) -> Prepared:
        """Return a statement, which is used now. Raises: PlanError for a handle that is not this owner's."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._forget_old(now_s)
            found = self._statements.get(handle)
            if found is None or found.owner != owner:
                raise PlanError(
                    "flight sql: this prepared statement is not there: it was closed, it was not used for "
                    f"{self.timeout_s:.0f} s, this session has too many that are open, the server was started again, "
                    "or it is another session's; prepare it again"
                )
            found.used_s = now_s
            self._statements.move_to_end(handle)
        return found

    def close(self, handle: bytes, owner: str) -> None:
        """Forget a statement; one that is not there is no error."""
        with self._lock:
            found = self._statements.get(handle)
            if found is not None and found.owner == owner:
                del self._statements[handle]

    def bind(self, handle: bytes, owner: str, parameters: bytes) -> None:
        """Keep parameters for the next run of a statement. Raises: PlanError for too many."""
        if len(parameters) > BYTES_MAX:
            raise PlanError(
                f"flight sql: the parameters have {len(parameters):,} bytes, at most {BYTES_MAX:,} are kept; write the "
                "rows to a file, or as a table with the driver's ingest, and join it"
            )
        self.of(handle, owner).parameters = parameters
        with self._lock:
            self._make_room(handle)

    def _make_room(self, kept: bytes) -> None:
        """Forget statements until there are no more than may be; ``kept`` is not forgotten. The lock is held."""
        count, size = len(self._statements), sum(each.size_bytes for each in self._statements.values())
        while count > self._count_max or size > ALL_BYTES_MAX:
            taken: Counter[str] = Counter()
            for each in self._statements.values():
                taken[each.owner] += 1 if count > self._count_max else each.size_bytes
            most = max(taken, key=lambda owner: taken[owner])
            for handle, each in self._statements.items():
                if each.owner == most and handle != kept:
                    break
            else:
                return
            _log.warning("a prepared statement of a session that has %d of %d is forgotten", taken[most], count)
            del self._statements[handle]
            count, size = count - 1, size - each.size_bytes

    def _forget_old(self, now_s: float) -> None:
        while self._statements:
            oldest = next(iter(self._statements.values()))
            if now_s - oldest.used_s < self.timeout_s:
                return
            self._statements.popitem(last=False)
