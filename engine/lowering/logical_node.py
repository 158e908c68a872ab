"""LogicalNode: one operator of a program under construction; and how a Plan is made from those a job needs.

    DataSet ──► LogicalNode ──inputs──► LogicalNode ...          build_plan(sinks) ──► Plan
                    └── said: operator, inputs ──► ...           said_plan(roots) ──► Plan as users said it

Nodes are immutable and know only their inputs, so a plan holds just what its sinks reach, each node once, however
many data sets were built beside it. A node that was lowered remembers what it is the lowered form of: that operator
stands for the node and for those below it, down to the inputs of what was said.

Held by: tests/api/test_data_set.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from engine.errors import PlanError
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.plan import Operator, Plan, PlanNode, SaidForm
from engine.graph.plan_schema import PlanSchema
from engine.lowering.job_moment import at_one_moment


class CachedRows:
    """The rows of a node that a job has cached (``cached_rows.py``).

    ``compute``: what makes the source of rows that one job does not make, in a folder (``recursion.py``).
    """

    def __init__(self, compute: Callable[[Path], LogicalNode] | None = None) -> None:
        self.source: LogicalNode | None = None
        self.compute = compute


class Said(msgspec.Struct, frozen=True, eq=False):
    """An operator as a user said it, and its inputs."""

    operator: Operator
    inputs: tuple[LogicalNode, ...]


class LogicalNode(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """An operator, its inputs, and the schema of what it makes."""

    operator: Operator
    inputs: tuple[LogicalNode, ...]
    schema: pa.Schema
    name: str = ""
    parallelism: int | None = None
    #: cache of its rows, which all jobs share
    cached: CachedRows | None = None
    #: operator of which it is the lowered form; None: it is as the user said it
    said: Said | None = None


def _inputs(node: LogicalNode) -> tuple[LogicalNode, ...]:
    return node.inputs


def _said_inputs(node: LogicalNode) -> tuple[LogicalNode, ...]:
    return node.inputs if node.said is None else node.said.inputs


def _said_operator(node: LogicalNode) -> Operator:
    return node.operator if node.said is None else node.said.operator


def reachable(
    roots: Sequence[LogicalNode], inputs_of: Callable[[LogicalNode], tuple[LogicalNode, ...]] = _inputs
) -> Iterator[LogicalNode]:
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
            stack += [(source, False) for source in reversed(inputs_of(node))]


def build_plan(
    sinks: Sequence[LogicalNode],
    name: str,
    prepare: Callable[[LogicalNode], Operator] | None = None,
    *,
    has_said: bool = False,
) -> Plan:
    """Return the plan of some sinks; ``prepare`` gives the operator of a node where it is not the node's own.

    has_said: lowered nodes say which operator they are the form of.
    """
    if not sinks:
        raise PlanError("there is nothing to execute: call write_csv, write_parquet or another write_* first")
    return _plan(sinks, name, prepare or _operator, _inputs, has_said=has_said)


def said_plan(roots: Sequence[LogicalNode], name: str = "") -> Plan:
    """Return the plan of some nodes as users said it."""
    return _plan(roots, name, _said_operator, _said_inputs)


def _operator(node: LogicalNode) -> Operator:
    return node.operator


def _plan(
    roots: Sequence[LogicalNode],
    name: str,
    operator_of: Callable[[LogicalNode], Operator],
    inputs_of: Callable[[LogicalNode], tuple[LogicalNode, ...]],
    *,
    has_said: bool = False,
) -> Plan:
    nodes: list[PlanNode] = []
    ids: dict[int, int] = {}
    # many operators return their input's columns
    schemas: dict[int, PlanSchema] = {}
    for node in reachable(roots, inputs_of):
        ids[id(node)] = len(nodes)
        if id(node.schema) not in schemas:
            schemas[id(node.schema)] = to_plan_schema(node.schema)
        nodes.append(
            PlanNode(
                id=len(nodes),
                operator=operator_of(node),
                inputs=tuple(ids[id(source)] for source in inputs_of(node)),
                schema=schemas[id(node.schema)],
                name=node.name,
                parallelism=node.parallelism,
                said=_said_form(node, ids) if has_said else None,
            )
        )
    return at_one_moment(Plan(tuple(nodes), tuple(ids[id(root)] for root in roots), name))


def _said_form(node: LogicalNode, ids: Mapping[int, int]) -> SaidForm | None:
    """Return the said form of a node, if its inputs are in the plan."""
    if node.said is None or any(id(source) not in ids for source in node.said.inputs):
        return None
    return SaidForm(node.said.operator, tuple(ids[id(source)] for source in node.said.inputs))
