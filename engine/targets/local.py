"""The embedded cluster of this process as a target, and the target that only explains.

Plan ─► optimizer ─► JobGraph ─► MiniCluster ─► JobResult, or the job's error
"""

from __future__ import annotations

import os
import sys

import msgspec

from engine.api.executor import TARGETS, register_executor
from engine.client.job_listener import current_listener
from engine.client.job_result import JobResult
from engine.client.termination import leaving_on_termination
from engine.config.loader import Configuration
from engine.config.options import (
    ADAPTIVE,
    ADAPTIVE_BYTES_PER_TASK,
    ADAPTIVE_PARALLELISM,
    EXECUTION_MODE,
    LEGACY_ESTIMATES,
    PARALLELISM_DEFAULT,
)
from engine.errors import JobCancelledError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Plan
from engine.ids import JobId
from engine.minicluster.mini_cluster import mini_cluster, release_mini_clusters
from engine.optimizer.explain import explain, split_lines, summary
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.taskexecutor.task_resources import configured_sizes


class LocalExecutor:
    """Runs plans on the embedded cluster."""

    is_dry = False

    def release(self, configuration: Configuration) -> None:
        """Close the cluster of these settings unless another environment uses it."""
        release_mini_clusters(configuration)

    def default_parallelism(self, configuration: Configuration) -> int:
        """Return ``parallelism.default``, else the number of processors."""
        return configuration.get(PARALLELISM_DEFAULT) or len(os.sched_getaffinity(0))

    def optimizer_settings(self, configuration: Configuration) -> OptimizerSettings:
        """Return what the planner needs to know of the embedded cluster."""
        parallelism = self.default_parallelism(configuration)
        sizes = configured_sizes(configuration, parallelism)
        return OptimizerSettings(
            parallelism=parallelism,
            execution_mode=ExecutionMode(configuration.get(EXECUTION_MODE) or ExecutionMode.PIPELINED),
            legacy_estimates=configuration.get(LEGACY_ESTIMATES),
            managed_bytes_per_slot=sizes.managed_bytes // parallelism,
            segment_size_bytes=sizes.page_bytes,
            is_adaptive=configuration.get(ADAPTIVE),
            adaptive_bytes_per_subtask=(
                configuration.get(ADAPTIVE_BYTES_PER_TASK) if configuration.get(ADAPTIVE_PARALLELISM) else 0
            ),
        )

    def execute(self, plan: Plan, configuration: Configuration) -> JobResult:
        """Run a plan to its end; the process's listener is told what happens."""
        optimized = optimize(plan, self.optimizer_settings(configuration))
        job_graph = generate_job_graph(optimized, JobId.random(), plan.name, configuration.as_texts())
        listener = current_listener()
        cluster = mini_cluster(configuration.as_texts(), owner=configuration)
        listener.on_submitted(job_graph.job_id.value, job_graph.name)
        try:
            with leaving_on_termination():
                result = cluster.submit(job_graph, listener.on_progress if listener.wants_progress else None)
        except BaseException as error:
            is_cancel = isinstance(error, JobCancelledError | KeyboardInterrupt | SystemExit)
            listener.on_failed(job_graph.job_id.value, "CANCELED" if is_cancel else "FAILED", error)
            raise
        result = msgspec.structs.replace(result, splits=split_lines(optimized))
        listener.on_finished(result)
        return result


class ExplainExecutor(LocalExecutor):
    """Prints the plan of the first job and ends the program there: ``flink-run job info``."""

    is_dry = True

    def __init__(self, *, in_short: bool) -> None:
        self._in_short = in_short

    def execute(self, plan: Plan, configuration: Configuration) -> JobResult:
        """Print the explained plan to standard output and leave the script."""
        optimized = optimize(plan, self.optimizer_settings(configuration))
        sys.stdout.write("\n".join([*summary(optimized), ""]) if self._in_short else explain(optimized))
        raise SystemExit(0)


def explain_instead_of_running(*, in_short: bool = False) -> None:
    """Make every target of this process explain its first plan (in at most three lines) instead of running it."""
    for target in TARGETS:
        register_executor(target, lambda: ExplainExecutor(in_short=in_short))
