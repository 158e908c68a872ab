"""TaskWait: what a task that makes no progress waits for, as its TaskExecutor sees it.

    INPUT   nothing to read of ``partitions``, which are not read to their end
    ROOM    its output is full: ``subpartitions`` of its partition are not read as fast as they are written
    TASK    something that another task of the process does first, told in ``text``

Plain data. The JobMaster knows the names of the tasks at the other end (``engine.jobmaster.stall_watch``).

Held by: tests/operators/test_task_waits.py
Held by: tests/jobmaster/test_stall_watch.py
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from engine.ids import ResultPartitionId

#: limit of partitions and subpartitions that are named
NAMED_MAX = 3


class WaitKind(StrEnum):
    """The kinds of waits of a task."""

    INPUT = "INPUT"
    ROOM = "ROOM"
    TASK = "TASK"


class TaskWait(msgspec.Struct, frozen=True):
    """One wait. ``operator``: of its chain, the one that waits."""

    kind: WaitKind
    operator: str
    partitions: tuple[ResultPartitionId, ...] = ()
    #: subpartition of each partition (INPUT) that is read, or of one partition (ROOM) that are full
    subpartitions: tuple[int, ...] = ()
    #: number of further waits of either kind
    more: int = 0
    text: str = ""
