"""Budget: what a process may hold of each kind of memory, and its holders, one Reservation each.

    budget.set_limit(kind, bytes)                    once, when the process size is divided (``process_memory``)
    reservation = budget.reserve(kind, bytes)        at once, or MemoryBudgetError; ends with what it is for
        reservation.resize(bytes) -> bool            at once: all of it, or False and it stays as it was
        reservation.split(bytes) -> Reservation      a part of it, which ends by itself
        reservation.part_bytes                       how large a batch of a reader, a row group of a writer may be
        reservation.close()                          idempotent
    with budget.step(kind, bytes) as reservation:    for one step of work: waits until it fits beside other steps

    process size ├── interpreter ──┼── PAGES ──┼── IO ──┼────────────── ARROW ──────────────┼── WORKER ──┤
                                                        ├── readers: half ──┼── writers: half, divided ──┤

PAGES: of which a ``MemoryManager`` reserves pools. IO: network buffers. ARROW: batches on their way, files that are
read and written. WORKER: processes of Python functions, whose memory is watched (``worker_watch``).

Waiting is here and nowhere else, and one rule keeps it from going round in a circle: **a thread in a step passes
nothing on and waits for nothing in this process until the step is closed.** A step waits for other steps only, so:

    those that are in one are never blocked by others  ─►  each of them is closed some time
    a waiter needs nothing but that                    ─►  each waiter gets its reservation, first come, first served

What is passed on, or kept while others are waited for, is reserved, split or resized: at once, or it is refused, and
no thread waits for it. So is a step within a step of the same thread: it is a part of the same work.

A step that finds no room begins as soon as there is no other: memory beyond a limit by one step of work is better than
a job that stands still. Only a record that is larger by itself than ARROW and WORKER together is refused.

Invariants: what is held is the sum of the open reservations; a step takes the sum beyond the limit only when it is the
only one; of what is resized by readers no more than twice LEAST_BYTES lies beyond their half.
A reader resizes for each row group and asks for its part for each batch, so none of it is a Python frame.

Thread: any. Source: the memory grants of SQL Server, the write buffer manager of RocksDB; ordered resources (Havender).
"""

from libc.stdint cimport int32_t, int64_t

import threading
from collections import deque
from enum import Enum, auto

from engine.config.options import PROCESS_SIZE
from engine.config.sizes import format_size
from engine.errors import MemoryBudgetError

#: least memory of a reader's first row group, whatever the budget is
LEAST_BYTES = 8 << 20
#: seconds between two checks whether a waiter has been cancelled
cdef double LOOK_S = 0.1
cdef int64_t UNLIMITED = 1 << 61


class Kind(Enum):
    """The kinds of memory."""

    __hash__ = object.__hash__  # a name's hash is a function of Python's

    PAGES = auto()
    IO = auto()
    ARROW = auto()
    WORKER = auto()


class Role(Enum):
    """The role of a member; the value is the number of parts that it holds at once, about."""

    __hash__ = object.__hash__

    #: number of parts at once: batches that are decoded, in work and on their way
    READER = 8
    #: number of parts at once: rows, and their encoding in the file
    WRITER = 2


# The places of kinds and roles in a budget's tables, and the parts of the roles.
cdef dict KIND_PLACES = {kind: place for place, kind in enumerate(Kind)}
cdef dict ROLE_PLACES = {role: place for place, role in enumerate(Role)}
cdef list ROLE_PARTS = [role.value for role in Role]

cdef enum:
    ARROW = 2
    WORKER = 3
    READER = 0


