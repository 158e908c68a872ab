"""Sources as DataFrames: Parquet by Spark where it reads the very values, everything else by the engine's readers.

    Parquet of plain types        spark.read.parquet, with the schema that the plan has
    from_rows, from_arrow         createDataFrame
    others                        numbers of splits ─► tasks of Spark ─► fragment: the source with those splits

Files must have one path for the driver and all executors.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import DataFrame, SparkSession

from engine.dataframes.carried_types import carried_schema, is_plain, is_text, to_carried
from engine.dataframes.fragments import Fragment
from engine.dataframes.frame import Fragments, Frame, spark_schema
from engine.expressions.schema_bridge import to_arrow_schema
from engine.formats.registry import format_of, open_source
from engine.formats.source_format import Origin
from engine.graph.plan import Plan, PlanNode, Source, decode_plan, encode_plan
from engine.graph.source_spec import SourceSpec
from engine.spark.file_urls import is_left_out, is_pattern

#: limit of Parquet files that Spark reads itself, each as a part of its plan
_FILES_MAX: Final = 64


def source_frame(session: SparkSession, node: PlanNode, fragments: Fragments, partitions: int) -> Frame:
    """Return the rows of a source."""
    assert isinstance(node.operator, Source), "no source"
    spec = node.operator.spec
    names = fragments.new_names(len(node.schema.names))
    if format_of(spec).origin(spec) is Origin.PLAN:
        data = _inline(session, spec, node, names)
    elif is_read_by_spark(node):
        data = _read_by_spark(session, spec, node).toDF(*names)
    else:
        data = _by_splits(session, node, fragments, partitions, names)
    return Frame.of(data, node.schema, names)


def _inline(session: SparkSession, spec: SourceSpec, node: PlanNode, names: Sequence[str]) -> DataFrame:
    carried = carried_schema(to_arrow_schema(node.schema))
    batches = [to_carried(batch, carried) for batch in open_source(spec, spec.splits)]
    # Spark fails over a column of times without one batch.
    batches = batches or [pa.RecordBatch.from_pylist([], carried)]
    table = pa.Table.from_batches(batches, carried).rename_columns(list(names))
    return session.createDataFrame(table, schema=spark_schema(node.schema, names))


def is_read_by_spark(node: PlanNode) -> bool:
    """Whether Spark reads the very rows, which lie in not very many files."""
    if not isinstance(node.operator, Source):
        return False
    spec = node.operator.spec
    return (
        format_of(spec).spark_reader(spec) != ""
        and 0 < len(spec.paths) <= _FILES_MAX
        and not any(is_pattern(path) or is_left_out(path) for path in spec.paths)
        and all(_is_read_alike(each.type) for each in to_arrow_schema(node.schema))
    )


def _is_read_alike(data_type: pa.DataType) -> bool:
    """Whether Spark reads from Parquet what carries the type."""
    return is_plain(data_type) or is_text(data_type) or kinds.is_unsigned_integer(data_type)


def _read_by_spark(session: SparkSession, spec: SourceSpec, node: PlanNode) -> DataFrame:
    schema = spark_schema(node.schema, node.schema.names)
    reader = session.read.schema(schema).format(format_of(spec).spark_reader(spec))
    # One by one: Spark takes the largest of several files first, and rows have the order of their files.
    files = (reader.load(f"file://{path}") for path in spec.paths)
    return reduce(DataFrame.unionAll, files)


def _by_splits(
    session: SparkSession, node: PlanNode, fragments: Fragments, partitions: int, names: Sequence[str]
) -> DataFrame:
    assert isinstance(node.operator, Source), "no source"
    count = len(node.operator.spec.splits)
    numbers = session.range(0, count, 1, max(1, min(count, 4 * partitions)))
    plan = Plan((msgspec.structs.replace(node, id=0, inputs=()),), ())
    fragment = Fragment(encode_plan(plan), fragments.run_plan, fragments.settings, fragments.path)
    return numbers.mapInArrow(_Splits(fragment), spark_schema(node.schema, names))


@dataclass(frozen=True)
class _Splits:
    """A function for ``mapInArrow``: the source, for the splits whose numbers a task gets."""

    fragment: Fragment

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits."""
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        if not numbers:
            return
        (node,) = decode_plan(self.fragment.plan).nodes
        assert isinstance(node.operator, Source), "no source"
        spec = node.operator.spec
        own = msgspec.structs.replace(spec, splits=tuple(spec.splits[number] for number in numbers))
        operator = msgspec.structs.replace(node.operator, spec=own)
        plan = encode_plan(Plan((msgspec.structs.replace(node, operator=operator),), ()))
        fragment = Fragment(plan, self.fragment.run_plan, self.fragment.settings, self.fragment.path)
        yield from fragment.of_nothing()
