"""Thresholds of top-n: which sources leave out rows that cannot be among the first n.

    source ─► projections, exchanges ─► top n                the first key: a column of the source, as it was read

All rows that such a source emits go to the top-n, so it may leave out a row as soon as it has emitted n that come
strictly before it: every subtask by itself, without messages. So nothing between the two may drop rows: filters that
did not become part of the scan, joins, limits, functions. Projections must give a row the same values whatever other
rows there are.

It pays where there are more rows than are asked for, SOURCE_ROWS_MIN; at most TOP_ROWS_MAX keys are kept.

Source: DuckDB's top-n dynamic filters, DataFusion's; they go through filters, for there the top-n gives the threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from engine.formats.registry import format_of
from engine.graph.expression import ColumnRef
from engine.graph.function_table import is_deterministic
from engine.graph.operator_descriptor import ProjectOperator, SortOperator, SourceOperator
from engine.graph.runtime_filter import TopThreshold
from engine.optimizer.physical_plan import PhysicalNode

#: rows of a source below which a threshold does not pay
SOURCE_ROWS_MIN: Final = 100_000
#: largest number of rows of a top-n
TOP_ROWS_MAX: Final = 1 << 14
#: prefixes of types whose order in arrays and in row groups is known
_TYPES: Final = (
    "bool",
    "int",
    "uint",
    "float",
    "double",
    "decimal128",
    "date32",
    "time",
    "string",
    "large_string",
    "binary",
    "large_binary",
)


def with_top_thresholds(nodes: Sequence[PhysicalNode]) -> tuple[PhysicalNode, ...]:
    """Return the nodes with thresholds in the sources that have one."""
    readers = Counter(channel.source for node in nodes for channel in node.inputs)
    found: dict[int, TopThreshold] = {}
    for node in nodes:
        operator = node.descriptor.operator
        if isinstance(operator, SortOperator) and operator.limit is not None and 0 < operator.limit <= TOP_ROWS_MAX:
            place = _place_of(nodes, readers, node, operator.keys[0].column)
            if place is not None and nodes[place[0]].estimates.rows >= max(SOURCE_ROWS_MIN, 2 * operator.limit):
                key = msgspec.structs.replace(operator.keys[0], column=place[1])
                found[place[0]] = TopThreshold(node.id, key, operator.limit, len(operator.keys) == 1)
    return tuple(_with_threshold(node, found.get(node.id)) for node in nodes)


def _with_threshold(node: PhysicalNode, top: TopThreshold | None) -> PhysicalNode:
    operator = node.descriptor.operator
    if top is None or not isinstance(operator, SourceOperator):
        return node
    return node.with_operator(msgspec.structs.replace(operator, top=top))


def _place_of(
    nodes: Sequence[PhysicalNode], readers: Counter[int], node: PhysicalNode, name: str
) -> tuple[int, str] | None:
    """Return the source all of whose rows, and no others, come to a node, and its column of a name."""
    while len(node.inputs) == 1 and readers[node.inputs[0].source] == 1:
        node = nodes[node.inputs[0].source]
        match node.descriptor.operator:
            case SourceOperator(spec=spec, rate_limit=None) if format_of(spec).takes_first:
                type_text = node.descriptor.output_schema.column(name).type_text
                predicate = format_of(spec).predicate(spec)
                is_repeatable = predicate is None or is_deterministic(predicate)
                return (node.id, name) if type_text.startswith(_TYPES) and is_repeatable else None
            case ProjectOperator(expressions=expressions):
                computed = next(each.expression for each in expressions if each.name == name)
                if not isinstance(computed, ColumnRef) or not node.descriptor.operator.traits.is_repeatable:
                    return None
                name = computed.name
            case _:
                return None
    return None
