"""JobQueue: the requests for slots of all jobs, in the order in which they are served.

    add(request) ─► next_served(free, total) ─► the request whose turn it is, when it fits; else None
                 ─► waiting(...)             ─► place and reason of each job without a slot
                 ─► short(total)             ─► jobs that these slots could never serve

    turn:   what is still owed of a request ─ higher priority ─ earlier submission ─ earlier request of a job

The first one that does not fit keeps all behind it waiting, so that a large one is never starved by small ones. Three
kinds are passed over, since they cannot be served: one for more slots than there are at all (it has its
place again when TaskManagers come), one of a job that may not run yet because as many run as are allowed to, and one
of a user with as many jobs or slots as users may have.

A job runs from its first slot until it has ended (``leave``), also while it holds none between two stages. Jobs that a
new leader has recovered and that have not asked yet are ``expected``: no job behind them is served before they have.

Pure. Source: Flink asks in no order; the order by job is that of Spark's FIFO scheduler, with priorities.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Collection, Mapping

import msgspec

from engine.gateways.job_queue import JobTurn, WaitingJob, WaitingReason
from engine.gateways.messages import RequestSlots
from engine.ids import JobId

#: owed slots first, then the job's turn, then the order of requests
_Key = tuple[int, int, int, int]


class _Queued(msgspec.Struct, frozen=True):
    key: _Key
    request: RequestSlots
    is_owed: bool


class JobQueue:
    """Requests that wait, and the jobs that may be given slots.

    Args:
        running_max: so many jobs run at one time; 0: any number.
        user_jobs_max, user_slots_max: the same of one user's jobs, and their slots.
        held: number of slots that each job has.
    """

    def __init__(
        self,
        running_max: int = 0,
        user_jobs_max: int = 0,
        user_slots_max: int = 0,
        held: Callable[[], Mapping[JobId, int]] = dict,
    ) -> None:
        self._running_max = running_max
        self._user_jobs_max = user_jobs_max
        self._user_slots_max = user_slots_max
        self._held = held
        #: users of jobs that have asked for slots and have not ended; "" is none
        self._users: dict[JobId, str] = {}
        self._queued: list[_Queued] = []
        self._known: set[tuple[JobId, int]] = set()
        #: number of requests of each size
        self._sizes: Counter[int] = Counter()
        self._arrivals = 0
        #: jobs that have had a slot and have not ended
        self._running: set[JobId] = set()
        self._expected: dict[JobId, JobTurn] = {}

    def __len__(self) -> int:
        return len(self._queued)

    # ---- jobs ----

    def expect(self, jobs: Mapping[JobId, JobTurn]) -> None:
        """Serve no job behind these until they have asked, ended, or are expected no more."""
        self._expected.update(jobs)

    def expect_nobody(self) -> None:
        """Wait no longer for jobs that have not asked."""
        self._expected.clear()

    def note_running(self, job_id: JobId) -> None:
        """Take note that a job has a slot."""
        self._running.add(job_id)
        self._expected.pop(job_id, None)

    def leave(self, job_id: JobId) -> None:
        """Remove a job that has ended."""
        self.withdraw(job_id)
        self._running.discard(job_id)
        self._users.pop(job_id, None)
        self._expected.pop(job_id, None)

    def keep_running(self, is_known: Callable[[JobId], bool]) -> None:
        """Remove jobs that are gone: a late message about a slot may have brought one back."""
        self._running = {job_id for job_id in self._running if is_known(job_id)}
        self._users = {job_id: user for job_id, user in self._users.items() if is_known(job_id)}

    # ---- requests ----

    def add(self, request: RequestSlots) -> None:
        """Queue a request; the same one again changes nothing."""
        self._expected.pop(request.job_id, None)
        self._users[request.job_id] = request.turn.user
        if (request.job_id, request.request_id) not in self._known:
            self._known.add((request.job_id, request.request_id))
            self._insert(request, is_owed=False)

    def owe(self, request: RequestSlots, count: int) -> None:
        """Queue what a request was assigned and never given, before all others."""
        self._insert(msgspec.structs.replace(request, count=count), is_owed=True)

    def withdraw(self, job_id: JobId, request_id: int | None = None) -> None:
        """Remove a request, or (None) all of a job."""
        self._keep(
            [
                queued
                for queued in self._queued
                if queued.request.job_id != job_id or request_id not in (None, queued.request.request_id)
            ]
        )

    def next_served(self, free: Callable[[RequestSlots], int], total: int) -> RequestSlots | None:
        """Remove and return the request whose turn it is, when the free ones of ``total`` slots are enough for it.

        Args: free: how many of them a request takes, which may avoid some.
        """
        for position, queued in enumerate(self._queued):
            request = queued.request
            if not queued.is_owed and self._is_behind_expected(request):
                return None
            if request.count > total or not self._may_run(request.job_id) or not self._may_user(request):
                continue
            if request.count > free(request):
                return None
            del self._queued[position]
            self._forget(queued)
            self._running.add(request.job_id)
            return request
        return None

    # ---- what others are told ----

    def short(self, total: int) -> frozenset[JobId]:
        """Return the jobs none of whose requests could be served if all of ``total`` slots were free."""
        if all(size <= total for size in self._sizes):
            return frozenset()
        fits = {queued.request.job_id for queued in self._queued if queued.request.count <= total}
        return frozenset(queued.request.job_id for queued in self._queued) - fits

    def waiting(self, total: int, holders: Collection[JobId]) -> dict[JobId, WaitingJob]:
        """Return the jobs that wait and hold no slot, those first whose turn comes first."""
        first: dict[JobId, RequestSlots] = {}
        for queued in self._queued:
            if queued.request.job_id not in holders:
                first.setdefault(queued.request.job_id, queued.request)
        return {
            job_id: WaitingJob(
                place, len(first), request.count, total, self._reason(request, total), request.turn.priority
            )
            for place, (job_id, request) in enumerate(first.items(), 1)
        }

    def _reason(self, request: RequestSlots, total: int) -> WaitingReason:
        if request.count > total:
            return WaitingReason.CLUSTER
        if not self._may_run(request.job_id):
            return WaitingReason.LIMIT
        return WaitingReason.SLOTS if self._may_user(request) else WaitingReason.USER

    # ---- inside ----

    def _may_run(self, job_id: JobId) -> bool:
        return not self._running_max or job_id in self._running or len(self._running) < self._running_max

    def _may_user(self, request: RequestSlots) -> bool:
        """Whether the user of a request may have what it asks for beside all that is theirs already."""
        user = request.turn.user
        if not user or not (self._user_jobs_max or self._user_slots_max):
            return True
        theirs = {job_id for job_id, name in self._users.items() if name == user}
        others = theirs & self._running - {request.job_id}
        if self._user_jobs_max and request.job_id not in self._running and len(others) >= self._user_jobs_max:
            return False
        held = self._held()
        return not self._user_slots_max or (
            sum(held.get(job_id, 0) for job_id in theirs) + request.count <= self._user_slots_max
        )

    def _is_behind_expected(self, request: RequestSlots) -> bool:
        return any(turn.key < request.turn.key for turn in self._expected.values())

    def _insert(self, request: RequestSlots, *, is_owed: bool) -> None:
        self._arrivals += 1
        key = (0 if is_owed else 1, *request.turn.key, self._arrivals)
        bisect.insort(self._queued, _Queued(key, request, is_owed), key=lambda queued: queued.key)
        self._sizes[request.count] += 1

    def _keep(self, kept: list[_Queued]) -> None:
        remaining = {queued.key for queued in kept}
        gone = [queued for queued in self._queued if queued.key not in remaining]
        self._queued = kept
        for queued in gone:
            self._forget(queued)

    def _forget(self, queued: _Queued) -> None:
        count = queued.request.count
        self._sizes[count] -= 1
        if not self._sizes[count]:
            del self._sizes[count]
        if not queued.is_owed:
            self._known.discard((queued.request.job_id, queued.request.request_id))
