"""LogicalNode: one operator of a program under construction; and how a Plan is made from those a job needs.

    DataSet ──► LogicalNode ──inputs──► LogicalNode ...          build_plan(sinks) ──► Plan

Nodes are immutable and know only their inputs, so a plan holds just what its sinks reach, each node once, however
many data sets were built beside it.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import pyarrow as pa

from engine.errors import PlanError
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.plan import Operator, Plan, PlanNode


class CachedRows:
    """The rows of a node that a job has cached (``cached_rows.py``)."""

    def __init__(self) -> None:
        self.source: LogicalNode | None = None


class LogicalNode(msgspec.Struct, frozen=True, eq=False):
    """An operator, its inputs, and the schema of what it makes."""

    operator: Operator
    inputs: tuple[LogicalNode, ...]
    schema: pa.Schema
    name: str = ""
    parallelism: int | None = None
    #: cache of its rows, which all jobs share
    cached: CachedRows | None = None


def reachable(roots: Sequence[LogicalNode]) -> Iterator[LogicalNode]:
    """Yield the nodes that roots need, inputs before their consumers, each once."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, has_inputs = stack.pop()
        if id(node) in seen:
            continue
        if has_inputs:
            seen.add(id(node))
            yield node
        else:
            stack.append((node, True))
            stack += [(source, False) for source in reversed(node.inputs)]


def build_plan(
    sinks: Sequence[LogicalNode], name: str, prepare: Callable[[LogicalNode], Operator] | None = None
) -> Plan:
    """Return the plan of some sinks; ``prepare`` gives the operator of a node where it is not the node's own."""
    if not sinks:
        raise PlanError("there is nothing to execute: call write_csv, write_parquet or another write_* first")
    nodes: list[PlanNode] = []
    ids: dict[int, int] = {}
    for node in reachable(sinks):
        ids[id(node)] = len(nodes)
        nodes.append(
            PlanNode(
                id=len(nodes),
                operator=prepare(node) if prepare else node.operator,
                inputs=tuple(ids[id(source)] for source in node.inputs),
                schema=to_plan_schema(node.schema),
                name=node.name,
                parallelism=node.parallelism,
            )
        )
    return Plan(tuple(nodes), tuple(ids[id(sink)] for sink in sinks), name)
