"""JobLimits: what a job may take at most, and the failure of one that takes more. A part of ``JobState``.

    begin() ─► a timer for the wall time ... exceeded() ─► failure that ends the job: limit, value and option

    wall time      since the first leader began it           slots    of its largest stage that waits for slots
    memory         of the tasks that run                     disk     that all current attempts have written
    result         files of rows for its client, when their tasks have ended

Memory, disk and result of all running jobs of a user have limits, too (``user_use``). The rows of ``LIMITS`` say how
each is measured. Tasks report five times a second, so a job may take more than it may for a moment. Pure.

Held by: tests/jobmaster/test_job_limits.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from engine.config.config_option import ConfigOption
from engine.config.durations import duration_text
from engine.config.limit_options import (
    DISK_LIMIT,
    MEMORY_LIMIT,
    RESULT_LIMIT,
    SLOTS_LIMIT,
    USER_DISK_LIMIT,
    USER_MEMORY_LIMIT,
    USER_RESULT_LIMIT,
    USER_SLOTS_LIMIT,
    WALL_TIME_LIMIT,
)
from engine.config.loader import Configuration, configuration_from_texts
from engine.config.sizes import format_size
from engine.errors import LimitExceededError
from engine.gateways.failure_info import failure_info
from engine.graph.deployment import FailureInfo
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import SinkOperator
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_instruction import Timer
from engine.jobmaster.job_timers import JobTimers
from engine.jobmaster.user_use import UserUse

#: seconds between two looks at the counters of all tasks
_LOOK_S: Final = 0.2
#: formats of rows that a client takes as a whole
_RETURNED: Final = frozenset({"arrow", "handed"})


class LimitRow(NamedTuple):
    """A limit: its option, how it is measured in the option's unit, and what is said of a value."""

    option: ConfigOption
    measure: Callable[[JobFacts], int]
    text: Callable[[int], str]
    #: sentence with {value} and {limit}
    sentence: str
    #: True if all tasks are looked at
    is_dear: bool = False
    #: True if the values of all running jobs of the user are added
    is_summed: bool = False


def _wall_ms(facts: JobFacts) -> int:
    return facts.clock.wall_ms() - facts.start_ms


def _slots(facts: JobFacts) -> int:
    return max((region.slot_count for region in facts.scheduler.waiting), default=0)


def _memory_bytes(facts: JobFacts) -> int:
    running = (each.current.counters for each in facts.graph if each.current.state is ExecutionState.RUNNING)
    return sum(counters.managed_bytes_peak + counters.worker_bytes_peak for counters in running)


def _disk_bytes(facts: JobFacts) -> int:
    return sum(each.current.counters.spilled_bytes + each.current.counters.stored_bytes for each in facts.graph)


def _result_bytes(facts: JobFacts) -> int:
    total = 0
    for vertex in facts.graph.vertices:
        last = vertex.job_vertex.chain[-1].operator
        if isinstance(last, SinkOperator) and last.spec.format in _RETURNED:
            total += sum(file.size_bytes for subtask in vertex.subtasks for file in subtask.current.staged_files)
    return total


def _texts(row: LimitRow, value: int, limit: int) -> tuple[str, str]:
    """Return a value and its limit as texts; sizes that round to the same one are told in bytes."""
    texts = row.text(value), row.text(limit)
    return (f"{value:,} B", f"{limit:,} B") if row.text is format_size and texts[0] == texts[1] else texts


def _time_text(value_ms: int) -> str:
    return duration_text(value_ms / 1000)


