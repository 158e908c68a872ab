"""GarbageTimer: the leader removes, now and then, what is stored and no job needs any more.

    every interval ─► orphans of the storage ─► those that were some for AGE_S ─► removed, with a line in the log

It takes what lies in files: of jobs without handles, half written, or named by no handle. What such a job has staged
beside its outputs goes first, since its graph alone knows where that is. Handles whose files are missing and nodes of
others are left to ``flink-run ha gc``. A handle is looked for again before anything is removed, so the jobs of another
leader are safe. How old a file is depends on two wall clocks, that of the storage and that of this machine: what was
written a moment ago looks old where they differ. So it must also have been seen as an orphan for as long, by the
monotonic clock. Where the storage's clock is ahead of this one, that alone counts: else what is left would stay until
this clock has come there. What has been written anew in between, and is younger than before, is seen anew.

Held by: tests/dispatcher/test_orphans.py
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor

from engine.clock import Clock
from engine.dispatcher.orphans import Orphan, find_orphans, remove_orphan
from engine.errors import EngineError
from ha.interfaces import ForeignStateError, StateHandleStore, StateUnavailableError

_log = logging.getLogger(__name__)

#: seconds for which what no handle names is left alone: a handle may be about to name it
AGE_S = 3600.0
_KINDS = ("staging", "blobs", "result", "file", "job")


class GarbageTimer:
    """Garbage of one storage.

    Args: folder: of the cluster; interval_s: seconds between two looks; 0: none.
    """

    def __init__(
        self,
        folder: str,
        handles: StateHandleStore,
        interval_s: float,
        blocking_work: Executor,
        clock: Clock,
        age_s: float = AGE_S,
    ) -> None:
        self._folder = folder
        self._handles = handles
        self._interval_s = interval_s
        self._blocking_work = blocking_work
        self._clock = clock
        self._age_s = age_s
        #: times of the first look at each orphan that the last look has found, and its age then, by kind and path
        self._seen_s: dict[tuple[str, str], tuple[float, float]] = {}

    async def run(self) -> None:
        """Look again and again, as long as this process leads."""
        while self._interval_s:
            await asyncio.sleep(self._interval_s)
            try:
                await asyncio.get_running_loop().run_in_executor(self._blocking_work, self.collect)
            except (OSError, EngineError, StateUnavailableError, ForeignStateError) as error:
                _log.warning("stored files that no job needs could not be looked for: %s", error)

    def collect(self) -> int:
        """Remove what is old enough; return the number of bytes."""
        removed, kept = 0, set[str]()
        orphans = [orphan for orphan in find_orphans(self._folder, self._handles) if orphan.kind in _KINDS]
        now_s, before, self._seen_s = self._clock.monotonic_s(), self._seen_s, {}
        for each in orphans:
            age_s = each.age_s or 0.0
            first_s, last_age_s = before.get((each.kind, each.path), (now_s, age_s))
            self._seen_s[each.kind, each.path] = (now_s if age_s < last_age_s else first_s, age_s)
        for orphan in sorted(orphans, key=lambda orphan: _KINDS.index(orphan.kind)):
            if self._is_removed(orphan, kept):
                removed += orphan.size_bytes
                _log.info("removed: %s %s of %d bytes, which no job needs", orphan.kind, orphan.path, orphan.size_bytes)
            elif orphan.kind == "staging":
                kept.add(orphan.job_id)
        return removed

    def _is_removed(self, orphan: Orphan, kept: set[str]) -> bool:
        """Remove an orphan that is old, unless something of its job had to be ``kept``; return whether it is gone."""
        seen_s = self._clock.monotonic_s() - self._seen_s[orphan.kind, orphan.path][0]
        if orphan.age_s is None or orphan.job_id in kept:
            return False
        if min(orphan.age_s if orphan.age_s > 0 else seen_s, seen_s) < self._age_s:
            return False
        try:
            return remove_orphan(orphan, self._handles)
        except (OSError, EngineError) as error:
            _log.warning("%s %s, which no job needs, cannot be removed: %s", orphan.kind, orphan.path, error)
            return False
