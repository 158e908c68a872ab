"""Prepared statements: what clients have prepared and not closed, with the parameters that they have given.

    prepare(text, owner) ─► handle      of(handle, owner) ─► Prepared       close(handle, owner)

    a handle    128 random bits, good for its owner alone: the session that has prepared it
    bounded     COUNT_MAX of all clients; parameters of BYTES_MAX each
    expiry      one that was not used for ``timeout_s`` is gone: clients go away without closing anything

A handle that is not there is an error that says why it may be gone. Thread: any.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from engine.clock import Clock, SystemClock
from engine.errors import PlanError

COUNT_MAX: Final = 10_000
BYTES_MAX: Final = 8 << 20


@dataclass
class Prepared:
    """A statement of a client. ``parameters``: a stream of IPC, empty where none were given."""

    text: str
    owner: str
    used_s: float
    parameters: bytes = b""


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
        """Keep a statement; return its handle. Raises: PlanError where there are too many."""
        handle, now_s = secrets.token_bytes(16), self._clock.monotonic_s()
        with self._lock:
            self._forget_old(now_s)
            if len(self._statements) >= self._count_max:
                raise PlanError(
                    f"flight sql: {self._count_max} prepared statements are open; close them (each cursor of a client "
                    "has one), or wait until old ones expire"
                )
            self._statements[handle] = Prepared(text, owner, now_s)
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
                    f"{self.timeout_s:.0f} s, the server was started again, or it is another session's; prepare it "
                    "again"
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

    def _forget_old(self, now_s: float) -> None:
        while self._statements:
            oldest = next(iter(self._statements.values()))
            if now_s - oldest.used_s < self.timeout_s:
                return
            self._statements.popitem(last=False)