cdef class Budget:
    """The budget of a process for each kind of memory."""

    def __init__(self):
        cdef int32_t place
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        for place in range(KIND_COUNT):
            self._limits[place], self._held[place] = UNLIMITED, 0
        for place in range(ROLE_COUNT):
            self._members[place] = 0
        self._settle_parts()
        self._steps, self._waiting = [], deque()

    def set_limit(self, kind not None, int64_t limit_bytes):
        """Change the limit of a kind for all reservations to come."""
        with self._changed:
            self._limits[<int32_t>KIND_PLACES[kind]] = min(limit_bytes, UNLIMITED)
            self._settle_parts()
            self._changed.notify_all()

    def limit(self, kind not None):
        """Return the limit of a kind."""
        return self._limits[<int32_t>KIND_PLACES[kind]]

    def held(self, kind not None):
        """Return the bytes reserved of a kind."""
        return self._held[<int32_t>KIND_PLACES[kind]]

    def reserve(self, kind not None, int64_t size=0, role=None):
        """Return a reservation, to be closed; ``role``: of a reader or a writer, one of those that share a part.

        Raises: MemoryBudgetError: there is not as much.
        """
        cdef Reservation reservation = Reservation(self, kind, role)
        with self._changed:
            if size and size > self._limits[reservation._kind] - self._held[reservation._kind]:
                held, limit = format_size(self.held(kind)), format_size(self.limit(kind))
                raise MemoryBudgetError(
                    f"{format_size(size)} of {kind.name.lower()} memory are wanted, and {held} of {limit} are held; "
                    f"raise {PROCESS_SIZE.key}"
                )
            self._set_size(reservation, size)
            if role is not None:
                self._members[reservation._role] += 1
                self._settle_parts()
        return reservation

    def step(self, kind not None, size, is_ended=None):
        """Return a reservation for one step of work, having waited until it fits beside those of other steps.

        Args: size: None: half of what readers have left, once no other step is at work; is_ended: ends the waiting,
        with nothing reserved.
        """
        waiter = self.queue(kind, size)
        with self._changed:
            try:
                while True:
                    reservation = self._begun(waiter)
                    if reservation is not None:
                        return reservation
                    if is_ended is not None and is_ended():
                        return Reservation(self, kind)
                    self._changed.wait(LOOK_S)
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                    self._changed.notify_all()

    def queue(self, kind not None, size, thread=None):
        """Stand in line for a step; ``begun`` says when it begins. Called by ``step``."""
        cdef Reservation step
        cdef Waiter waiter = Waiter(kind, size, threading.get_ident() if thread is None else thread)
        with self._changed:
            for step in self._steps:
                waiter.is_within |= step.thread == waiter.thread
            if waiter.is_within:
                self._waiting.appendleft(waiter)
            else:
                self._waiting.append(waiter)
        return waiter

    def begun(self, Waiter waiter not None):
        """Return the reservation of the first in line, when it fits; None: it does not, or others came first."""
        with self._changed:
            return self._begun(waiter)

    cdef Reservation _begun(self, Waiter waiter):
        cdef Reservation step = Reservation(self, waiter.kind, None, waiter.thread)
        cdef int64_t free = self._limits[step._kind] - self._held[step._kind]
        cdef int64_t size
        if self._waiting[0] is not waiter:
            return None
        if waiter.size is None:
            size = max((self._limits[step._kind] // 2 - self._held[step._kind]) // 2, <int64_t>LEAST_BYTES)
            free = -1
        else:
            size = waiter.size
        if self._steps and size > free and not waiter.is_within:
            return None
        self._waiting.popleft()
        self._set_size(step, size)
        self._steps.append(step)
        self._changed.notify_all()
        return step

    @property
    def record_limit(self):
        """The limit for one record, or for the pages that it lies in: all memory of batches and functions."""
        return self.record_bytes_max()

    cdef int64_t record_bytes_max(self) noexcept:
        return self._limits[ARROW] + self._limits[WORKER]

    def check_record(self, size, what="a record"):
        """Raise MemoryBudgetError for a record that is larger than any may be; ``what`` says which."""
        limit = self.record_limit
        if size > limit:
            raise MemoryBudgetError(
                f"{what} of {format_size(size)} does not fit into the {format_size(limit)} that this process has for "
                f"batches and Python functions; raise {PROCESS_SIZE.key}"
            )

    cdef bint _resize(self, Reservation reservation, int64_t size) except -1:
        """Change what a reservation holds, where there is as much."""
        cdef int64_t others, free
        cdef int64_t limit
        if size == reservation.size:
            return True
        with self._lock:    # of self._changed, with fewer calls
            if size > reservation.size:
                limit = self._limits[reservation._kind]
                others = self._held[reservation._kind] - reservation.size
                free = limit - others
                if reservation._role == READER:
                    free = max(limit // 2 - others, <int64_t>0 if others else <int64_t>LEAST_BYTES)
                if size > free:
                    return False
            self._set_size(reservation, size)
        return True

    cdef int _settle_parts(self) except -1:
        cdef int32_t place
        for place in range(ROLE_COUNT):
            self._parts[place] = self._limits[ARROW] // 2 // <int64_t>ROLE_PARTS[place] // max(1, self._members[place])
        return 0

    cdef int _move(self, Reservation source, Reservation target, int64_t size) except -1:
        """Move bytes from one reservation to another, as far as they go."""
        with self._changed:
            self._set_size(source, source.size - min(size, source.size))
            self._set_size(target, size)
        return 0

    cdef int _end(self, Reservation reservation) except -1:
        """Release what a reservation holds."""
        with self._changed:
            self._set_size(reservation, 0)
            if reservation._role >= 0:
                self._members[reservation._role] -= 1
                self._settle_parts()
            if reservation in self._steps:
                self._steps.remove(reservation)
        return 0

    cdef int _set_size(self, Reservation reservation, int64_t size) except -1:
        self._held[reservation._kind] += size - reservation.size
        reservation.size = size
        if self._waiting:
            self._changed.notify_all()
        return 0


cdef class Waiter:
    """A thread that waits for a step; ``is_within``: it is in one already."""

    def __init__(self, kind, size, thread):
        self.kind, self.size, self.thread = kind, size, thread


cdef class Reservation:
    """A part of the budget; a context manager."""

    def __init__(self, Budget budget not None, kind not None, role=None, thread=None):
        self._budget, self.kind, self.role, self.thread = budget, kind, role, thread
        self._kind = KIND_PLACES[kind]
        self._role = -1 if role is None else <int32_t>ROLE_PLACES[role]

    @property
    def part_bytes(self):
        """The limit for a batch or a row group, as of now; 0 when it is closed."""
        return self.part()

    cdef int64_t part(self) noexcept:
        return 0 if self._budget is None or self._role < 0 else self._budget._parts[self._role]

    cpdef bint resize(self, int64_t size) except -1:
        """Hold so many bytes from now on; False where there are not as many, and nothing has changed."""
        return self._budget is not None and self._budget._resize(self, size)

    def split(self, int64_t size):
        """Return a reservation of so many of these bytes, which travels with what they are for, without waiting."""
        assert self._budget is not None, "the reservation is closed"
        cdef Reservation part = Reservation(self._budget, self.kind)
        self._budget._move(self, part, size)
        return part

    def close(self):
        """Release everything; idempotent."""
        cdef Budget budget = self._budget
        self._budget = None
        if budget is not None:
            budget._end(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


#: budget of this process
process_budget = Budget()
