"""TaskExecutors as people see them: the list of those that are registered, and how one is emptied and ended.

    REST ── DrainTaskExecutor ──► ResourceManager ── the same ──► TaskExecutor     no slot of it is assigned any more
                                        └── TaskExecutorDraining ──► JobMaster     no task begins there any more

A TaskExecutor that drains says so whenever it registers, so the next leader knows it as well. Pure data.

Held by: tests/resourcemanager/test_resource_manager.py
"""

from __future__ import annotations

import msgspec

from engine.ids import ResourceId
from engine.rpc.program import Program
from engine.rpc.request import Acknowledge, Request


class TaskExecutorHardware(msgspec.Struct, frozen=True):
    """The machine and memory of a TaskExecutor; bytes."""

    host: str = ""
    process_id: int = 0
    cpu_cores: int = 0
    physical_memory: int = 0
    #: memory of all slots together, in pages of ``page_bytes``
    managed_memory: int = 0
    network_memory: int = 0
    page_bytes: int = 0
    #: additional bytes of pages for jobs without Python functions
    spare_memory: int = 0


class TaskExecutorOverview(msgspec.Struct, frozen=True):
    """A TaskExecutor that is registered. ``seen_ms``: when it was last heard of, in ms since 1970."""

    resource_id: ResourceId
    address: str
    data_address: str
    slot_count: int
    free_slot_count: int
    seen_ms: int
    hardware: TaskExecutorHardware
    program: Program = Program()
    is_draining: bool = False


class TaskExecutorList(msgspec.Struct, frozen=True):
    """All TaskExecutors that are registered. ``left``: the last ones that have signed off at this leader."""

    task_executors: tuple[TaskExecutorOverview, ...]
    left: tuple[ResourceId, ...] = ()


class ListTaskExecutors(Request[TaskExecutorList], frozen=True):
    """Ask which TaskExecutors are registered."""


class DrainTaskExecutor(Request[Acknowledge], frozen=True):
    """A TaskExecutor takes no more slots, and ends its process once no task and no result of a job is left on it.

    With a limit it ends then in any case: tasks that still run, and results that are still to be read, are made again
    on others. Of several limits the last one counts; None changes none.
    """

    resource_id: ResourceId
    reason: str
    limit_s: float | None = None


class TaskExecutorDraining(Request[Acknowledge], frozen=True):
    """Tell a JobMaster that no more tasks are to begin on a TaskExecutor."""

    resource_id: ResourceId


TASK_EXECUTOR_TYPES: tuple[type[msgspec.Struct], ...] = (
    DrainTaskExecutor,
    ListTaskExecutors,
    TaskExecutorDraining,
    TaskExecutorList,
)
