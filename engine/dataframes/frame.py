"""Frame: the rows of a plan's node on their way through Spark.

    data     DataFrame, whose columns have names that no other column of the job has: c0, c1 ...
    names    those of its columns that carry the columns of ``base``, in their order
    waiting  row-wise nodes above it that Spark does not compute itself; they become one fragment together
    schema   columns after those
    ordered  whether the rows are in the order of a sort, partition after partition

So what only leaves out, moves or renames columns is no operation of Spark's, nor is what a join does with the columns
of its sides: Spark analyses a plan anew for each operation, and each name is a question to the JVM.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import from_arrow_schema

from engine.dataframes.carried_types import carried_schema
from engine.dataframes.fragments import EachPartition, Fragment, RunPlan, input_node
from engine.expressions.schema_bridge import to_arrow_schema, to_column_info
from engine.graph.plan import Operator, Plan, PlanNode, encode_plan
from engine.graph.plan_schema import PlanSchema

#: type of functions for ``mapInArrow``
MapBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def spark_schema(schema: PlanSchema, names: Sequence[str] = ()) -> T.StructType:
    """Return the columns of a schema as types of Spark, by the names given or as c0, c1 ..."""
    carried = carried_schema(to_arrow_schema(schema))
    if names:
        carried = pa.schema([each.with_name(name) for each, name in zip(carried, names, strict=True)])
    found: T.StructType = from_arrow_schema(carried, prefer_timestamp_ntz=True)
    return found


@dataclass(frozen=True)
class Fragments:
    """Makes fragments of nodes: with the settings of the job and what runs a plan in a worker."""

    run_plan: RunPlan
    settings: Mapping[str, object]
    path: tuple[str, ...]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_names(self, count: int) -> tuple[str, ...]:
        """Return names that no column of the job has so far."""
        return tuple(f"c{next(self._numbers)}" for _ in range(count))

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
    """Rows of a node; see above. ``columns``: all that ``data`` has, in its order."""

    data: DataFrame
    base: PlanSchema
    names: tuple[str, ...]
    columns: tuple[str, ...]
    waiting: tuple[PlanNode, ...] = ()
    is_ordered: bool = False

    @classmethod
    def of(cls, data: DataFrame, base: PlanSchema, names: tuple[str, ...]) -> Frame:
        """Return the rows of data that has just the columns of a schema, by those names."""
        return cls(data, base, names, names)

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

    def with_data(self, data: DataFrame) -> Frame:
        """Return other rows with the same columns; nothing may wait."""
        return replace(self, data=data)

    def computed(self, fragments: Fragments) -> Frame:
        """Return a frame with equal rows and no pending work."""
        if not self.waiting:
            return self
        # Functions may make rows of none, other nodes do not.
        is_of_rows = not any(makes_rows_of_none(node.operator) for node in self.waiting)
        task = EachPartition(fragments.of([self.base], self.waiting), is_of_rows)
        return replace(self.mapped(fragments, task, self.schema), is_ordered=self.is_ordered)

    def mapped(self, fragments: Fragments, task: MapBatches, schema: PlanSchema) -> Frame:
        """Return the frame of a task's results over the batches of each partition."""
        names = fragments.new_names(len(schema.names))
        return Frame.of(self.exact().mapInArrow(task, spark_schema(schema, names)), schema, names)

    def exact(self) -> DataFrame:
        """Return the rows with just the columns of ``base``, in their order."""
        return self.data if self.names == self.columns else self.data.select(*self.names)

    @cached_property
    def carriers(self) -> Mapping[str, Column]:
        """The columns of Spark that carry ours, by name, each made when it is first asked for; nothing may wait."""
        return _Carriers(dict(zip(self.base.names, self.names, strict=True)))

    def numbered(self, fragments: Fragments) -> Frame:
        """Return the rows with their place in the order they have now in a column more, the last one."""
        (name,) = fragments.new_names(1)
        place = pa.field("__place", pa.int64(), nullable=False)
        while place.name in self.base.names:
            place = place.with_name(f"_{place.name}")
        base = PlanSchema((*self.base.columns, to_column_info(place)))
        data = self.data.withColumn(name, F.monotonically_increasing_id())
        return Frame(data, base, (*self.names, name), (*self.columns, name))

    def name(self, column: str) -> str:
        """Return the name of the column of Spark that carries one of ours; nothing may wait."""
        return self.names[self.base.names.index(column)]

    def column(self, name: str) -> Column:
        """Return the column of Spark that carries one of ours; nothing may wait."""
        return self.carriers[name]

    def columns_of(self, names: Sequence[str]) -> list[Column]:
        """Return several."""
        return [self.column(name) for name in names]


class _Carriers(dict[str, Column]):
    """Columns by name, made once each: every one is a question to the JVM."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> Column:
        column = self[name] = F.col(self._names[name])
        return column


def makes_rows_of_none(operator: Operator) -> bool:
    """Whether an operator may return rows where it is given none."""
    return getattr(operator, "kind", "").startswith(("map_partition", "map_batches"))
