"""profile_of(): JobDetails as a JobProfile.

    what was expected (PlannedStep) and what was done (OperatorCounters) meet by (node_id, name)

    an attempt    ready ──pause──► created ──slot──► scheduled ──► deployed ──► running ──────────► end
                  when its stored inputs were finished, or the attempt before it had failed

Held by: tests/profile/test_job_profile.py
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from engine.config.secret_keys import shown_settings
from engine.gateways.job_details import AttemptDetails, InputDetails, JobDetails, VertexDetails
from engine.gateways.job_queue import waiting_text
from engine.graph.deployment import OperatorCounters, failure_text, operator_totals, store_totals
from engine.graph.planned_step import PlannedStep
from engine.graph.run_time_decision import RunTimeDecision
from engine.profile.causes import with_causes
from engine.profile.job_profile import (
    AttemptProfile,
    DecisionProfile,
    EdgeProfile,
    FailureProfile,
    JobProfile,
    OperatorProfile,
    StoreProfile,
    VertexProfile,
)
from engine.profile.spreads import with_spreads

_ENDED = frozenset({"FINISHED", "FAILED", "CANCELED", "SUSPENDED"})
_US = 1000
_SEPARATOR = ", "

Planned = Mapping[tuple[int, str], PlannedStep]


def profile_of(job: JobDetails, now_ms: int) -> JobProfile:
    """Return the profile of a job that runs, or has ended."""
    planned = {(step.node_id, step.name): step for step in job.planned}
    managers = _task_managers(job)
    moments = _Moments(job, now_ms, {name: place for place, name in enumerate(managers)})
    profile = JobProfile(
        job.job_id.value,
        job.name,
        job.status,
        job.start_ms,
        moments.duration_ms,
        has_ended=job.status in _ENDED,
        waiting="" if job.waiting is None else waiting_text(job.waiting),
        vertices=tuple(with_spreads(_vertex(vertex, moments, planned), moments.duration_ms) for vertex in job.vertices),
        task_managers=tuple(managers),
        decisions=tuple(_decision(each) for each in job.decisions),
        failures=_failures(job, moments),
        stores=_stores(job),
        memory=tuple(msgspec.structs.replace(each, time_ms=moments.since_start(each.time_ms)) for each in job.memory),
        counters=_counted(job),
        settings=shown_settings(job.configuration),
    )
    return with_causes(profile)


class _Moments:
    """The times of a job, those of its vertices by id, and the positions of TaskManagers by their ids."""

    def __init__(self, job: JobDetails, now_ms: int, managers: Mapping[str, int]) -> None:
        self.start_ms = job.start_ms
        self.duration_ms = max(0, (job.end_ms if job.end_ms >= 0 else now_ms) - job.start_ms)
        self.managers = managers
        self.positions = {vertex.id: position for position, vertex in enumerate(job.vertices)}
        self.vertices = {vertex.id: vertex for vertex in job.vertices}
        self._ends = {
            vertex.id: sorted(each.end_ms for each in (*vertex.subtasks, *vertex.prior)) for vertex in job.vertices
        }
        self._failures = sorted(each.time_ms for each in job.failures)

    def since_start(self, time_ms: int) -> int:
        """Return a time since the job began; -1 when there is none."""
        return -1 if time_ms < 0 else max(0, time_ms - self.start_ms)

    def ready_ms(self, vertex: VertexDetails, attempt: AttemptDetails, begun_ms: int) -> int:
        """Return the time since 1970 at which an attempt could have begun; ``begun_ms``: end of the one before it.

        What is known are the last end of a task that it reads, and the last failure that made it necessary, before it
        was given a slot.
        """
        scheduled_ms = attempt.timestamps_ms.get("SCHEDULED", self.start_ms + self.duration_ms)
        sources = [self._ends[each.vertex] for each in vertex.inputs if _is_stored(each) and each.vertex in self._ends]
        known = [*sources, self._failures] if attempt.attempt else sources
        last = (times[place - 1] for times in known if (place := bisect_right(times, scheduled_ms)))
        return max(self.start_ms, min(scheduled_ms, max(begun_ms, *last, -1)))


def _is_stored(read: InputDetails) -> bool:
    return read.exchange.upper().startswith("BLOCKING")


def _task_managers(job: JobDetails) -> list[str]:
    attempts = (each for vertex in job.vertices for each in (*vertex.subtasks, *vertex.prior))
    return list(dict.fromkeys(each.task_manager for each in attempts if each.task_manager))


def _vertex(vertex: VertexDetails, moments: _Moments, planned: Planned) -> VertexProfile:
    attempts = sorted((*vertex.prior, *vertex.subtasks), key=lambda each: (each.index, each.attempt))
    ends = {(each.index, each.attempt + 1): each.end_ms for each in attempts}
    functions = {key for key, step in planned.items() if step.kind == "python"}
    return VertexProfile(
        vertex.name,
        vertex.status,
        vertex.parallelism,
        moments.since_start(vertex.start_ms),
        moments.since_start(vertex.end_ms),
        tuple(_edge(each, moments, planned) for each in vertex.inputs if each.vertex in moments.positions),
        _operators(vertex, planned),
        tuple(
            _attempt(
                each,
                moments.ready_ms(vertex, each, ends.get((each.index, each.attempt), -1)),
                moments,
                functions,
            )
            for each in attempts
        ),
    )


def _edge(read: InputDetails, moments: _Moments, planned: Planned) -> EdgeProfile:
    source = moments.vertices[read.vertex]
    counters = [attempt.counters for attempt in source.subtasks]
    last = next((each.operators[-1] for each in counters if each.operators), None)
    step = None if last is None else planned.get((last.node_id, last.name))
    return EdgeProfile(
        moments.positions[read.vertex],
        read.ship_strategy,
        _is_stored(read),
        sum(each.rows_out for each in counters),
        sum(each.bytes_out for each in counters),
        -1.0 if step is None else step.rows,
        -1.0 if step is None else step.size_bytes,
    )


def _operators(vertex: VertexDetails, planned: Planned) -> tuple[OperatorProfile, ...]:
    of_subtasks = [attempt.counters.operators for attempt in vertex.subtasks if attempt.counters.operators]
    return tuple(
        _operator(total, [each[place] for each in of_subtasks if place < len(each)], planned)
        for place, total in enumerate(operator_totals(of_subtasks))
    )


def _operator(total: OperatorCounters, each: list[OperatorCounters], planned: Planned) -> OperatorProfile:
    step = planned.get((total.node_id, total.name), PlannedStep(total.node_id, total.name, ""))
    return OperatorProfile(
        total.name,
        step.kind,
        step.strategy,
        step.rows,
        step.size_bytes,
        step.origin,
        total.rows_in,
        total.rows_out,
        total.bytes_in,
        total.bytes_out,
        total.time_us / _US,
        total.function_us / _US,
        max(one.time_us for one in each) / _US,
        total.managed_bytes,
        total.managed_bytes_peak,
        total.spilled_bytes,
        max(one.spilled_raw_bytes for one in each),
        total.pruned_groups,
        total.filtered_rows,
        step.function,
        step.file,
        step.line,
        step.keys,
        step.heavy,
        step.spread,
        step.files,
        step.file_bytes,
        step.takes_batches,
        max(one.opening_us for one in each) / _US,
    )


def _attempt(
    attempt: AttemptDetails, ready_ms: int, moments: _Moments, functions: set[tuple[int, str]]
) -> AttemptProfile:
    reached, counters = attempt.timestamps_ms, attempt.counters
    deployed_ms = reached.get("DEPLOYING", -1)
    running_ms = reached.get("RUNNING", reached.get("INITIALIZING", deployed_ms))
    calls = [each for each in counters.operators if (each.node_id, each.name) in functions or each.function_us]
    return AttemptProfile(
        attempt.index,
        attempt.state,
        attempt.attempt,
        moments.managers.get(attempt.task_manager, -1),
        moments.since_start(ready_ms),
        moments.since_start(reached.get("SCHEDULED", -1)),
        moments.since_start(deployed_ms),
        moments.since_start(running_ms),
        moments.since_start(attempt.end_ms),
        counters.rows_in,
        counters.rows_out,
        counters.bytes_in,
        counters.bytes_out,
        counters.spilled_bytes,
        counters.stored_bytes,
        counters.managed_bytes_peak,
        counters.arrow_bytes_peak,
        counters.worker_bytes_peak,
        counters.network_buffers_peak,
        counters.idle_ms,
        counters.back_pressured_ms,
        sum(max(each.time_us, each.function_us) for each in calls) // _US,
        counters.cpu_us // _US,
        counters.runnable_us // _US,
        sum(requests for requests, _, _ in counters.stores.values()),
        counters.bad_rows,
        "" if attempt.failure is None else f"{attempt.failure.type_name}: {attempt.failure.message}",
        moments.since_start(reached.get("CREATED", -1)) if attempt.attempt else -1,
    )


def _decision(decision: RunTimeDecision) -> DecisionProfile:
    return DecisionProfile(
        decision.kind,
        decision.text,
        decision.planned,
        decision.became,
        decision.reason,
        decision.expected_bytes,
        decision.real_bytes,
    )


def _failures(job: JobDetails, moments: _Moments) -> tuple[FailureProfile, ...]:
    # Tasks of a job that is cancelled may fail while they end; that is not worth telling.
    cancelled_ms = job.timestamps_ms.get("CANCELLING", -1)
    return tuple(
        FailureProfile(
            moments.since_start(each.time_ms),
            each.failure.type_name,
            each.failure.message,
            each.failure.task,
            each.failure.task_manager,
            failure_text(each.failure),
        )
        for each in job.failures
        if cancelled_ms < 0 or each.time_ms < cancelled_ms
    )


def _stores(job: JobDetails) -> tuple[StoreProfile, ...]:
    tasks = (attempt.counters.stores for vertex in job.vertices for attempt in vertex.subtasks)
    return tuple(StoreProfile(name, *counts) for name, counts in sorted(store_totals([job.stores, *tasks]).items()))


def _counted(job: JobDetails) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for vertex in job.vertices:
        totals.update(_sums(attempt.counters.functions for attempt in vertex.subtasks))
    return {name: totals[name] for name in sorted(totals)}


def _sums(counted: Iterable[Mapping[str, int]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for each in counted:
        totals.update(each)
    return totals
