"""Targets of jobs: the executors behind ``Environment(target=...)`` and ``flink-run -t``.

local.py            the embedded cluster of this process (``engine.minicluster``)
cluster.py          a standalone cluster, over REST
planned_job.py      what both do with a plan: optimize, submit, wait, tell the listener
shipped_modules.py  what a job's functions import, packed to travel with it
spark_modules.py    the same for Spark's executors
spark_daemon.py     what forks Spark's Python workers, with the engine loaded
spark_stages.py     what Spark says of a job's stages, for its result
spark.py            Spark: the plan as DataFrames (``engine.dataframes``)

Importing this package registers the executors, what reads SQL and what makes DataFrames of Spark with the API, which
lies below and knows none. Each of them is loaded when it is first used: a program that only declares data sets has
loaded neither the optimizer nor a cluster.

Held by: tests/api/test_import.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.api.executor import Executor, register_executor
from engine.api.query_language import register_query_reader
from engine.api.spark_frames import register_frame_maker
from engine.api.spoken_texts import register_expression_reader
from engine.memory.heap import import_quickly

if TYPE_CHECKING:
    from engine.api.calls import Runner
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.graph.expression import Expression
    from engine.lowering.logical_node import LogicalNode


def _local_executor() -> Executor:
    executor: Executor = import_quickly("engine.targets.local").LocalExecutor()
    return executor


def _cluster_executor() -> Executor:
    from engine.targets.cluster import ClusterExecutor

    return ClusterExecutor()


def _spark_executor() -> Executor:
    from engine.targets.spark import SparkExecutor

    return SparkExecutor()


def _read_query(text: str, environment: Environment, params: Any, dialect: str | None) -> DataSet:
    from engine.statements.query import query_data_set

    return query_data_set(text, environment, params, dialect)


def _read_expression(text: str, data: DataSet) -> Expression:
    from engine.statements.spoken_expressions import expression_over

    return expression_over(text, data)


def _frame(environment: Runner, node: LogicalNode, spark: Any) -> Any:
    from engine.spark.frames import to_spark

    return to_spark(environment, node, spark)


register_query_reader(_read_query)
register_expression_reader(_read_expression)
register_frame_maker(_frame)
register_executor("local", _local_executor)
register_executor("cluster", _cluster_executor)
register_executor("spark", _spark_executor)
