"""Memory that a process uses at one moment, and that of all processes of a job over its time.

Held by: tests/jobmaster/test_memory_history.py
"""

from __future__ import annotations

import msgspec

from engine.ids import ResourceId


class MemoryInUse(msgspec.Struct, frozen=True):
    """The memory of one TaskManager now, whichever jobs use it: all of the process, and what parts of it are for."""

    task_manager: ResourceId
    resident_bytes: int = 0
    managed_bytes: int = 0
    arrow_bytes: int = 0
    network_bytes: int = 0


class MemoryPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most memory that the TaskManagers of a job used together within a time that ends now, and spill so far.

    In the job's details the time is since 1970, in its profile since the job began.
    """

    time_ms: int
    resident_bytes: int = 0
    managed_bytes: int = 0
    arrow_bytes: int = 0
    network_bytes: int = 0
    #: bytes that the job has spilled until now
    spilled_bytes: int = 0
    #: resident memory of the TaskManager that has most, and how many TaskManagers there were
    largest_bytes: int = 0
    task_managers: int = 1
