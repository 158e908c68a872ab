"""Partitionings that the user asks for: rows in the task of Spark whose number is that of the subtask.

    kind                       Spark
    SHUFFLE REBALANCE          repartition(n)
    KEYGROUP                   repartition(n, keys), where a null key is an error
    RANGE                      repartitionByRange(n, keys), each task in order
    GLOBAL BROADCAST CUSTOM    a column with the number of the task ─► repartitionById ─► without the column; that of
                               CUSTOM by the user's function in a fragment, that of BROADCAST all numbers for each row
    FORWARD RESCALE            stay where they are; RESCALE with a parallelism that the user gave is REBALANCE

``n`` is the parallelism of the partitioning, else of what reads it, else that of the job, as everywhere. A function
over partitions that has a parallelism of its own gets as many tasks; of rows in order one task gets them in order.

Limits: a task's number is known to Spark 4.1 and later; before, those that need it are refused by name.
Held by: tests/dataframes/test_partitionings.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.dataframes.frame import Fragments, Frame
from engine.errors import DataError, NotYetSupportedError
from engine.graph.plan import Filter, Partition, Plan, PlanNode, Project, PythonFunction, Sort
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.partition_planning import makes_void
from engine.spark.failures import carried

_CALLS: Final = {"GLOBAL": "global_()", "BROADCAST": "broadcast()", "CUSTOM": "partition_custom()"}


class Partitionings:
    """Spreads the rows of frames in which nothing waits; ``default``: the parallelism of the job."""

    def __init__(self, plan: Plan, fragments: Fragments, default: int) -> None:
        self._plan, self._fragments, self._default = plan, fragments, default

    def spread(self, frame: Frame, node: PlanNode, operator: Partition) -> Frame:
        """Return rows as a partitioning has them."""
        readers = self._plan.consumers_of(node.id)
        if len(readers) == 1 and makes_void(readers[0], node):
            return frame
        asked_for = self._asked_for(node)
        count = asked_for or self._default
        keys = frame.columns_of(operator.keys) if operator.kind in ("KEYGROUP", "RANGE") else []
        match operator.kind:
            case "SHUFFLE" | "REBALANCE":
                data = frame.data.repartition(count)
            case "RESCALE" if asked_for:
                data = frame.data.repartition(count)
            case "FORWARD" | "RESCALE":
                data = frame.data
            case "KEYGROUP":
                data = _without_nulls(frame.data, keys, operator.keys).repartition(count, *keys)
            case "RANGE":
                data = frame.data.repartitionByRange(count, *keys).sortWithinPartitions(*keys)
            case kind:
                return _by_task(self._numbered(frame, node, operator, count), count, _CALLS[kind])
        return frame.with_data(data)

    def _numbered(self, frame: Frame, node: PlanNode, operator: Partition, count: int) -> Frame:
        """Return rows with the numbers of their tasks in the last column of Spark."""
        if operator.kind == "CUSTOM":
            assert operator.function is not None, "no function"
            assert operator.channel_column is not None, "no channel"
            function = msgspec.structs.replace(operator.function, keys=operator.keys, channel_count=count)
            schema = PlanSchema((*frame.base.columns, operator.channel_column))
            above = frame.with_waiting(PlanNode(node.id, function, node.inputs, schema, node.name))
            numbered = above.computed(self._fragments)
            return replace(numbered, base=frame.base, names=numbered.names[:-1])
        is_all = operator.kind == "BROADCAST"
        number = F.explode(F.sequence(F.lit(0), F.lit(count - 1))) if is_all else F.lit(0)
        (name,) = self._fragments.new_names(1)
        return replace(frame, data=frame.data.withColumn(name, number), columns=(*frame.columns, name))

    def _asked_for(self, node: PlanNode) -> int | None:
        """Return the parallelism that the user gave, here or to all that reads this."""
        if node.parallelism is not None:
            return node.parallelism
        readers = {
            None if isinstance(reader.operator, Partition) else reader.parallelism
            for reader in self._plan.consumers_of(node.id)
        }
        return readers.pop() if len(readers) == 1 else None

    def for_partitions(self, frame: Frame, node: PlanNode, operator: PythonFunction) -> Frame:
        """Return the input of a function, with as many tasks as its own parallelism where it sees whole partitions."""
        below = self._plan.node(node.inputs[0])
        if operator.kind != "map_partition" or node.parallelism is None or isinstance(below.operator, Partition):
            return frame
        rows = frame.computed(self._fragments)
        if node.parallelism == 1 and self._is_in_order(below):
            return rows.with_data(rows.data.coalesce(1))
        return rows.with_data(rows.data.repartition(node.parallelism))

    def _is_in_order(self, node: PlanNode) -> bool:
        match node.operator:
            case Sort() | Partition(kind="RANGE"):
                return True
            case Project() | Filter() | PythonFunction():
                return self._is_in_order(self._plan.node(node.inputs[0]))
        return False


def _by_task(numbered: Frame, count: int, call: str) -> Frame:
    """Return rows in the tasks whose numbers they have."""
    if not hasattr(numbered.data, "repartitionById"):
        raise NotYetSupportedError(f"{call} on Spark before 4.1 (use key_by() or shuffle(), or -t cluster)")
    return numbered.with_data(numbered.data.repartitionById(count, numbered.columns[-1]))


def _without_nulls(data: DataFrame, keys: Sequence[Column], names: Sequence[str]) -> DataFrame:
    """Check that no key of a frame is null: a row with a null key ends the job."""
    error = DataError(
        f"Assigned key must not be null! Key {', '.join(names)}; key_by refuses null keys: filter them out or give "
        "them a value"
    )
    is_null = reduce(or_, (key.isNull() for key in keys))
    refused = F.raise_error(F.lit(str(carried(error)))).cast("boolean")
    return data.filter(F.when(is_null, refused).otherwise(F.lit(True)))
