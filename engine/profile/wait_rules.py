"""Rules that find a cause in what a job waited for: slots, processors, disks, stores, attempts that were made again.

And why it failed. Each takes a profile and yields findings, with the time that each explains.

Held by: tests/profile/test_causes.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.profile.finding import LOST_MIN_MS, Finding, name_of, of_job, rows_in_short
from engine.profile.job_profile import AttemptProfile, FailureProfile, JobProfile, VertexProfile
from engine.profile.time_parts import OUTSIDE, pause_ms
from engine.shown_quantities import count_text, duration_text
from engine.shown_sizes import size_text

_CHARACTERS = 200
#: part of the wait for a second turn of slots that more slots would have saved, with as many processors as there are
_OF_TURNS = 0.6
#: milliseconds that slots which are free may need to be found and taken
_SLOTS_FOUND_MS = 1000
Span = tuple[int, int]


def failure(job: JobProfile) -> Iterator[Finding]:
    """Find the failure of a job that failed."""
    if job.state in ("FAILED", "FAILING") and job.failures:
        first = job.failures[0]
        where = f" in {first.task}" if first.task else ""
        yield Finding(f"failed{where}: {_told(first)}", _whole_ms(job))


def cancellation(job: JobProfile) -> Iterator[Finding]:
    """Find that a job was cancelled, and what it had done until then."""
    if job.state in ("CANCELED", "CANCELLING"):
        current = [each for vertex in job.vertices for each in vertex.current]
        finished = sum(each.state == "FINISHED" for each in current)
        done = f"{count_text(finished)} of {count_text(len(current))} subtasks had finished"
        going = "cancelled" if job.has_ended else "is being cancelled"
        text = f"{going} after {duration_text(job.duration_ms)}: {done}"
        yield Finding(text, _whole_ms(job), advice="It has no result, and its outputs are as they were before.")


def _whole_ms(job: JobProfile) -> int:
    """Return the time that the end of a job explains: all of it, however short the job was."""
    return max(job.duration_ms, LOST_MIN_MS) + 1


def _told(failed: FailureProfile) -> str:
    text = f"{failed.type_name}: {failed.message}".partition("\n")[0]
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…"


def restarts(job: JobProfile) -> Iterator[Finding]:
    """Find attempts that failed and were made again."""
    prior = [each for vertex in job.vertices for each in _prior(vertex)]
    if not prior:
        return
    lost_ms = max(_begun_again_after_ms(vertex, job) for vertex in job.vertices)
    failed = [each for each in job.failures if each.task_manager or each.task]
    cause = failed[-1] if failed else job.failures[-1] if job.failures else None
    managers = {each.task_manager for each in prior if each.task_manager >= 0}
    again = f"{len(prior)} attempt{'' if len(prior) == 1 else 's'} of tasks had to be made again"
    what = f"{again} after {_told(cause)}" if cause is not None else again
    if cause is not None and is_lost_process(cause):
        named = cause.task_manager or next((job.task_managers[each] for each in sorted(managers)), "")
        what = f"TaskManager {named[:8]} was lost: {again}"
    paused_ms = length(
        (each.ready_ms, each.ready_ms + pause_ms(each)) for vertex in job.vertices for each in vertex.attempts
    )
    pauses = f", {duration_text(paused_ms)} of it pauses of the restart strategy" if paused_ms >= LOST_MIN_MS else ""
    advice = "See the failures below, and that process's log."
    yield Finding(f"{what}; {of_job(lost_ms, job)}{pauses}", lost_ms, advice=advice)


def _begun_again_after_ms(vertex: VertexProfile, job: JobProfile) -> int:
    """Return the time from a subtask's first attempt to its latest: what was lost, and the wait for another slot."""
    first = {each.subtask: each.scheduled_ms for each in reversed(vertex.attempts) if each.scheduled_ms >= 0}
    latest = {each.subtask: each.scheduled_ms if each.scheduled_ms >= 0 else job.duration_ms for each in vertex.current}
    return max((latest[subtask] - first[subtask] for subtask in first), default=0)


def is_lost_process(failed: FailureProfile) -> bool:
    """Whether a failure says that a process is gone, and not what a task did."""
    return failed.type_name in ("TaskExecutorLostError", "ResourceError") or "heartbeat" in failed.message.lower()


