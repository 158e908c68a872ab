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
Thread: any. Source: the memory grants of SQL Server, the write buffer manager of RocksDB; ordered resources (Havender).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Self

from engine.config.options import PROCESS_SIZE
from engine.config.sizes import format_size
from engine.errors import MemoryBudgetError

#: least memory of a reader's first row group, whatever the budget is
LEAST_BYTES: Final = 8 << 20
#: seconds between two checks whether a waiter has been cancelled
_LOOK_S: Final = 0.1
_UNLIMITED: Final = 1 << 62


class Kind(Enum):
    """The kinds of memory."""

    __hash__ = object.__hash__  # a name's hash is a function of Python's, and members are looked up for each batch

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


class Budget:
    """The budget of a process for each kind of memory."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._limits = dict.fromkeys(Kind, _UNLIMITED)  # guarded by: self._changed
        self._held = dict.fromkeys(Kind, 0)  # guarded by: self._changed
        self._roles = dict.fromkeys(Role, 0)  # guarded by: self._changed
        #: limit for a batch or a row group of each member of a role; replaced as a whole
        self.parts: dict[Role, int] = {}
        self._settle_parts()
        self._steps: list[Reservation] = []  # guarded by: self._changed
        self._waiting: deque[_Waiter] = deque()  # guarded by: self._changed

    def set_limit(self, kind: Kind, limit_bytes: int) -> None:
        """Change the limit of a kind for all reservations to come."""
        with self._changed:
            self._limits[kind] = limit_bytes
            self._settle_parts()
            self._changed.notify_all()

    def limit(self, kind: Kind) -> int:
        """Return the limit of a kind."""
        return self._limits[kind]

    def held(self, kind: Kind) -> int:
        """Return the bytes reserved of a kind."""
        return self._held[kind]

    def reserve(self, kind: Kind, size: int = 0, role: Role | None = None) -> Reservation:
        """Return a reservation, to be closed; ``role``: of a reader or a writer, one of those that share a part.

        Raises: MemoryBudgetError: there is not as much.
        """
        reservation = Reservation(self, kind, role)
        with self._changed:
            if size and size > self._limits[kind] - self._held[kind]:
                held, limit = format_size(self._held[kind]), format_size(self._limits[kind])
                raise MemoryBudgetError(
                    f"{format_size(size)} of {kind.name.lower()} memory are wanted, and {held} of {limit} are held; "
                    f"raise {PROCESS_SIZE.key}"
                )
            self._set_size(reservation, size)
            if role is not None:
                self._roles[role] += 1
                self._settle_parts()
        return reservation

    def step(self, kind: Kind, size: int | None, is_ended: Callable[[], bool] = lambda: False) -> Reservation:
        """Return a reservation for one step of work, having waited until it fits beside those of other steps.

        Args: size: None: half of what readers have left, once no other step is at work; is_ended: ends the waiting,
        with nothing reserved.
        """
        waiter = self.queue(kind, size)
        with self._changed:
            try:
                while (reservation := self._begun(waiter)) is None:
                    if is_ended():
                        return Reservation(self, kind)
                    self._changed.wait(_LOOK_S)
            finally:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                    self._changed.notify_all()
        return reservation

    def queue(self, kind: Kind, size: int | None, thread: int | None = None) -> _Waiter:
        """Stand in line for a step; ``begun`` says when it begins. Called by ``step``."""
        thread = threading.get_ident() if thread is None else thread
        with self._changed:
            is_within = any(step.thread == thread for step in self._steps)
            waiter = _Waiter(kind, size, thread, is_within)
            if is_within:
                self._waiting.appendleft(waiter)
            else:
                self._waiting.append(waiter)
        return waiter

    def begun(self, waiter: _Waiter) -> Reservation | None:
        """Return the reservation of the first in line, when it fits; None: it does not, or others came first."""
        with self._changed:
            return self._begun(waiter)

    def _begun(self, waiter: _Waiter) -> Reservation | None:
        if self._waiting[0] is not waiter:
            return None
        free = self._limits[waiter.kind] - self._held[waiter.kind]
        size = waiter.size
        if size is None:
            size = max(self._readers_free(waiter.kind) // 2, LEAST_BYTES)
            free = -1
        if self._steps and size > free and not waiter.is_within:
            return None
        self._waiting.popleft()
        step = Reservation(self, waiter.kind, thread=waiter.thread)
        self._set_size(step, size)
        self._steps.append(step)
        self._changed.notify_all()
        return step

    @property
    def record_limit(self) -> int:
        """Return the limit for one record, or for the pages that it lies in: all memory of batches and functions."""
        return self._limits[Kind.ARROW] + self._limits[Kind.WORKER]

    def check_record(self, size: int, what: str = "a record") -> None:
        """Raise MemoryBudgetError for a record that is larger than any may be; ``what`` says which."""
        limit = self.record_limit
        if size > limit:
            raise MemoryBudgetError(
                f"{what} of {format_size(size)} does not fit into the {format_size(limit)} that this process has for "
                f"batches and Python functions; raise {PROCESS_SIZE.key}"
            )

    def resize(self, reservation: Reservation, size: int) -> bool:
        """Change what a reservation holds, where there is as much; called by Reservation.resize."""
        if size == reservation.size:
            return True
        with self._lock:  # of self._changed, with fewer calls: a reader resizes for each row group
            kind = reservation.kind
            if size > reservation.size:
                others = self._held[kind] - reservation.size
                free = self._limits[kind] - others
                if reservation.role is Role.READER:
                    free = max(self._limits[kind] // 2 - others, 0 if others else LEAST_BYTES)
                if size > free:
                    return False
            self._set_size(reservation, size)
        return True

    def _settle_parts(self) -> None:
        part = self._limits[Kind.ARROW] // 2
        self.parts = {role: part // role.value // max(1, count) for role, count in self._roles.items()}

    def move(self, source: Reservation, target: Reservation, size: int) -> None:
        """Move bytes from one reservation to another, as far as they go; called by Reservation.split."""
        with self._changed:
            self._set_size(source, source.size - min(size, source.size))
            self._set_size(target, size)

    def end(self, reservation: Reservation) -> None:
        """Release what a reservation holds; called by Reservation.close."""
        with self._changed:
            self._set_size(reservation, 0)
            if reservation.role is not None:
                self._roles[reservation.role] -= 1
                self._settle_parts()
            if reservation in self._steps:
                self._steps.remove(reservation)

    def _readers_free(self, kind: Kind) -> int:
        return self._limits[kind] // 2 - self._held[kind]

    def _set_size(self, reservation: Reservation, size: int) -> None:
        self._held[reservation.kind] += size - reservation.size
        reservation.size = size
        if self._waiting:
            self._changed.notify_all()


class _Waiter:
    """A thread that waits for a step; ``is_within``: it is in one already."""

    def __init__(self, kind: Kind, size: int | None, thread: int, is_within: bool) -> None:
        self.kind = kind
        self.size = size
        self.thread = thread
        self.is_within = is_within


class Reservation:
    """A part of the budget; a context manager."""

    def __init__(self, budget: Budget, kind: Kind, role: Role | None = None, thread: int | None = None) -> None:
        self._budget: Budget | None = budget
        self.kind = kind
        self.role = role
        #: thread of the step, which waits for nothing meanwhile
        self.thread = thread
        #: bytes reserved
        self.size = 0

    @property
    def part_bytes(self) -> int:
        """The limit for a batch or a row group, as of now; 0 when it is closed."""
        return 0 if self._budget is None or self.role is None else self._budget.parts[self.role]

    def resize(self, size: int) -> bool:
        """Hold so many bytes from now on; False where there are not as many, and nothing has changed."""
        return self._budget is not None and self._budget.resize(self, size)

    def split(self, size: int) -> Reservation:
        """Return a reservation of so many of these bytes, which travels with what they are for, without waiting."""
        assert self._budget is not None, "the reservation is closed"
        part = Reservation(self._budget, self.kind)
        self._budget.move(self, part, size)
        return part

    def close(self) -> None:
        """Release everything; idempotent."""
        budget, self._budget = self._budget, None
        if budget is not None:
            budget.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: budget of this process
process_budget: Final = Budget()
