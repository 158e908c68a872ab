"""ProcessMemory: the budget of each kind of memory in a TaskManager, from the process size that users set.

    taskmanager.memory.process.size                       all of it; half of the machine's memory by default, or less
    ├── base                                              interpreter and libraries: 136 MiB or half, as measured
    └── rest
        ├── pages        taskmanager.memory.managed.size, or .fraction (0.4) of the rest: for operators
        ├── network      taskmanager.memory.network.fraction (0.1) of the rest, within .min and .max
        ├── arrow        half of what is left: record batches on their way, files that are read and written
        └── workers      the rest: Python worker processes of all slots; pages in jobs that have no Python functions

    process_memory(configuration, slots, machine_bytes).table()      the lines that are logged at start
                                          .of_job(has_functions)     what a job finds that has Python functions or none
    process_bytes_for(configuration, slots, machine_bytes, bytes)    in which workers have as much
    too_large_text(configuration, machine_bytes, count)              what is told where the machine has less
    room_bytes(machine_bytes, held_bytes)      the memory whose half is the default: less where a script holds much

The pool of network buffers works with less than it may have, so the minimum of its budget gives way before
anything else does. An absolute size of the pages wins over the fraction and may be small: every operator runs with six
pages, and pages get smaller with it (``page_size``). A user that sets a small one wants a small process, so Arrow gets
as much and not less than 48 MiB and 16 MiB a slot; it is what it says in every job, and the base no more than a
quarter. Network buffers are as large as pages, so that a page of rows is taken over by an operator as it came.

Invariant: the budgets and the base add up to the process size, in jobs of both kinds. Pure: looks at no machine.
Each budget is the limit of one kind of reservation (``budget``), and has a component that keeps to it:

    PAGES     MemoryManager: each operator's PagePool is reserved, and spills beyond it
    IO        NetworkBufferPool: each partition's pool of buffers; a producer waits beyond it
    ARROW     Budget: readers and writers of files, very wide rows; batches on their way are bounded besides
    WORKER    WorkerWatch: ends the greediest where all parts together would pass the process size

What workers spare for pages goes to them slot by slot (``worker_budget``), so jobs of both kinds run side by side.

The base is the resident size of a process that has run a first small job and rests: 134 to 145 MiB, half of it pages
of libraries' files, of which a small process has less. Nothing bounds it. A script that runs embedded brings its own:
what it holds when its first job is planned makes the default smaller, and what it takes later does not.
Libraries of tables, which not every job needs, are counted for those that do (``SinkFormat.library_bytes``).

Source: Flink's TaskExecutorProcessUtils; arrow and workers take the place of heap and framework memory.
"""

from __future__ import annotations

import os

import msgspec

from engine.config.config_option import ConfigOption
from engine.config.loader import Configuration
from engine.config.options import (
    MANAGED_FRACTION,
    MANAGED_SIZE,
    NETWORK_FRACTION,
    NETWORK_MAX,
    NETWORK_MIN,
    PROCESS_SIZE,
    SEGMENT_SIZE,
)
from engine.config.sizes import format_size
from engine.errors import ConfigurationError
from engine.memory.budget import Kind
from engine.memory.page_budget import OPERATOR_PAGES_MIN, PageBudget
from engine.memory.page_size import PAGE_SIZE_MIN_BYTES, page_size_for

PROCESS_SIZE_MIN_BYTES = 32 << 20
#: step of advised sizes
SIZE_STEP_BYTES = 32 << 20
BASE_BYTES = 136 << 20
_MANAGED_MIN_BYTES = OPERATOR_PAGES_MIN * PAGE_SIZE_MIN_BYTES
#: budget of Arrow where that of pages was set to less
_ARROW_BYTES = 48 << 20
_ARROW_SLOT_BYTES = 16 << 20
#: spare blocks of batches for each processor; they are at most a part of what Arrow may have
_SPARE_BLOCK_BYTES = 32 << 20
_SPARE_BLOCK_SHARE = 16