LIMITS: Final = (
    LimitRow(WALL_TIME_LIMIT, _wall_ms, _time_text, "the job has run for {value}; its limit is {limit}"),
    LimitRow(SLOTS_LIMIT, _slots, str, "a stage of the job needs {value} slots at one time; its limit is {limit}"),
    LimitRow(USER_SLOTS_LIMIT, _slots, str, "a stage of the job needs {value} slots; its user's limit is {limit}"),
    LimitRow(MEMORY_LIMIT, _memory_bytes, format_size, "its tasks use {value} of memory; the limit is {limit}", True),
    LimitRow(DISK_LIMIT, _disk_bytes, format_size, "the job has written {value} to disks; its limit is {limit}", True),
    LimitRow(RESULT_LIMIT, _result_bytes, format_size, "the job's result has {value}; its limit is {limit}", True),
    LimitRow(
        USER_MEMORY_LIMIT, _memory_bytes, format_size, "{user}'s jobs use {value} of memory; the limit is {limit}",
        True, True,
    ),
    LimitRow(
        USER_DISK_LIMIT, _disk_bytes, format_size, "{user}'s jobs have written {value} to disks; the limit is {limit}",
        True, True,
    ),
    LimitRow(
        USER_RESULT_LIMIT, _result_bytes, format_size,
        "the results of {user}'s jobs have {value}; the limit is {limit}", True, True,
    ),
)  # fmt: skip
#: keys that a job may have limits of its own for
_JOB_KEYS: Final = frozenset(row.option.key for row in LIMITS if not row.option.key.startswith("user."))


def limits_of(configuration: Configuration, job_graph: JobGraph) -> dict[str, int]:
    """Return the limits of a job by key: the cluster's, or the job's own where that is less."""
    return limits_beside(limits_of_cluster(configuration), job_graph)


def limits_of_cluster(configuration: Configuration) -> dict[str, int]:
    """Return the limits of a configuration by key, each that there is."""
    found = {row.option.key: configuration.get(row.option) for row in LIMITS}
    return {key: value for key, value in found.items() if value}


def limits_beside(found: Mapping[str, int], job_graph: JobGraph) -> dict[str, int]:
    """Return the limits of a job by key, those of the cluster being known."""
    own = configuration_from_texts({key: text for key, text in job_graph.configuration.items() if key in _JOB_KEYS})
    limits = {key: value for key, value in found.items() if job_graph.user or key in _JOB_KEYS}
    for row in LIMITS if own.as_texts() else ():
        value = own.get(row.option) if row.option.key in _JOB_KEYS else 0
        if value:
            limits[row.option.key] = min(value, limits.get(row.option.key, value))
    return limits


class JobLimits:
    """Limits of one job, by key. ``use``: what the jobs of its user take together."""

    def __init__(self, facts: JobFacts, timers: JobTimers, limits: dict[str, int], use: UserUse) -> None:
        self._facts = facts
        self._use = use
        self._timers = timers
        self._limits = limits
        self._rows = [row for row in LIMITS if row.option.key in limits]
        self._looked_s = float("-inf")

    @property
    def slots_max(self) -> int:
        """Slots that the job may have at one time; 0: any number."""
        return self._limits.get(SLOTS_LIMIT.key, 0)

    def begin(self) -> None:
        """Count the time that is left."""
        limit_ms = self._limits.get(WALL_TIME_LIMIT.key)
        if limit_ms is not None:
            left_ms = max(1, limit_ms - _wall_ms(self._facts))
            self._timers.watch(Timer.WALL_TIME, left_ms / 1000, is_wanted=True)

    def exceeded(self) -> FailureInfo | None:
        """Return the failure of a job that takes more than it may."""
        if not self._rows:
            return None
        facts, now_s = self._facts, self._facts.clock.monotonic_s()
        is_look = facts.graph.is_finished or now_s - self._looked_s >= _LOOK_S
        if is_look:
            self._looked_s = now_s
        for row in self._rows:
            if row.is_dear and not is_look:
                continue
            value, limit = self._value(row), self._limits[row.option.key]
            is_over = value >= limit if row.option is WALL_TIME_LIMIT else value > limit
            if is_over:
                user = facts.graph.job_graph.user
                value_text, limit_text = _texts(row, value, limit)
                said = row.sentence.format(value=value_text, limit=limit_text, user=user)
                return failure_info(LimitExceededError(f"{said} ({row.option.key})"))
        return None

    def _value(self, row: LimitRow) -> int:
        job, value = self._facts.graph.job_graph, row.measure(self._facts)
        if not row.is_summed:
            return value
        return self._use.sum_for(job.job_id, self._facts.start_ms, job.user, row.option.key, value)

    def end(self) -> None:
        """Count no more for the job's user."""
        self._use.leave(self._facts.graph.job_graph.job_id, self._facts.graph.job_graph.user)
