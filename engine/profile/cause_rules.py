"""Rules that find a cause in what the operators of a job did: skew, functions, spilling, estimates, files, joins.

Each takes a profile and yields findings, with the time that each explains.

Held by: tests/profile/test_causes.py
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.profile.finding import Finding, file_name, name_of, of_job, rows_in_short, times_text
from engine.profile.job_profile import JobProfile, OperatorProfile, Spread, VertexProfile
from engine.profile.spreads import spread_of
from engine.profile.time_parts import own_ms
from engine.shown_quantities import duration_text
from engine.shown_sizes import size_text

#: ratio of an estimate and what happened, either way, above which it is bad
OFF_BY = 10.0
#: rows below which a bad estimate does no harm
_ROWS_MIN = 10_000
_SPILLED_MIN_BYTES = 1 << 20
#: files from which on their number can be a cause, and the mean size below which it is
_FILES_MIN, _FILE_BYTES = 50, 1 << 20
#: factors for what operators keep beside rows: pointers of sorts, tables of hashes
_ROOM_OF_SORTS, _ROOM = 1.2, 1.7
#: part of a slot that an operator gets beside others, at least
_PART_OF_SLOT = 1 / 3
_MB = 1_000_000
#: part of a function's time above which its opening is what takes long; part on a processor below which it waits
_MOST, _IDLE = 0.5, 0.2
#: part of the time after a bad estimate that it explains at most: another plan may have been no better
_OF_ESTIMATE = 0.25
_JOINS = ("hash_join", "sort_merge_join", "range_join", "cross", "asof_join", "partitioned_asof")


def skew(job: JobProfile) -> Iterator[Finding]:
    """Find vertices of which one subtask has many times the rows of the others, and takes longer by that."""
    for place, vertex in enumerate(job.vertices):
        time = spread_of(vertex, "time")
        rows = max((spread_of(vertex, "rows in"), spread_of(vertex, "rows out")), key=lambda each: each.is_uneven)
        lost_ms = time.most - time.median
        if not rows.is_uneven or time.most < 1.5 * time.median or _of_subtask(vertex, rows.subtask, job) < lost_ms:
            continue
        head = next((each for each in vertex.operators if each.keys), vertex.operators[0] if vertex.operators else None)
        name = vertex.name if head is None else name_of(head)
        ratio = f"{times_text(rows.most / rows.median)} times the rows" if rows.median else "nearly all rows"
        text = f"{name}: subtask {rows.subtask + 1} of {vertex.parallelism} has {ratio}{_heavy_key(head, rows)}"
        yield Finding(f"{text}; {of_job(lost_ms, job)}", lost_ms, place, _skew_advice(head))


def _of_subtask(vertex: VertexProfile, subtask: int, job: JobProfile) -> float:
    return max((own_ms(each, job.duration_ms) for each in vertex.current if each.subtask == subtask), default=0)


def _heavy_key(operator: OperatorProfile | None, rows: Spread) -> str:
    """Return the key that makes a subtask large, where the statistics know it; "" where they do not."""
    if operator is None:
        return f" ({rows_in_short(rows.most)})"
    whole = [(key, share * operator.rows_in) for key, share in operator.heavy if key not in operator.spread]
    # A key of half of the subtask's rows, and not of far more than it has, is the one.
    named = next((key for key, count in whole if rows.most / 2 <= count <= 2 * rows.most), None)
    if named is None:
        return f" ({rows_in_short(rows.most)})"
    return f" (key {named}: {rows_in_short(rows.most)})"


def _skew_advice(operator: OperatorProfile | None) -> str:
    if operator is None or operator.kind == "source":
        return (
            "One file or split is much larger than the others: write it in several, or in a format that can be split."
        )
    if operator.kind in _JOINS:
        return "Filter out that key before the join, or join its rows apart from the others."
    return "Take one more column into the key and combine the results, or filter out that key before."


def slow_function(job: JobProfile) -> Iterator[Finding]:
    """Find users' functions, with the time that they take."""
    for place, vertex in enumerate(job.vertices):
        for operator in vertex.operators:
            if operator.kind != "python" and not operator.function_ms:
                continue
            lost_ms = max(operator.time_ms_most, operator.function_ms / max(1, vertex.parallelism))
            share = min(1.0, lost_ms / max(1, job.duration_ms))
            where = f" ({file_name(operator.file)}, line {operator.line})" if operator.line else ""
            calls = f"{rows_in_short(operator.rows_in)} rows"
            text = f"{operator.function or name_of(operator)} takes {share:.0%} of the time{where}: {calls}"
            yield Finding(f"{text}; {of_job(lost_ms, job)}", lost_ms, place, _function_advice(operator))


def _function_advice(operator: OperatorProfile) -> str:
    if operator.opening_ms_most > _MOST * operator.time_ms_most:
        took = duration_text(round(operator.opening_ms_most))
        what = f"{took} of it is its setup= or open(), once in each subtask"
        return f"{what}: make that faster, or run it in fewer subtasks."
    if 0 < operator.function_ms < _IDLE * operator.time_ms:
        return (
            "It waits more than it computes: an async function of map or flat_map has several calls at once "
            "(concurrency=). More subtasks wait side by side, too."
        )
    if operator.takes_batches:
        return "It is given whole batches already: write it as expressions, or run it in more subtasks."
    return "Write it as expressions, or as a function of whole batches, or run it in more subtasks."


