"""The embedded cluster of this process as a target, and the target that only explains.

Plan ─► optimizer ─► JobGraph ─► MiniCluster ─► JobResult, or the job's error

Limits: an embedded cluster keeps the size of pages that its first job has led to; another one is planned with its own.

Held by: tests/integration/test_command_line.py
Held by: tests/targets/test_explained_pages.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable
from typing import TYPE_CHECKING

import msgspec

from engine.api.executor import TARGETS, register_executor
from engine.api.kept_jobs import KeptJob
from engine.api.unwritten_outputs import UNWRITTEN
from engine.client.job_listener import ProgressTeller
from engine.client.job_result import JobResult
from engine.clock import SystemClock
from engine.config.loader import Configuration
from engine.config.options import PARALLELISM_DEFAULT, RESTART_STRATEGY, SLOTS, SUBTASKS_PER_PROCESSOR
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Plan
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.minicluster.mini_cluster import mini_cluster, release_mini_clusters
from engine.operators.registry import load_classes
from engine.optimizer.explain import explain, summary
from engine.optimizer.optimizer import optimize
from engine.optimizer.processors import useful_parallelism
from engine.optimizer.settings import OptimizerSettings
from engine.storage.store_client import settings_of_job
from engine.targets.planned_job import (
    PlannedJob,
    job_again,
    keep_job,
    library_bytes,
    owned,
    plan_job,
    planner_settings,
    run_to_end,
)
from engine.taskexecutor.task_resources import configured_sizes

if TYPE_CHECKING:
    from engine.profile.job_profile import JobProfile


def _conditions(configuration: Configuration) -> Hashable:
    """Return the facts that a plan for this process depends on beside its configuration."""
    return len(os.sched_getaffinity(0)), configured_sizes(configuration, configuration.get(SLOTS)).process_bytes


class LocalExecutor:
    """Runs plans on the embedded cluster."""

    is_dry = False
    keeps_jobs = True
    is_in_process = True
    takes_said = False

    def release(self, configuration: Configuration) -> None:
        """Close the cluster of these settings unless another environment uses it."""
        release_mini_clusters(configuration)

    def default_parallelism(self, configuration: Configuration) -> int:
        """Return ``parallelism.default``, else the number of processors."""
        return configuration.get(PARALLELISM_DEFAULT) or len(os.sched_getaffinity(0))

    def optimizer_settings(self, plan: Plan, configuration: Configuration) -> OptimizerSettings:
        """Return the properties of the embedded cluster that the optimizer needs for this plan."""
        asked = self.default_parallelism(configuration)
        most = len(os.sched_getaffinity(0)) * configuration.get(SUBTASKS_PER_PROCESSOR)
        parallelism = useful_parallelism(plan, asked, most)
        slots_min = configuration.get(SLOTS)
        fixed = [slots_min, *(node.parallelism or 1 for node in plan.nodes)]
        slots = max(parallelism, *fixed)
        # The cluster's pages are as large as the parallelism that is set makes them, whatever a plan needs of it.
        sizes = configured_sizes(configuration, max(asked, *fixed))
        missing = sizes.missing_bytes(library_bytes(plan), has_functions=plan.has_functions)
        sizes = sizes.of_job(has_functions=plan.has_functions)
        budget = sizes.page_budget(slots).beside(missing)
        settings = planner_settings(configuration, parallelism, ExecutionMode.PIPELINED, budget)
        return msgspec.structs.replace(
            settings,
            process_parts=sizes.parts,
            is_one_process=True,
            slots_min=slots_min,
            limited_from=asked if parallelism < asked else None,
        )

    def execute(self, plan: Plan, configuration: Configuration, kept: KeptJob | None = None) -> JobResult:
        """Run a plan to its end; the process's listener is told what happens."""
        job = plan_job(plan, self.optimizer_settings(plan, configuration), configuration)
        if kept is not None:
            keep_job(kept, job, _conditions(configuration))
        return self._run(job, configuration)

    def execute_again(self, kept: KeptJob, sink: SinkSpec, configuration: Configuration) -> JobResult | None:
        """Run a kept job, if processors and memory are as they were."""
        job = job_again(kept, sink, _conditions(configuration))
        return None if job is None else self._run(job, configuration)

    def job_profile(self, job_id: JobId, configuration: Configuration) -> JobProfile:
        """Return the profile of a job that this process has run."""
        from engine.profile.profile_making import profile_of

        details = mini_cluster(configuration.as_texts(), owner=configuration).details(job_id)
        return profile_of(details, SystemClock().wall_ms())

    def _run(self, job: PlannedJob, configuration: Configuration) -> JobResult:
        job = owned(job)
        load_classes(descriptor for vertex in job.graph.vertices for descriptor in vertex.steps)
        cluster = mini_cluster(configuration.as_texts(), owner=configuration)
        may_restart = configuration.get(RESTART_STRATEGY) not in (None, "none")
        with settings_of_job(str(job.graph.job_id), configuration.storage_texts()):
            return run_to_end(
                job,
                lambda: None,
                lambda listener: cluster.submit(
                    job.graph, ProgressTeller(listener) if may_restart or listener.wants_progress else None
                ),
                lambda: None,  # the wait for a job of this process cancels it itself
            )


class ExplainExecutor(LocalExecutor):
    """Prints the plan of the first job and ends the program there: ``flink-run job info``."""

    is_dry = True
    keeps_jobs = False
    is_in_process = True
    takes_said = False

    def __init__(self, *, in_short: bool) -> None:
        self._in_short = in_short

    def execute(self, plan: Plan, configuration: Configuration, kept: KeptJob | None = None) -> JobResult:
        """Print the explained plan to standard output and leave the script."""
        optimized = optimize(plan, self.optimizer_settings(plan, configuration))
        sys.stdout.write("\n".join([*summary(optimized), ""]) if self._in_short else explain(optimized))
        UNWRITTEN.forget()  # the rest of the script does not run
        raise SystemExit(0)


def explain_instead_of_running(*, in_short: bool = False) -> None:
    """Make every target of this process explain its first plan (in at most three lines) instead of running it."""
    for target in TARGETS:
        register_executor(target, lambda: ExplainExecutor(in_short=in_short))
