"""SharedBuilds: one build side for all subtasks of a join in this process, where each of them is sent the same rows.

    member = builds.enter(key)                     the first one builds, the others wait; None: build for yourself
    builder    ... has its rows ... ──► member.tell(filters)
               ... fills its join ... ─┬─► member.share(join, close)       all rows are in memory
                                       ├─► member.offer_copy(join)         they are not: each has to have its own
                                       └─► member.fail(error)
    waiter     ... drops its rows ... ──► member.wait_for_filters(check)
                                      ──► member.wait(check) ─┬─► the join to borrow from
                                                              └─► the join to copy from, in member.step(...) each
    all        member.leave()                      in the end, also after failures

    BUILDING ──share─► SHARED ─the last one leaves──► closed, forgotten
        │ └──offer_copy──► COPIED ──the builder leaves──► FAILED for those that still copy
        └──fail, leave──► FAILED

A waiter drops its rows as they come, so that it holds up no producer, and has them from the builder. What is shared
belongs to no subtask: its pages count for those that use it, which take none of their own, and go back with the last of
them. A subtask that comes when copies are already made builds for itself.

Where rows carry a matched bit (``markers``), every probe row must meet the same rows, so all subtasks of the join are
here and at work at one time. None copies: partitions that do not fit stay the builder's, and so do probe rows of these,
which are written in turns (``turn``). What is known only when all have probed is returned by the one that ends last:

    all        ... probe ... ──► member.end_probe(check) ─┬─► the join to finish, of the last one
                                                          └─► None

A subtask that leaves before it has probed turns the build side FAILED: its marks are missing.

Waits end when the task is cancelled (``check`` is called ten times a second) and when the builder fails.

Thread: any. Everything is guarded by one lock; rows are read outside of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING

from engine.errors import ProducerFailedError

if TYPE_CHECKING:
    from engine.join.hash_join import HashJoin
    from engine.operators.runtime_filters import RuntimeFilters
    from engine.operators.spill_accounts import FurtherSpill

_CHECK_EVERY_S = 0.1


class BuildState(Enum):
    """The state of a shared build side."""

    BUILDING = "BUILDING"
    SHARED = "SHARED"
    COPIED = "COPIED"
    FAILED = "FAILED"


class _SharedBuild:
    """One build side; all fields are guarded by the registry's lock."""

    def __init__(self) -> None:
        self.state = BuildState.BUILDING
        self.join: HashJoin | None = None
        self.filters: RuntimeFilters | None = None
        self.is_told = False
        self.close: Callable[[], None] | None = None
        self.further: FurtherSpill | None = None
        self.error: BaseException | None = None
        self.members = 0
        #: number of subtasks that mark rows as matched, 0: rows carry no marks; those that came; those that have probed
        self.markers = 0
        self.entered = 0
        self.probed = 0
        #: lock of files that probe rows of all markers go to
        self.turn = threading.Lock()
        #: waiters that have not got their rows yet, and those that read the builder's at this moment
        self.waiters = 0
        self.readers = 0


