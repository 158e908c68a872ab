"""PlannedStep: what the planner expected of one physical operator, kept with the job for the profile of its run.

    JobGraph.planned ── PlannedStep *     one for each physical operator, found by (node_id, name)

It says nothing that a task needs, so no task is sent it. What a run-time decision puts in the place of an operator has
none. Plain data.

Held by: tests/profile/test_job_profile.py
"""

from __future__ import annotations

import msgspec


class PlannedStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One physical operator as it was planned."""

    node_id: int
    name: str
    #: tag of its descriptor's struct: "source", "hash_join", "python"; "cross" for a join without keys
    kind: str
    strategy: str = ""
    #: expected rows and bytes of its output, -1 when unknown
    rows: float = -1.0
    size_bytes: float = -1.0
    #: origin of the estimate
    origin: str = ""
    #: function, file and line of a user's function
    function: str = ""
    file: str = ""
    line: int = 0
    #: columns by whose hash its rows come to it
    keys: tuple[str, ...] = ()
    #: heavy keys among them as text, each with its expected share of the rows
    heavy: tuple[tuple[str, float], ...] = ()
    #: heavy keys whose rows are spread over all subtasks
    spread: tuple[str, ...] = ()
    #: number and bytes of the files that a source reads
    files: int = 0
    file_bytes: int = 0
    #: True if its function is given whole batches, or groups, and not row by row
    takes_batches: bool = False