class ProcessMemory(msgspec.Struct, frozen=True):
    """The parts into which the memory of a TaskManager process is divided, in bytes."""

    process_bytes: int
    base_bytes: int
    network_bytes: int
    managed_bytes: int
    workers_bytes: int
    #: additional bytes for pages where no Python function runs
    spare_bytes: int
    arrow_bytes: int
    #: bytes of a page and of a network buffer
    page_bytes: int
    #: number of network buffers; their memory is mapped when it is needed
    network_segments: int
    #: origin of ``managed_bytes``: its key and value
    managed_source: str

    @property
    def spare_block_bytes(self) -> int:
        """The blocks of batches that are kept for the next ones, in bytes; they are a part of what Arrow may have."""
        return min(_SPARE_BLOCK_BYTES * len(os.sched_getaffinity(0)), self.arrow_bytes // _SPARE_BLOCK_SHARE)

    def of_job(self, *, has_functions: bool) -> ProcessMemory:
        """Return the parts while such a job runs alone."""
        if has_functions:
            return self
        return msgspec.structs.replace(
            self,
            managed_bytes=self.managed_bytes + self.spare_bytes,
            workers_bytes=self.workers_bytes - self.spare_bytes,
            spare_bytes=0,
        )

    def page_budget(self, slot_count: int) -> PageBudget:
        """Return the pages that so many slots divide."""
        return PageBudget(self.managed_bytes, self.page_bytes, slot_count)

    def missing_bytes(self, library_bytes: int, *, has_functions: bool) -> int:
        """Return the bytes that libraries of a job take which pages have to spare: those that no part uses go first.

        Beside them the base is a whole one, also where the process is so small that less is counted for it.
        """
        if not library_bytes:
            return 0
        idle = 0 if has_functions else self.workers_bytes - self.spare_bytes
        return max(0, library_bytes + BASE_BYTES - self.base_bytes - idle)

    @property
    def pages(self) -> int:
        """Pages of all slots together."""
        return self.managed_bytes // self.page_bytes

    @property
    def spare_pages(self) -> int:
        """Pages that there are more where no Python function runs."""
        return (self.managed_bytes + self.spare_bytes) // self.page_bytes - self.pages

    @property
    def limits(self) -> dict[Kind, int]:
        """Limits for each kind, in bytes."""
        return {
            Kind.PAGES: self.managed_bytes,
            Kind.IO: self.network_bytes,
            Kind.ARROW: self.arrow_bytes,
            Kind.WORKER: self.workers_bytes,
        }

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """The whole and its parts in short, name and bytes."""
        return (
            ("all", self.process_bytes),
            ("managed", self.managed_bytes),
            ("network", self.network_bytes),
            ("Arrow", self.arrow_bytes),
            ("Python workers", self.workers_bytes),
            ("interpreter", self.base_bytes),
        )

    def table(self) -> str:
        """Return the division as lines of text, one budget each, with its part of the process size."""
        rows = [
            ("interpreter and libraries", self.base_bytes, ""),
            ("network buffers", self.network_bytes, f"{NETWORK_FRACTION.key}, .min, .max"),
            ("managed (sort, join, group)", self.managed_bytes, self.managed_source),
            ("Arrow batches", self.arrow_bytes, "granted to readers and writers"),
            (
                "Python workers",
                self.workers_bytes,
                "what is left" + ("; pages have it in jobs without Python functions" if self.spare_bytes else ""),
            ),
            ("process", self.process_bytes, PROCESS_SIZE.key),
        ]
        return "\n".join(
            f"{name:<28}{format_size(size):>10}{size / self.process_bytes:>7.0%}  {source}".rstrip()
            for name, size, source in rows
        )


def process_memory(configuration: Configuration, slots: int, machine_bytes: int) -> ProcessMemory:
    """Divide a process's memory.

    Args: configuration: options ``taskmanager.memory.*``; slots: 1 or more; machine_bytes: of the whole machine.
    Raises: ConfigurationError naming the key.
    """
    process = configuration.get(PROCESS_SIZE)
    if process is None:
        process = max(machine_bytes // 2, PROCESS_SIZE_MIN_BYTES)
    return _divided(configuration, slots, process)


def room_bytes(machine_bytes: int, held_bytes: int) -> int:
    """Return the memory of which the default process size is a half: three quarters of what a script leaves, at most.

    Args: held_bytes: what the process holds that is to run the first job, interpreter and libraries included.
    """
    left_bytes = machine_bytes - max(0, held_bytes - BASE_BYTES)
    return min(machine_bytes, left_bytes * 3 // 2)


def too_large_text(configuration: Configuration, machine_bytes: int, count: int = 1) -> str | None:
    """Return a warning if processes may take more memory than the machine has, else None.

    ``count``: TaskManagers of this configuration on the machine.
    """
    process = configuration.get(PROCESS_SIZE)
    if process is None or process * count <= machine_bytes:
        return None
    of_each = f" for each of {count} TaskManagers" if count > 1 else ""
    return (
        f"{PROCESS_SIZE.key}: {format_size(process)}{of_each} is more than the {format_size(machine_bytes)} of this "
        f"machine or container: where it is used, the system ends the process; at most "
        f"{format_size(machine_bytes // count)} fit"
    )


def process_bytes_for(configuration: Configuration, slots: int, machine_bytes: int, workers_bytes: int) -> int:
    """Return the size of a process like this one in which Python workers may hold so many bytes.

    It is a multiple of SIZE_STEP_BYTES, and at least that of this process; 0 where the machine has less: users are not
    told to set what would end the process.
    """
    process = process_memory(configuration, slots, machine_bytes).process_bytes
    while True:
        # No budget grows faster than the process, so this is never too much.
        missing = workers_bytes - _divided(configuration, slots, process).workers_bytes
        if missing <= 0:
            return process
        process = -(-(process + missing) // SIZE_STEP_BYTES) * SIZE_STEP_BYTES
        if process > machine_bytes:
            return 0


def _divided(configuration: Configuration, slots: int, process: int) -> ProcessMemory:
    """Divide a process of that size."""
    if process < PROCESS_SIZE_MIN_BYTES:
        raise ConfigurationError(
            f"{PROCESS_SIZE.key}: {format_size(process)} is too small, at least {format_size(PROCESS_SIZE_MIN_BYTES)} "
            "are needed"
        )
    is_set = configuration.get(MANAGED_SIZE) is not None
    base = min(BASE_BYTES, process // (4 if is_set else 2))
    rest = process - base
    managed, source = _managed(configuration, rest)
    page = min(_segment_size(configuration), page_size_for(managed, slots))
    network = _network(configuration, rest, managed)
    arrow = (rest - managed - network) // 2
    if is_set:
        arrow = min(arrow, max(managed, _ARROW_BYTES + slots * _ARROW_SLOT_BYTES))
    workers = rest - managed - network - arrow
    return ProcessMemory(
        process_bytes=process,
        base_bytes=base,
        network_bytes=network,
        managed_bytes=managed,
        workers_bytes=workers,
        spare_bytes=0 if is_set else workers,
        arrow_bytes=arrow,
        page_bytes=page,
        network_segments=max(1, network // page),
        managed_source=source,
    )


def _segment_size(configuration: Configuration) -> int:
    """Return the largest size of a page that is allowed."""
    size: int = configuration.get(SEGMENT_SIZE)
    if size & (size - 1):
        raise ConfigurationError(f"{SEGMENT_SIZE.key}: {size} bytes is not a power of two; write for example 32kb")
    return size


def _network(configuration: Configuration, rest: int, managed: int) -> int:
    """Return the budget of network buffers."""
    least: int = configuration.get(NETWORK_MIN)
    most: int = configuration.get(NETWORK_MAX)
    if least > most:
        raise ConfigurationError(
            f"{NETWORK_MIN.key}: {format_size(least)} is more than {NETWORK_MAX.key}: {format_size(most)}"
        )
    wanted = max(int(rest * _fraction(configuration, NETWORK_FRACTION)), least)
    return min(wanted, most, (rest - managed) // 2)


def _managed(configuration: Configuration, rest: int) -> tuple[int, str]:
    """Return the budget of pages and where it comes from."""
    managed = configuration.get(MANAGED_SIZE)
    if managed is None:
        fraction = _fraction(configuration, MANAGED_FRACTION)
        managed, source = int(rest * fraction), f"{MANAGED_FRACTION.key}: {fraction:g}"
    else:
        source = f"{MANAGED_SIZE.key}: {format_size(managed)}"
    if managed > rest:
        raise ConfigurationError(
            f"{source} does not fit into {PROCESS_SIZE.key}: {format_size(rest)} are there for everything but the "
            "interpreter; raise the process size or lower the managed size"
        )
    if managed < _MANAGED_MIN_BYTES:
        raise ConfigurationError(f"{source} is too small: an operator needs {format_size(_MANAGED_MIN_BYTES)}")
    return managed, source


def _fraction(configuration: Configuration, option: ConfigOption) -> float:
    fraction: float = configuration.get(option)
    if not 0.0 <= fraction < 1.0:
        raise ConfigurationError(f"{option.key}: {fraction} is not a fraction; write a number from 0 to below 1")
    return fraction