def slots(job: JobProfile) -> Iterator[Finding]:
    """Find times in which no slot was free: nothing of the job ran, or a vertex ran in several turns."""
    if job.waiting:
        yield Finding(f"waits for slots: {job.waiting}; {of_job(job.duration_ms, job)}", job.duration_ms)
        return
    attempts = [each for vertex in job.vertices for each in vertex.attempts]
    active = [span for each in attempts if (span := _span(each, job)) is not None]
    waits = [
        (each.ready_ms + pause_ms(each), each.scheduled_ms if each.scheduled_ms >= 0 else job.duration_ms)
        for each in attempts
        if each.ready_ms >= 0 and each.end_ms != each.ready_ms
    ]
    nothing_ms = length((*active, *waits)) - length(active)
    advice = "Start more TaskManagers, or run it while fewer jobs run."
    if nothing_ms >= _SLOTS_FOUND_MS:
        yield Finding(f"waited for slots: nothing of it ran for {of_job(nothing_ms, job)}", nothing_ms, -1, advice)
    for place, vertex in enumerate(job.vertices):
        waited = vertex.parts_most.get("slot", 0)
        at_once = most_at_once(span for each in vertex.current if (span := _span(each, job)) is not None)
        if waited > nothing_ms and 0 < at_once < len(vertex.current):
            name = vertex.name if not vertex.operators else name_of(vertex.operators[0])
            text = f"waited for slots: {vertex.parallelism} subtasks of {name} had at most {at_once} at a time"
            last = f"the last one waited {of_job(waited - nothing_ms, job)}"
            yield Finding(f"{text}; {last}", (waited - nothing_ms) * _OF_TURNS, place, advice)


def busy_processors(job: JobProfile) -> Iterator[Finding]:
    """Find tasks that were ready to run and had no processor."""
    for place, vertex in enumerate(job.vertices):
        lost_ms = vertex.parts_most.get("processor", 0)
        if vertex.operators:
            longest = max(vertex.operators, key=lambda each: each.time_ms)
            text = f"{name_of(longest)} was ready and had no processor: {of_job(lost_ms, job)}"
            advice = "The machine has more to run than processors: other programs, or more slots than processors."
            yield Finding(text, lost_ms, place, advice)


def slow_source(job: JobProfile) -> Iterator[Finding]:
    """Find sources and sinks that wait for their disks."""
    for place, vertex in enumerate(job.vertices):
        lost_ms = _outside_ms(vertex)
        ends = [each for each in vertex.operators if each.kind in ("source", "sink")]
        if not ends or _requests(vertex) or any(each.spilled_bytes for each in vertex.operators):
            continue
        end = ends[0]
        sizes = end.file_bytes or end.bytes_out
        rate = size_text(sizes / max(1, vertex.parallelism) / max(0.001, lost_ms / 1000))
        text = f"{name_of(end)} waits for its disk: {of_job(lost_ms, job)} for {size_text(sizes)}"
        advice = "Read from a faster disk, read fewer columns, or run it in more subtasks so that reads overlap."
        yield Finding(f"{text}, {rate} a second and subtask", lost_ms, place, advice)


def slow_store(job: JobProfile) -> Iterator[Finding]:
    """Find tasks that wait for the answers of a store."""
    for place, vertex in enumerate(job.vertices):
        requests, lost_ms = _requests(vertex), _outside_ms(vertex)
        if not requests or not vertex.operators:
            continue
        end = next((each for each in vertex.operators if each.kind in ("source", "sink")), vertex.operators[0])
        store = max(job.stores, key=lambda each: each.requests, default=None)
        named = "its store" if store is None else store.name
        size = 0 if store is None else (store.read_bytes + store.written_bytes) / max(1, store.requests)
        text = f"{name_of(end)} waits for {named}: {of_job(lost_ms, job)}, {rows_in_short(requests)} requests"
        advice = "Run it near the store, in larger files with fewer requests, or in more subtasks."
        yield Finding(f"{text} of {size_text(size)}", lost_ms, place, advice)


def _requests(vertex: VertexProfile) -> int:
    return sum(each.requests for each in vertex.current)


def _outside_ms(vertex: VertexProfile) -> int:
    return sum(vertex.parts_most.get(name, 0) for name in OUTSIDE)


def _prior(vertex: VertexProfile) -> list[AttemptProfile]:
    latest = {(each.subtask, each.attempt) for each in vertex.current}
    return [each for each in vertex.attempts if (each.subtask, each.attempt) not in latest]


def _span(attempt: AttemptProfile, job: JobProfile) -> Span | None:
    """Return the time in which an attempt had a slot; None when it never had one."""
    if attempt.scheduled_ms < 0:
        return None
    return attempt.scheduled_ms, attempt.end_ms if attempt.end_ms >= 0 else job.duration_ms


def length(spans: Iterable[Span]) -> int:
    """Return the length of the union of spans of time."""
    total, reached = 0, -1
    for begin, end in sorted(spans):
        if end > max(begin, reached):
            total += end - max(begin, reached)
            reached = end
    return total


def most_at_once(spans: Iterable[Span]) -> int:
    """Return the largest number of spans that have a moment in common."""
    changes = sorted(change for begin, end in spans if end > begin for change in ((begin, 1), (end, -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
