"""A standalone cluster as a target: jobs are planned here and run there.

    Plan ─► optimizer (told of the cluster's slots) ─► JobGraph ─► POST /jobs ─► outcome, progress, cancel over REST

The job's id is chosen here, so a submission whose answer was lost is sent again, to the leader of that moment, and
starts nothing twice. An attached client whose JobManager is gone goes on with the next one, as long as its patience
lasts.

Default execution mode is BATCH: every repartitioning is stored, any job finishes on one slot, and a lost TaskManager
costs little.

Held by: tests/entrypoint/test_cluster_over_rest.py
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Hashable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.api.kept_jobs import KeptJob
from engine.client.cluster_client import ClusterClient, ClusterUnreachableError, Overview
from engine.client.failure_text import job_error
from engine.client.job_listener import JobListener, ProgressTeller, current_listener
from engine.client.job_result import JobResult, job_result
from engine.client.leader_address import cluster_client
from engine.config.command_line import current_command_line
from engine.config.loader import Configuration
from engine.config.options import PARALLELISM_DEFAULT, SLOTS
from engine.config.process_keys import without_effect
from engine.errors import EngineError, JobNotFoundError, PlanError, ResourceError
from engine.formats.registry import format_of, sink_format_of
from engine.formats.source_format import Origin
from engine.gateways.messages import JobOutcome
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import JobArtifact, JobGraph
from engine.graph.plan import Plan, Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.memory.page_budget import PageBudget
from engine.optimizer.settings import OptimizerSettings
from engine.rpc.user_tokens import own_token
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
from engine.targets.shipped_modules import shipped_modules
from engine.taskexecutor.task_resources import configured_sizes
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    from engine.profile.job_profile import JobProfile

_log = logging.getLogger(__name__)

_PROGRESS_INTERVAL_S = 0.2
_SUSPENDED = "SUSPENDED"
#: seconds that one request for the job's outcome waits
_OUTCOME_WAIT_S = 2.0
#: seconds that an interrupted client waits for the end of its job
_CANCEL_S = 15.0
#: seconds between two requests for the slots
_OVERVIEW_S = 5.0


class ClusterExecutor:
    """Runs plans on a standalone cluster."""

    is_dry = False
    keeps_jobs = True
    is_in_process = False
    takes_said = False

    def __init__(self) -> None:
        self._overview: tuple[float, Overview] | None = None

    def release(self, configuration: Configuration) -> None:
        """Do nothing: the cluster is not this process's."""

    def default_parallelism(self, configuration: Configuration) -> int:
        """Return ``parallelism.default``, else the number of slots of the cluster (at least one)."""
        chosen = configuration.get(PARALLELISM_DEFAULT)
        return int(chosen) if chosen is not None else max(1, self._slots(configuration).slots_total)

    def optimizer_settings(self, plan: Plan, configuration: Configuration) -> OptimizerSettings:
        """Return the properties of the cluster that the optimizer needs for this plan."""
        overview = self._slots(configuration)
        slot_bytes = overview.managed_bytes_per_slot + (0 if plan.has_functions else overview.spare_bytes_per_slot)
        slots = configuration.get(SLOTS)
        sizes = configured_sizes(configuration, slots)
        if slot_bytes and overview.page_bytes:
            budget = PageBudget(slot_bytes, overview.page_bytes)
        else:  # no TaskManager yet: what one with these settings would have
            budget = sizes.of_job(has_functions=plan.has_functions).page_budget(slots)
        missing = sizes.missing_bytes(library_bytes(plan, writes=True), has_functions=plan.has_functions)
        budget = budget.beside(missing * budget.slot_count // slots)
        settings = planner_settings(configuration, self.default_parallelism(configuration), ExecutionMode.BATCH, budget)
        return msgspec.structs.replace(settings, small_input_bytes=settings.adaptive_bytes_per_subtask)

    def execute(self, plan: Plan, configuration: Configuration, kept: KeptJob | None = None) -> JobResult:
        """Run a plan to its end, or (detached) submit it; the process's listener is told what happens.

        A job whose rows this program reads is waited for in any case.
        """
        is_detached = current_command_line().is_detached and not _returns_rows(plan)
        if is_detached:
            _check_detached(plan)
        job = plan_job(plan, self.optimizer_settings(plan, configuration), configuration)
        if kept is not None:
            keep_job(kept, job, self._conditions(configuration))
        return self._run(job, configuration, is_detached=is_detached)

    def execute_again(self, kept: KeptJob, sink: SinkSpec, configuration: Configuration) -> JobResult | None:
        """Run a kept job, if the cluster's slots are as they were."""
        job = job_again(kept, sink, self._conditions(configuration))
        return None if job is None else self._run(job, configuration)

    def job_profile(self, job_id: JobId, configuration: Configuration) -> JobProfile:
        """Return the profile of a job of the cluster."""
        with closing(cluster_client(configuration, current_listener().on_waiting)) as client:
            return client.profile(job_id)

    def _conditions(self, configuration: Configuration) -> Hashable:
        """Return the facts that a plan depends on beside its configuration."""
        found = self._slots(configuration)
        slot_bytes = (found.managed_bytes_per_slot, found.page_bytes, found.spare_bytes_per_slot)
        return self.default_parallelism(configuration), slot_bytes

    def _run(self, job: PlannedJob, configuration: Configuration, *, is_detached: bool = False) -> JobResult:
        for key, origin in without_effect(configuration):
            warn_user(
                f"{key} ({origin}) has no effect on a cluster that runs: its processes read it from their own "
                "configuration; set it in their config.yaml"
            )
        if own_token(configuration) is None:  # else a cluster gives the job to the user of that token
            job = owned(job)
        job_id, name = job.graph.job_id, job.graph.name
        with closing(cluster_client(configuration, current_listener().on_waiting)) as client:
            if is_detached:
                client.submit(_with_modules(job.graph, client))
                current_listener().on_submitted(job_id.value, name)
                return JobResult(job_id.value, name, "CREATED", 0, ())
            return run_to_end(
                job,
                lambda: client.submit(_with_modules(job.graph, client)),
                lambda listener: _await_result(client, job_id, listener),
                lambda: _abandon(client, job_id),
            )

    def _slots(self, configuration: Configuration) -> Overview:
        now_s = time.monotonic()
        if self._overview is None or now_s - self._overview[0] > _OVERVIEW_S:
            with closing(cluster_client(configuration, current_listener().on_waiting)) as client:
                self._overview = (now_s, client.overview())
        return self._overview[1]


def _returns_rows(plan: Plan) -> bool:
    """Return whether the program that submits a job reads what it made, or measures it."""
    formats = [sink_format_of(node.operator.spec) for node in plan.nodes if isinstance(node.operator, Sink)]
    return any(each.is_of_client or each.is_passing for each in formats)


def _check_detached(plan: Plan) -> None:
    for node in plan.nodes:
        operator = node.operator
        if isinstance(operator, Source) and format_of(operator.spec).origin(operator.spec) is Origin.CLIENT:
            raise PlanError(
                "a detached job cannot read data of from_arrow or from_rows that is larger than 256 KB: it would be "
                "gone with this process; write it to a file first, or submit without -d"
            )


def _with_modules(job_graph: JobGraph, client: ClusterClient) -> JobGraph:
    """Upload the modules that functions of the job import; return the graph that names them."""
    if not job_graph.has_functions:
        return job_graph
    command_line = current_command_line()
    started = sys.argv[0] if sys.argv else ""
    script = command_line.script or (Path(started) if os.path.isfile(started) else None)  # noqa: PTH113
    artifacts = []
    for module in shipped_modules(script, command_line.py_files):
        key = client.upload(job_graph.job_id, module.content)
        artifacts.append(JobArtifact(module.name, key, len(module.content)))
    return msgspec.structs.replace(job_graph, artifacts=tuple(artifacts))


def _await_result(client: ClusterClient, job_id: JobId, listener: JobListener) -> JobResult:
    try:
        outcome = _await_outcome(client, job_id, listener)
    except ClusterUnreachableError as error:
        raise ResourceError(
            f"what became of job {job_id} is not known: {error}. With high-availability.type ZOOKEEPER it goes on with "
            f"the next JobManager (flink-run job status {job_id}), else it was lost with this one"
        ) from error
    except JobNotFoundError as error:
        raise ResourceError(
            f"job {job_id} was lost: its JobManager ended, and without high-availability.type ZOOKEEPER or a "
            "high-availability.storageDir jobs end with it; or what was stored of it was removed. Submit it again "
            f"({error})"
        ) from error
    if outcome.status != "FINISHED":
        raise job_error(outcome)
    return job_result(outcome)


def _await_outcome(client: ClusterClient, job_id: JobId, listener: JobListener) -> JobOutcome:
    tell = ProgressTeller(listener)
    wait_s = _PROGRESS_INTERVAL_S if listener.wants_progress else _OUTCOME_WAIT_S
    while True:
        outcome = client.outcome(job_id, wait_s)
        if outcome is not None and outcome.status != _SUSPENDED:
            return outcome
        if outcome is not None:  # its JobManager is about to lead no more
            time.sleep(_PROGRESS_INTERVAL_S)
        else:
            try:
                progress = client.progress(job_id)
            except EngineError as error:
                # The question for the job's outcome, which comes next, says what is wrong.
                _log.debug("no progress of job %s: %s", job_id, error)
            else:
                tell(progress)


def _abandon(client: ClusterClient, job_id: JobId) -> None:
    client.disconnect()  # an answer may be on its way on the old connection
    client.limit_patience(_CANCEL_S)
    try:
        client.cancel(job_id)
        client.outcome(job_id, _CANCEL_S)
    except EngineError:
        return
