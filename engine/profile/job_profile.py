"""JobProfile: everything about one run of a job, in one document, for people and programs.

    JobProfile ─┬─ Cause *             what the time went into, the most telling first
                ├─ VertexProfile * ─┬─ EdgeProfile *        what it reads: rows and bytes, expected and real
                │                   ├─ OperatorProfile *    its operators: sums over subtasks, and what was expected
                │                   ├─ AttemptProfile *     attempts of its subtasks, earlier ones too
                │                   └─ Spread *             least, median and largest over subtasks
                ├─ MemoryPoint *       memory of the TaskManagers, and spill, over time (``gateways.memory_use``)
                ├─ DecisionProfile *   what was decided while it ran, and why
                └─ FailureProfile *    latest first

Times are milliseconds since the job began, -1 where there is none. Fields with their default value are left out of the
JSON, and readers know what they do not find: a JobManager of another release may say less, or more.

Held by: tests/profile/test_job_profile.py
"""

from __future__ import annotations

import msgspec

from engine.gateways.memory_use import MemoryPoint

#: version of the document; it changes when a field changes its meaning
VERSION = 1


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding: a sentence, the rule that made it, and the share of the job's time that it explains."""

    kind: str
    text: str
    share: float = 0.0
    #: position of the vertex, -1: the job
    vertex: int = -1
    #: advice: steps that may help
    advice: str = ""


class Spread(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number of the subtasks of a vertex: least, median and largest, and the subtask that has the largest."""

    name: str
    least: float = 0
    median: float = 0
    most: float = 0
    subtask: int = 0
    #: True if the largest is so far from the median that it is worth a look
    is_uneven: bool = False


class AttemptProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt of one subtask."""

    subtask: int
    state: str
    attempt: int = 0
    #: position among JobProfile.task_managers
    task_manager: int = -1
    #: time at which it could have begun: what it reads was there, or the attempt before it had failed
    ready_ms: int = -1
    #: times at which it had a slot, was sent to its TaskManager, ran, ended
    scheduled_ms: int = -1
    deployed_ms: int = -1
    running_ms: int = -1
    end_ms: int = -1
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    spilled_bytes: int = 0
    stored_bytes: int = 0
    managed_bytes_peak: int = 0
    arrow_bytes_peak: int = 0
    worker_bytes_peak: int = 0
    network_buffers_peak: int = 0
    #: time that it waited for input and for room in buffers
    input_ms: int = 0
    buffers_ms: int = 0
    #: time of operators that run a user's function, the worker's too
    function_ms: int = 0
    #: time on a processor, and time ready to run without one
    cpu_ms: int = 0
    runnable_ms: int = 0
    #: requests to stores
    requests: int = 0
    bad_rows: int = 0
    failure: str = ""
    #: time at which it was made after a failure: the pause of the restart strategy was over
    created_ms: int = -1


class OperatorProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operator of a vertex: the sums over its subtasks, of peaks the largest, and what was expected of it."""

    name: str
    kind: str = ""
    strategy: str = ""
    #: expected rows and bytes of its output; -1: unknown
    expected_rows: float = -1
    expected_bytes: float = -1
    #: origin of the estimate
    origin: str = ""
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    time_ms: float = 0
    #: processor time of the workers of its function
    function_ms: float = 0
    #: most that one subtask took
    time_ms_most: float = 0
    managed_bytes: int = 0
    managed_bytes_peak: int = 0
    spilled_bytes: int = 0
    #: bytes that the subtask which spilled most has spilled, as large as they were in pages
    spilled_raw_bytes_most: int = 0
    pruned_groups: int = 0
    filtered_rows: int = 0
    #: user's function and where it is written
    function: str = ""
    file: str = ""
    line: int = 0
    #: columns by whose hash its rows come to it; heavy keys among them, with their shares; those spread over subtasks
    keys: tuple[str, ...] = ()
    heavy: tuple[tuple[str, float], ...] = ()
    spread: tuple[str, ...] = ()
    #: number and bytes of the files of a source
    files: int = 0
    file_bytes: int = 0
    #: True if its function is given whole batches, or groups, and not row by row
    takes_batches: bool = False
    #: most that opening its function took in one subtask: ``setup=`` or ``open()``
    opening_ms_most: float = 0

    @property
    def rows_found(self) -> int:
        """Rows that came out, and those that a scan dropped for joins or a top-n while the job ran.

        An estimate is of both: which rows have a partner is known at the join.
        """
        return self.rows_out + self.filtered_rows


class EdgeProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """An edge of the plan: rows that a vertex reads of another one."""

    #: position of the vertex that it reads
    source: int
    ship_strategy: str
    #: True if the result is stored before it is read
    is_stored: bool = False
    rows: int = 0
    bytes: int = 0
    expected_rows: float = -1
    expected_bytes: float = -1


class VertexProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One vertex: a chain of operators, in several subtasks."""

    name: str
    state: str
    parallelism: int
    start_ms: int = -1
    end_ms: int = -1
    inputs: tuple[EdgeProfile, ...] = ()
    operators: tuple[OperatorProfile, ...] = ()
    attempts: tuple[AttemptProfile, ...] = ()
    #: one for each number that is told; see ``spreads.py``
    spreads: tuple[Spread, ...] = ()
    #: parts of the time of all attempts, in ms (``time_parts.py``), and the most that a subtask's latest attempt has
    parts: dict[str, int] = {}
    parts_most: dict[str, int] = {}

    @property
    def current(self) -> tuple[AttemptProfile, ...]:
        """The latest attempt of each subtask."""
        latest: dict[int, AttemptProfile] = {}
        for attempt in self.attempts:
            known = latest.get(attempt.subtask)
            if known is None or attempt.attempt > known.attempt:
                latest[attempt.subtask] = attempt
        return tuple(latest.values())


class DecisionProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision made while the job ran."""

    kind: str
    text: str
    planned: str = ""
    became: str = ""
    reason: str = ""
    expected_bytes: float = -1
    real_bytes: int = 0


class FailureProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failure: when, of which task, and its text with the traceback."""

    time_ms: int
    type_name: str
    message: str = ""
    task: str = ""
    task_manager: str = ""
    text: str = ""


class StoreProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """Requests to one store, and bytes of objects."""

    name: str
    requests: int = 0
    read_bytes: int = 0
    written_bytes: int = 0


class JobProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job. ``started_at_ms``: since 1970."""

    job_id: str
    name: str
    state: str
    started_at_ms: int
    duration_ms: int
    version: int = VERSION
    has_ended: bool = False
    #: place in the queue while it waits for slots, as text
    waiting: str = ""
    causes: tuple[Cause, ...] = ()
    vertices: tuple[VertexProfile, ...] = ()
    #: ids of TaskManagers
    task_managers: tuple[str, ...] = ()
    decisions: tuple[DecisionProfile, ...] = ()
    failures: tuple[FailureProfile, ...] = ()
    stores: tuple[StoreProfile, ...] = ()
    #: memory of the TaskManagers and spilled bytes over time
    memory: tuple[MemoryPoint, ...] = ()
    #: counters of rich functions
    counters: dict[str, int] = {}
    #: settings that came with the job, without secrets
    settings: dict[str, str] = {}
