"""JoinSpec: what a join joins, on which keys, and what it gives out; made once, and the same for all that takes part.

    JoinSpec(how, left=JoinInput(schema, keys), right=JoinInput(schema, keys), output, output_schema, ...)
        ├─► HashJoin(spec, pool, space)                   ``build_is_left`` says which input is built
        └─► SortMergeJoin(spec, space, group_bytes)

What is not in it is memory: pools, spill spaces and the owner of out-of-line values are given beside it, for two
subtasks of one join have the same spec and not the same memory.

Invariants: frozen; a null-aware join is an anti join by one key without a condition; keys are columns of their input.
Held by: tests/join/test_join_spec.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.errors import SchemaError
from engine.graph.said_operators import JoinType
from engine.join.join_type import RULES, Emission, JoinRule, emission
from engine.join.pair_condition import PairCondition
from engine.join.replicated_keys import ReplicatedKeys


class JoinInput(msgspec.Struct, frozen=True):
    """One input of a join."""

    schema: pa.Schema
    #: column indexes, pairwise of equal type on both sides; none: every pair of rows is a candidate
    keys: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raise SchemaError for keys that the input does not have."""
        for column in self.keys:
            if not 0 <= column < len(self.schema):
                raise SchemaError(f"join key column {column}: the input has {len(self.schema)} columns")


class JoinSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A join, apart from its memory."""

    how: JoinType
    left: JoinInput
    right: JoinInput
    #: (side, column index) of each output column; side 0 is left, 1 right. Semi and anti: left only
    output: tuple[tuple[int, int], ...]
    output_schema: pa.Schema
    #: True if the build side of a hash join is the left input
    build_is_left: bool = False
    #: condition that pairs with equal keys must meet
    condition: PairCondition | None = None
    #: the anti join is NOT IN
    null_aware: bool = False
    #: keys whose rows of one input are copies
    replicated: ReplicatedKeys | None = None
    #: rows in memory at one time (debug.force-spill): of a hash join's build side, of one key of a sort-merge join;
    #: None: as many as fit
    row_limit: int | None = None

    def __post_init__(self) -> None:
        """Raise SchemaError for what cannot be null-aware."""
        if self.null_aware and (
            self.how is not JoinType.ANTI or len(self.left.keys) != 1 or self.condition is not None
        ):
            raise SchemaError("a null-aware join is an anti join by one key, without a condition")

    @property
    def rule(self) -> JoinRule:
        """The rule of the join type."""
        return RULES[self.how]

    @property
    def copies_are_left(self) -> bool:
        """Whether the copies, if there are any, are rows of the left input."""
        return self.replicated is not None and self.replicated.is_build == self.build_is_left

    def emission(self, *, build_is_left: bool) -> Emission:
        """Return the emission of a hash join that builds this side: a spilled pair may build the other one."""
        return emission(self.how, build_is_left)
