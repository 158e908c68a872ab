"""Frame: the rows of a plan's node on their way through Spark.

    data     DataFrame with columns c0, c1 ..., which carry the columns of ``base``
    waiting  row-wise nodes above it that Spark does not compute itself; they become one fragment together
    schema   columns after those

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import from_arrow_schema

from engine.dataframes.carried_types import carried_schema
from engine.dataframes.fragments import EachPartition, Fragment, RunPlan, input_node
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.plan import Operator, Plan, PlanNode, encode_plan
from engine.graph.plan_schema import PlanSchema


def spark_schema(schema: PlanSchema) -> T.StructType:
    """Return the columns c0, c1 ... as types of Spark."""
    found: T.StructType = from_arrow_schema(carried_schema(to_arrow_schema(schema)), prefer_timestamp_ntz=True)
    return found


@dataclass(frozen=True)
class Fragments:
    """Makes fragments of nodes: with the settings of the job and what runs a plan in a worker."""

    run_plan: RunPlan
    settings: Mapping[str, object]
    path: tuple[str, ...]

    def of(self, inputs: Sequence[PlanSchema], nodes: Sequence[PlanNode], extra: Sequence[PlanNode] = ()) -> Fragment:
        """Return a fragment of nodes, each over the one before it; the first over all inputs and ``extra`` sources."""
        sources = [input_node(index, schema) for index, schema in enumerate(inputs)]
        for node in extra:
            sources.append(msgspec.structs.replace(node, id=len(sources)))
        made = list(sources)
        for node in nodes:
            below = (len(made) - 1,) if len(made) > len(sources) else tuple(range(len(sources)))
            made.append(PlanNode(len(made), node.operator, below, node.schema, node.name))
        return Fragment(encode_plan(Plan(tuple(made), ())), self.run_plan, self.settings, self.path)


@dataclass(frozen=True)
class Frame:
    """Rows of a node; see above."""

    data: DataFrame
    base: PlanSchema
    waiting: tuple[PlanNode, ...] = ()

    @property
    def schema(self) -> PlanSchema:
        """Columns of the rows, once nothing waits."""
        return self.waiting[-1].schema if self.waiting else self.base

    @property
    def arrow_schema(self) -> pa.Schema:
        """The same as Arrow's."""
        return to_arrow_schema(self.schema)

    def with_waiting(self, node: PlanNode) -> Frame:
        """Return the rows of a row-wise node above, which becomes part of a fragment."""
        return replace(self, waiting=(*self.waiting, node))

    def computed(self, fragments: Fragments) -> Frame:
        """Return the same rows with nothing that waits."""
        if not self.waiting:
            return self
        # Functions may make rows of none, other nodes do not.
        is_of_rows = not any(makes_rows_of_none(node.operator) for node in self.waiting)
        task = EachPartition(fragments.of([self.base], self.waiting), is_of_rows)
        return Frame(self.data.mapInArrow(task, spark_schema(self.schema)), self.schema)

    @cached_property
    def carriers(self) -> Mapping[str, Column]:
        """The columns of Spark that carry ours, by name, each made when it is first asked for; nothing may wait."""
        return _Carriers(self.data, self.base)

    def names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns of Spark that carry ours."""
        return [f"c{self.base.names.index(name)}" for name in names]

    def column(self, name: str) -> Column:
        """Return the column of Spark that carries one of ours; nothing may wait."""
        return self.carriers[name]

    def columns(self, names: Sequence[str]) -> list[Column]:
        """Return several."""
        return [self.column(name) for name in names]


class _Carriers(dict[str, Column]):
    """Columns by name, made once each: every one is a question to the JVM."""

    def __init__(self, data: DataFrame, schema: PlanSchema) -> None:
        super().__init__()
        self._data = data
        self._places = {name: place for place, name in enumerate(schema.names)}

    def __missing__(self, name: str) -> Column:
        column = self[name] = self._data[f"c{self._places[name]}"]
        return column


def makes_rows_of_none(operator: Operator) -> bool:
    """Whether an operator may return rows where it is given none."""
    return getattr(operator, "kind", "").startswith(("map_partition", "map_batches"))


def carrier_names(schema: PlanSchema) -> list[str]:
    """Return c0, c1 ... for the columns of a schema."""
    return [f"c{place}" for place in range(len(schema.names))]