class SharedBuilds:
    """The shared build sides of one process, by vertex and attempt."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._builds: dict[Hashable, _SharedBuild] = {}  # guarded by: self._changed

    @property
    def member_count(self) -> int:
        """Subtasks that share a build side, of all joins."""
        with self._changed:
            return sum(build.members for build in self._builds.values())

    def enter(self, key: Hashable, markers: int = 0) -> Member | None:
        """Return a subtask's member, or None when it has to build for itself.

        markers: number of subtasks, all of this process, that mark build rows as matched; 0: rows are not marked.
        """
        with self._changed:
            build = self._builds.get(key)
            is_builder = build is None
            if build is None:
                build = self._builds[key] = _SharedBuild()
            if build.state not in (BuildState.BUILDING, BuildState.SHARED):
                return None
            build.markers = markers
            build.entered += 1
            build.members += 1
            build.waiters += not is_builder
            self._changed.notify_all()
            return Member(self, key, build, is_builder)


class Member:
    """One subtask's part in a shared build side."""

    def __init__(self, builds: SharedBuilds, key: Hashable, build: _SharedBuild, is_builder: bool) -> None:
        self.is_builder = is_builder
        self._builds = builds
        self._changed = builds._changed
        self._key = key
        self._build = build
        self._is_waiter = not is_builder
        self._has_left = False
        self._has_probed = False

    @property
    def is_shared(self) -> bool:
        """Whether the builder's rows may be probed by all."""
        return self._build.state is BuildState.SHARED

    @property
    def is_awaited(self) -> bool:
        """Whether wait() would wait."""
        return self._build.state is BuildState.BUILDING

    # ------------------------------------------------------------------ the builder

    def tell(self, filters: RuntimeFilters | None) -> None:
        """Let all have the filters of the keys, None: there are none; before the build side is shared or offered."""
        with self._changed:
            self._build.filters, self._build.is_told = filters, True
            self._changed.notify_all()

    def share(self, join: HashJoin, close: Callable[[], None], further: FurtherSpill | None = None) -> None:
        """Let all borrow this build side; ``close`` gives it back after the last has left.

        further: what is written to its files from then on.
        """
        with self._changed:
            self._build.join, self._build.close, self._build.further = join, close, further
            self._turn(BuildState.SHARED)

    def offer_copy(self, join: HashJoin) -> None:
        """Let those that wait copy the rows; call wait_for_copies before they change."""
        with self._changed:
            self._build.join = join
            self._turn(BuildState.COPIED)

    def wait_for_copies(self, check: Callable[[], None]) -> None:
        """Wait until no member needs the builder's rows any more."""
        with self._changed:
            while self._build.state is BuildState.COPIED and self._build.waiters:
                check()
                self._changed.wait(_CHECK_EVERY_S)

    def fail(self, error: BaseException) -> None:
        """Tell waiting tasks that there will be no build side."""
        with self._changed:
            self._build.error = error
            self._turn(BuildState.FAILED)

    # ------------------------------------------------------------------ the others

    def wait_for_filters(self, check: Callable[[], None]) -> RuntimeFilters | None:
        """Return the filters that the builder tells of; None also where it has failed, which wait() says."""
        with self._changed:
            while self._build.state is BuildState.BUILDING and not self._build.is_told:
                check()
                self._changed.wait(_CHECK_EVERY_S)
            return self._build.filters

    def wait(self, check: Callable[[], None]) -> HashJoin:
        """Return the join to borrow or to copy from.

        Raises: ProducerFailedError: the builder has failed; its own report says why. What ``check`` raises.
        """
        with self._changed:
            while self._build.state is BuildState.BUILDING:
                check()
                self._changed.wait(_CHECK_EVERY_S)
            if self._build.state is BuildState.SHARED:
                self._stop_waiting()
            return self._needed_join()

    def step(self, copy_chunk: Callable[[], bool]) -> bool:
        """Copy a chunk of rows while the builder keeps them; return what ``copy_chunk`` does: are there more."""
        with self._changed:
            self._needed_join()
            self._build.readers += 1
        try:
            return copy_chunk()
        finally:
            with self._changed:
                self._build.readers -= 1
                self._changed.notify_all()

    def end_copy(self) -> None:
        """Say that the builder's rows are not needed any more."""
        with self._changed:
            self._stop_waiting()

    # ------------------------------------------------------------------ all that mark rows

    @property
    def marks(self) -> bool:
        """Whether all subtasks mark the same build rows."""
        return self._build.markers > 0

    @property
    def further(self) -> FurtherSpill | None:
        """Bytes that go to the builder's files since the builder counts them no further."""
        return self._build.further

    @property
    def turn(self) -> AbstractContextManager[object]:
        """The lock of what all subtasks write."""
        return self._build.turn

    def end_probe(self, check: Callable[[], None]) -> HashJoin | None:
        """Say that all probe rows were looked up; return the join to finish if this is the last subtask.

        Waits until all subtasks have come, so that none finds the build side gone.
        Raises: ProducerFailedError: a subtask has left before its probe rows were looked up. What ``check`` raises.
        """
        build = self._build
        with self._changed:
            while build.entered < build.markers and build.state is not BuildState.FAILED:
                check()
                self._changed.wait(_CHECK_EVERY_S)
            join = self._needed_join()
            self._has_probed = True
            build.probed += 1
            return join if build.probed == build.markers else None

    # ------------------------------------------------------------------ all

    def leave(self) -> None:
        """Need the build side no more; the last one gives it back. Idempotent."""
        close = None
        with self._changed:
            if self._has_left:
                return
            self._has_left = True
            build = self._build
            self._stop_waiting()
            if (self.is_builder and not self.is_shared) or (build.markers and not self._has_probed):
                self._turn(BuildState.FAILED)
                while build.readers:
                    self._changed.wait()
            build.members -= 1
            if build.members == 0:
                build.join, build.filters, close = None, None, build.close
                self._forget()
        if close is not None:
            close()

    def _needed_join(self) -> HashJoin:
        join = self._build.join
        if self._build.state is BuildState.FAILED or join is None:
            message = "the subtask that built the join's table for all of this process has ended"
            raise ProducerFailedError(message) from self._build.error
        return join

    def _stop_waiting(self) -> None:
        if self._is_waiter:
            self._is_waiter = False
            self._build.waiters -= 1
            self._changed.notify_all()

    def _turn(self, state: BuildState) -> None:
        self._build.state = state
        if state is BuildState.FAILED:
            self._forget()
        self._changed.notify_all()

    def _forget(self) -> None:
        if self._builds._builds.get(self._key) is self._build:
            del self._builds._builds[self._key]
