"""The walk over a plan: a frame for each node, made once.

    nodes with a said form what the user said, where Spark has it (said_nodes.py), else their lowered form
    Project, Filter        Spark's where every expression is native and nothing waits below, else they wait
    functions, Explode     wait: they become one fragment with what waits below
    all others             need their inputs computed

A broadcast data set of a function is collected by the driver and travels inside the fragment.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from engine.connectors.arrow_source import inline_source
from engine.dataframes.carried_types import from_carried
from engine.dataframes.fragments import EachPartition
from engine.dataframes.frame import Fragments, Frame, makes_rows_of_none
from engine.dataframes.partitionings import Partitionings
from engine.dataframes.relations import Relations
from engine.dataframes.said_nodes import may_be_native, said_frame
from engine.dataframes.source_frames import source_frame
from engine.errors import DataError, NotYetSupportedError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    CoGroup,
    Explode,
    Filter,
    GroupReduce,
    Join,
    Limit,
    Partition,
    Plan,
    PlanNode,
    Project,
    PythonFunction,
    SaidForm,
    Sort,
    SortedAggregate,
    Source,
    Union,
    Window,
)

#: limit of a broadcast data set, which is part of every task of its function
BROADCAST_BYTES_MAX: Final = 64 << 20


class PlanTranslator:
    """Makes the frames of one plan."""

    def __init__(self, plan: Plan, session: SparkSession, fragments: Fragments, partitions: int) -> None:
        self._plan = plan
        self._session, self._fragments, self._partitions = session, fragments, partitions
        self._relations = Relations(session, fragments, partitions)
        self._partitionings = Partitionings(plan, fragments, partitions)
        self._frames: dict[int, Frame] = {}
        #: nodes whose said operators are not Spark's
        self._lowered: set[int] = set()

    def frame(self, node_id: int) -> Frame:
        """Return the rows of a node; nothing of it waits."""
        waiting = [self._plan.node(node_id)]
        while waiting:
            node = waiting[-1]
            said = None if node.id in self._lowered else node.said
            is_said = said is not None and may_be_native(said)
            below = said.inputs if said is not None and is_said else node.inputs
            missing = [each for each in below if each not in self._frames]
            if missing:
                waiting += map(self._plan.node, missing)
                continue
            if node.id not in self._frames:
                self._make(node, said if is_said else None)
            if node.id in self._frames:
                waiting.pop()
        return self._computed(node_id)

    def _make(self, node: PlanNode, said: SaidForm | None) -> None:
        """Make the frame of a node whose inputs have theirs; none where what was said of it turns out not Spark's."""
        if said is None:
            self._frames[node.id] = self._made(node)
            return
        found = said_frame(self._relations, node, said, [self._computed(each) for each in said.inputs])
        if found is None:
            self._lowered.add(node.id)
        else:
            self._frames[node.id] = found

    def _computed(self, node_id: int) -> Frame:
        computed = self._frames[node_id].computed(self._fragments)
        self._frames[node_id] = computed
        return computed

    def _made(self, node: PlanNode) -> Frame:
        operator = node.operator
        match operator:
            case Source():
                return source_frame(self._session, node, self._fragments, self._partitions)
            case Project() | Filter():
                return self._row_wise(node, operator)
            case PythonFunction(broadcasts=names) if names:
                return self._with_broadcasts(node)
            case PythonFunction():
                below = self._partitionings.for_partitions(self._frames[node.inputs[0]], node, operator)
                return below.with_waiting(node)
            case Explode():
                return self._frames[node.inputs[0]].with_waiting(node)
        frames = [self._computed(each) for each in node.inputs]
        relations = self._relations
        match operator:
            case Partition():
                return self._partitionings.spread(frames[0], node, operator)
            case Sort():
                return relations.sort(frames[0], operator)
            case Limit(count=count):
                return frames[0].with_data(frames[0].data.limit(count))
            case Aggregate():
                return relations.aggregate(frames[0], node, operator)
            case Join():
                return relations.join(node, operator, *frames)
            case Union():
                return relations.union(node, frames)
            case GroupReduce() | SortedAggregate() | Window() | AsofJoin() | CoGroup():
                return relations.grouped(node, operator, frames)
        raise NotYetSupportedError(f"{type(operator).__name__} on Spark")

    def _row_wise(self, node: PlanNode, operator: Project | Filter) -> Frame:
        below = self._frames[node.inputs[0]]
        if not below.waiting:
            if isinstance(operator, Project):
                made = self._relations.project(below, node, operator)
            else:
                made = self._relations.filter(below, operator)
            if made is not None:
                return made
        return below.with_waiting(node)

    def _with_broadcasts(self, node: PlanNode) -> Frame:
        assert isinstance(node.operator, PythonFunction), "no function"
        below = self._partitionings.for_partitions(self._computed(node.inputs[0]), node, node.operator)
        rows = below.computed(self._fragments)
        sources = [self._inline(self._plan.node(each)) for each in node.inputs[1:]]
        fragment = self._fragments.of([rows.base], [node], sources)
        task = EachPartition(fragment, not makes_rows_of_none(node.operator))
        return rows.mapped(self._fragments, task, node.schema)

    def _inline(self, node: PlanNode) -> PlanNode:
        """Return a source of the rows of a node."""
        schema = to_arrow_schema(node.schema)
        table = self._computed(node.id).exact().toArrow()
        if table.nbytes > BROADCAST_BYTES_MAX:
            raise DataError(
                f"a broadcast data set of {table.nbytes >> 20} MB: on Spark at most {BROADCAST_BYTES_MAX >> 20} MB "
                "travel with a function; join it instead"
            )
        nullable = pa.schema([each.with_nullable(True) for each in schema])
        batches = [from_carried(batch, schema) for batch in table.to_batches()]
        spec, statistics, _ = inline_source(batches, table.nbytes, nullable)
        return msgspec.structs.replace(node, operator=Source(spec, statistics), inputs=())
