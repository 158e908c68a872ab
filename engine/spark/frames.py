"""Conversion between DataFrames of Spark and data sets in the same program.

    read_dataframe(df)      small: Arrow, through memory ─► from_arrow
                            else:  Parquet parts in a temporary folder ─► read_records
    data_set.to_spark(s)    small: Arrow, through memory ─► createDataFrame
                            else:  record data set in a temporary folder ─► format("drey")

Small is what Spark expects to have at most SMALL_BYTES, and a result of at most so many. Temporary folders are the
environment's and go with it: a DataFrame that outlives it is one that was written or cached by then.

Held by: tests/spark/test_frames.py
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from engine.api.environment import Environment
from engine.connectors.records_manifest import read_manifest
from engine.errors import PlanError
from engine.graph.source_spec import SinkSpec
from engine.parquet.source import plain_file_schema, stored_schema
from engine.spark.arrow_types import fitted, records_schema, sparks_arrow_schema, sparks_schema
from engine.spark.data_source import NAME, register
from engine.spark.export import export_data

if TYPE_CHECKING:
    from engine.api.calls import Runner
    from engine.api.data_set import DataSet
    from engine.lowering.logical_node import LogicalNode

SMALL_BYTES = 32 << 20


def read_dataframe(data: DataFrame, environment: Environment | None = None) -> DataSet:
    """Return the rows of a DataFrame as a data set of an environment, a new one where it is None.

    The DataFrame is computed now, once, and its rows stay as they are then.

    Raises: SchemaError for a column of a type that a data set cannot hold.
    """
    environment = environment or Environment()
    schema = records_schema(data.schema)
    if _expected_bytes(data) <= SMALL_BYTES:
        return environment.from_arrow(fitted(data.toArrow(), schema, "read_dataframe"))
    folder = environment.temporary_folder() / f"spark-{uuid.uuid4().hex}"
    export_data(data, str(folder))
    return environment.read_records(folder)


def _expected_bytes(data: DataFrame) -> float:
    """Return the size that Spark expects of a DataFrame; larger than any where it gives none (Connect)."""
    plan = getattr(data, "_jdf", None)
    if plan is None:
        return float("inf")
    return float(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))


def to_spark(environment: Runner, node: LogicalNode, spark: SparkSession) -> DataFrame:
    """Return the rows of a data set's node as a DataFrame (``DataSet.to_spark`` calls this)."""
    if not hasattr(spark, "createDataFrame"):
        raise PlanError(f"to_spark({spark!r}): a SparkSession")
    sparks_schema(node.schema)
    stored_schema(node.schema, "to_spark")
    folder = environment.temporary_folder() / f"spark-{uuid.uuid4().hex}"
    schema_ipc = plain_file_schema(node.schema).serialize().to_pybytes()
    environment.run_to_sink(node, SinkSpec("records", str(folder), schema_ipc=schema_ipc), "to_spark")
    manifest = read_manifest(folder)
    if manifest.size_bytes > SMALL_BYTES:
        register(spark)
        return spark.read.format(NAME).load(str(folder))
    names = [str(folder / file.name) for file in manifest.files]
    arrow_schema = sparks_arrow_schema(plain_file_schema(node.schema))
    # Spark fails over a column without one batch
    rows = (
        pq.ParquetDataset(names).read().select(node.schema.names) if manifest.row_count else arrow_schema.empty_table()
    )
    return spark.createDataFrame(fitted(rows, arrow_schema, "to_spark"), schema=sparks_schema(node.schema))
