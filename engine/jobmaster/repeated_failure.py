"""RepeatedFailure: whether it makes sense to try again what fails in the same way wherever it runs.

    failed(failure, TaskExecutor)                    with each attempt that fails
    verdict(failures, subtasks, graph, now) ─► why the job is given up, or None ─► left_s: when it would be

The same cause is one of the same type and text, numbers and identifiers aside; a full disk, or a limit of a machine, is
one with any text. It repeats when attempts in a row had it as their root, for ``give_up_s``, and in the last
ATTEMPTS_MIN of them no subtask more has finished; and it does everywhere when each TaskExecutor that the failed regions
ran on has had it. What others cause (a connection, a lost process) is no such cause: it says nothing about where it is
seen.

Pure: time is given. Source: own; Flink restarts without end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from engine.config.durations import duration_text
from engine.errors import DiskFullError, MachineLimitError
from engine.graph.deployment import FailureInfo
from engine.ids import ResourceId
from engine.jobmaster.execution_graph import ExecutionGraph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.failure_history import FailureHistory, is_consequence

ATTEMPTS_MIN: Final = 3
_CHANGING = re.compile(r"\b[0-9a-f]{8,}\b|\d+")


def _cause_of(failure: FailureInfo) -> tuple[str, str]:
    is_full = failure.type_name in (DiskFullError.__name__, MachineLimitError.__name__)
    return failure.type_name, "" if is_full else _CHANGING.sub("#", failure.message)


class RepeatedFailure:
    """Failures of one job with the same cause. Args: give_up_s: seconds that it may last; 0: unlimited."""

    def __init__(self, give_up_s: float) -> None:
        self._give_up_s = give_up_s
        #: TaskExecutors on which current attempts have failed, by cause
        self._seen: dict[tuple[str, str], set[ResourceId]] = defaultdict(set)
        self._cause: tuple[str, str] | None = None
        self._places: set[ResourceId] = set()
        #: number of failed attempts in a row, and of those since another subtask finished
        self._count = 0
        self._fruitless_count = 0
        self._first_s = 0.0
        self._finished_count = 0
        #: True if the last attempts failed alike wherever they ran
        self._is_repeated = False

    def failed(self, failure: FailureInfo, place: ResourceId) -> bool:
        """Take note of a failed attempt; return whether its cause was seen at this TaskExecutor before."""
        cause = _cause_of(failure)
        self._seen[cause].add(place)
        return cause == self._cause and place in self._places

    def verdict(
        self, failures: FailureHistory, subtasks: Iterable[ExecutionVertex], graph: ExecutionGraph, now_s: float
    ) -> FailureInfo | None:
        """Decide as before_restart, for the subtasks that are to run again; None when no failure explains them."""
        if not failures.unmended:
            return None
        used = {each.current.slot.resource_id for each in subtasks if each.current.slot is not None}
        finished_count = sum(vertex.current.state is ExecutionState.FINISHED for vertex in graph)
        return self.before_restart(failures.root, used, finished_count, now_s)

    def before_restart(
        self, root: FailureInfo, used: Collection[ResourceId], finished_count: int, now_s: float
    ) -> FailureInfo | None:
        """Count what is about to run again; return the failure that ends the job instead, or None.

        Args: root: why it runs again; used: TaskExecutors that it ran on; finished_count: of subtasks.
        """
        cause = _cause_of(root)
        if cause != self._cause:
            self._cause, self._first_s = cause, now_s
            self._count = self._fruitless_count = self._finished_count = 0
            self._places.clear()
        if finished_count > self._finished_count:
            self._fruitless_count, self._finished_count = 0, finished_count
        self._count += 1
        self._fruitless_count += 1
        self._places |= self._seen[cause]
        self._seen.clear()
        is_everywhere = bool(used) and self._places.issuperset(used)
        self._is_repeated = bool(self._give_up_s) and not is_consequence(root) and self._count > 1 and is_everywhere
        if not self._is_repeated or self._fruitless_count < ATTEMPTS_MIN or now_s - self._first_s < self._give_up_s:
            return None
        lasted = duration_text(round(now_s - self._first_s))
        where = "its TaskManager" if len(self._places) == 1 else f"all {len(self._places)} TaskManagers that it ran on"
        text = (
            f"{root.message} (given up: the same cause in {self._count} attempts within {lasted} on {where}, and "
            f"nothing was finished in the last {self._fruitless_count}; restart-strategy.give-up-after)"
        )
        return msgspec.structs.replace(root, message=text, retryable=False)

    def left_s(self, now_s: float) -> float | None:
        """Return the seconds until what repeats everywhere is given up, None when nothing does.

        Pauses go no further: they would only delay the end.
        """
        return max(0.0, self._first_s + self._give_up_s - now_s) if self._is_repeated else None