def spilling(job: JobProfile) -> Iterator[Finding]:
    """Find operators that spilled, and the memory that would have avoided it."""
    for place, vertex in enumerate(job.vertices):
        waited_ms = vertex.parts_most.get("spill", 0)
        for operator in vertex.operators:
            if operator.spilled_bytes < max(_SPILLED_MIN_BYTES, 0.1 * operator.bytes_in):
                continue
            times = operator.spilled_bytes / max(1, operator.bytes_in)
            lost_ms = max(waited_ms, operator.time_ms_most * min(0.7, times))
            amount = f"{times_text(times)} times its input" if times >= 1 else f"{times:.0%} of its input"
            text = (
                f"{name_of(operator)} spilled {amount} ({size_text(operator.spilled_bytes)}): "
                f"{size_text(more_memory(job, place, operator))} more memory in each slot would avoid it"
            )
            advice = "Set taskmanager.memory.process.size or .managed.size higher, or run it in more subtasks."
            yield Finding(f"{text}; about {of_job(lost_ms, job)}", lost_ms, place, advice)


def more_memory(job: JobProfile, place: int, operator: OperatorProfile) -> int:
    """Return the bytes of pages that each slot would have needed beside those that it had.

    With these what the subtask that spilled most has spilled would have stayed in its pages. Rows that were spilled
    several times are counted so often, and a slot is divided by weights that another plan may have otherwise: the
    number is larger than need be, for it is to be enough.
    """
    room = _ROOM_OF_SORTS if "sort" in operator.kind or "runs" in operator.kind else _ROOM
    part = _PART_OF_SLOT if _is_beside_others(job, place, operator) else 1.0
    return max(_MB, -(-round(operator.spilled_raw_bytes_most * room / part) // _MB) * _MB)


def _is_beside_others(job: JobProfile, place: int, operator: OperatorProfile) -> bool:
    """Whether other operators with pages run in its slot: in vertices that no stored result parts from its own."""
    together, before = {place}, 0
    while len(together) > before:
        before = len(together)
        for reader, vertex in enumerate(job.vertices):
            joined = {each.source for each in vertex.inputs if not each.is_stored}
            if reader in together or joined & together:
                together |= {reader, *joined}
    others = (each for vertex in sorted(together) for each in job.vertices[vertex].operators if each is not operator)
    return any(each.managed_bytes for each in others)


def bad_estimate(job: JobProfile) -> Iterator[Finding]:
    """Find the first operator of which the planner expected far more rows, or far fewer, than came."""
    for place, vertex in enumerate(job.vertices):
        for operator in vertex.operators if vertex.state == "FINISHED" else ():
            ratio = off_by(operator.expected_rows, operator.rows_found)
            if ratio <= OFF_BY or max(operator.expected_rows, operator.rows_found) < _ROWS_MIN:
                continue
            if any(each.kind == "limit" for each in vertex.operators) and operator.expected_rows > operator.rows_out:
                continue  # nothing more was wanted
            after_ms = sum(spread_of(each, "time").most for each in job.vertices[place:])
            origin = f" ({operator.origin})" if operator.origin else ""
            expected = f"{rows_in_short(operator.expected_rows)} rows expected{origin}"
            text = f"estimate off by {times_text(ratio)} at {name_of(operator)}: {expected}, "
            advice = "Say the size or give statistics of the source (see the guide on sources), or a hint at the join."
            yield Finding(f"{text}{rows_in_short(operator.rows_out)} came", after_ms * _OF_ESTIMATE, place, advice)
            return


def off_by(expected: float, real: float) -> float:
    """Return the ratio of an estimate and what happened, whichever is larger above; 1 where none was made."""
    if expected < 0:
        return 1.0
    high, low = max(expected, real), max(1.0, min(expected, real))
    return max(1.0, high / low)


def cross_join(job: JobProfile) -> Iterator[Finding]:
    """Find joins that have no keys: every row meets every row."""
    for place, vertex in enumerate(job.vertices):
        for operator in vertex.operators:
            if operator.kind != "cross":
                continue
            sides = [each.rows for each in vertex.inputs]
            pairs = f" ({' × '.join(rows_in_short(rows) for rows in sides)})" if len(sides) == 2 else ""
            lost_ms = max(operator.time_ms_most, spread_of(vertex, "time").most)
            said = "" if operator.name.startswith("cross join") else " is a cross join"
            text = f"{name_of(operator)}{said}: every row meets every row{pairs}, "
            advice = "Give the join a key that is equal on both sides; a condition alone is tried on every pair."
            yield Finding(
                f"{text}{rows_in_short(operator.rows_out)} rows come out; {of_job(lost_ms, job)}",
                lost_ms,
                place,
                advice,
            )


def tiny_files(job: JobProfile) -> Iterator[Finding]:
    """Find sources that read many files which are small."""
    for place, vertex in enumerate(job.vertices):
        for operator in vertex.operators:
            if operator.files < _FILES_MIN or operator.file_bytes > operator.files * _FILE_BYTES:
                continue
            lost_ms = operator.time_ms_most
            mean = size_text(operator.file_bytes / operator.files)
            text = f"{name_of(operator)} reads {operator.files:,} tiny files of {mean} each; {of_job(lost_ms, job)}"
            advice = "Write them together into files of 64 MB or more (env.optimize for tables)."
            yield Finding(text, lost_ms, place, advice)
