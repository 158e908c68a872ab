"""AggregateSpec: what one hash aggregate is to do, fixed before it begins.

    phase     input    output     table full
    partial   rows     states     give out all groups, begin anew (a group may come out twice)
    combine   states   states     likewise
    final     states   results    write partitions as states
    single    rows     results    write partitions as states

Held by: tests/aggregate/test_hash_aggregate.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.graph.expression import AggregateCall

PHASES = ("partial", "combine", "final", "single")
#: phases that may return a group twice
PARTIAL_PHASES = ("partial", "combine")
#: phases that take states
MERGING_PHASES = ("combine", "final")

#: groups at which a table counts as full, with force_spill
FORCED_GROUPS = 16
#: levels of recursion before the table is frozen
LEVEL_MAX = 6
#: partial: more new groups than this share of the rows means that grouping does not pay
PASS_RATIO = 0.8
#: ratio for states that are sorted next, which costs more for each row than grouping
PASS_RATIO_BEFORE_SORT = 0.95


class AggregateSpec(msgspec.Struct, frozen=True):
    """Args: input_schema, output_schema: as ``functions`` says for the phase; level_max: for tests; the rest: above.

    Raises: ValueError: no such phase.
    """

    phase: str
    input_schema: pa.Schema
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    output_schema: pa.Schema
    force_spill: bool = False
    level_max: int = LEVEL_MAX
    pass_ratio: float = PASS_RATIO
    expects_no_fewer: bool = False
    rows_expected: int = 0

    def __post_init__(self) -> None:
        """Check the phase."""
        if self.phase not in PHASES:
            raise ValueError(f"no phase {self.phase!r} of an aggregate; there are: {', '.join(PHASES)}")
