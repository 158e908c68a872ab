"""Ties of a sort: in which order rows with equal keys come out, where pages of the result must fit together.

    sort ─► limit(10), sort ─► limit(10, offset=10), top ...       each page is a job of its own

    input of the sort                                   rows with equal keys
    rows of files, and what is made of each row         in the order of the files, whatever the parallelism: the sort is
                                                        stable, and its subtasks are read one after the other
    a sort whose own ties are settled                   in its order
    groups, where the keys are all keys of theirs       there are none
    anything else: behind an exchange, a join, a group  by the columns that are no keys, those of floats last: rows come
                                                        in another order each time, but they are the same rows

What is equal in all columns is one and the same for a reader. Columns without an order (lists, structs, maps) do not
count. Floats come last since the last digits of a sum depend on the order of its rows.

Held by: tests/optimizer/test_input_order.py
Held by: tests/integration/test_pages_of_ties.py
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.graph.expression import ColumnRef
from engine.graph.plan import Aggregate, Explode, Filter, Project, PythonFunction, Sort, SortedAggregate, Source
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.ship_strategy import ShipStrategy
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import Candidate

#: operators that process each row by itself
_ROW_WISE: Final = Project | Filter | PythonFunction | Explode


def settled(sort: Sort, schema: PlanSchema, source: Candidate) -> Sort:
    """Return a sort of an input whose ties have an order that follows from the input alone."""
    if follows_from_files(source) or _are_unique(sort, source):
        return sort
    return msgspec.structs.replace(sort, ties=other_keys(sort, schema))


def other_keys(sort: Sort, schema: PlanSchema) -> tuple[SortKey, ...]:
    """Return the columns that have an order and are no keys of a sort, as keys behind its own."""
    keys = {key.column for key in sort.keys}
    others = [column for column in schema.columns if column.is_key_type and column.name not in keys]
    return tuple(SortKey(column.name) for column in sorted(others, key=_is_inexact))


def _is_inexact(column: ColumnInfo) -> bool:
    return column.type_text in ("halffloat", "float", "double")


def lies_as_in_files(candidate: Candidate) -> bool:
    """Whether the subtasks have the rows of a source's files, one after the other, and what was made of each row."""
    operator = _below(candidate).node.operator
    # Subtasks of a source read runs of its splits, one after the other.
    return isinstance(operator, Source) and not operator.is_replicated


def follows_from_files(candidate: Candidate) -> bool:
    """Whether the order of the rows, one subtask after the other, is the same in every run."""
    below = _below(candidate)
    return lies_as_in_files(below) or (isinstance(below.node.operator, Sort) and below.node.operator.has_settled_ties)


def _below(candidate: Candidate) -> Candidate:
    """Return the candidate below the row-wise operators that keep rows in their subtask."""
    while isinstance(candidate.node.operator, _ROW_WISE):
        (one, *_) = candidate.inputs  # behind it: broadcast data sets
        if one.shipping.strategy is not ShipStrategy.FORWARD:
            break
        candidate = one.candidate
    return candidate


def _are_unique(sort: Sort, source: Candidate) -> bool:
    """Whether no two rows are equal in the keys of a sort: groups, by all of their keys."""
    names = {key.column for key in sort.keys}
    while isinstance(source.node.operator, Project | Filter):
        if isinstance(source.node.operator, Project):
            computed = {each.name: each.expression for each in source.node.operator.expressions}
            names = {one.name for name in names if isinstance(one := computed[name], ColumnRef)}
        source = source.inputs[0].candidate
    operator = source.node.operator
    return isinstance(operator, Aggregate | SortedAggregate) and set(operator.keys) <= names
