"""SpillIdentity: whose a spilled block is.

Every block carries it in its header (``block_format``), and a reader refuses blocks of any other owner.

Held by: tests/iomanager/test_spill_damage.py
"""

from __future__ import annotations

import msgspec


class SpillIdentity(msgspec.Struct, frozen=True):
    """One attempt of one subtask of one job."""

    #: 32 hex digits
    job_id: str
    #: 0-based position of the vertex in its JobGraph
    vertex_index: int
    #: 0-based
    subtask_index: int
    #: 0-based
    attempt_number: int

    def __str__(self) -> str:
        return f"{self.job_id[:8]}-v{self.vertex_index}-{self.subtask_index}-{self.attempt_number}"
