"""A job on its way: planned for a target, submitted, and waited for, with the process's listener told.

    settings = planner_settings(configuration, ...)     what the planner must know of a target
    job = plan_job(plan, settings, configuration)       optimized, and the JobGraph that is submitted
    owned(job)                                          the job with the user that a server runs it for
    run_to_end(job, submit, wait, give_up)              on_submitted, then on_finished or on_failed

    keep_job(kept, job, conditions)                     a job that was planned, and the same job once more, with
    job_again(kept, sink, conditions)                   another output

Whatever takes the caller away (Ctrl-C, SIGTERM, SIGHUP, an error of its own) gives the job up: its result is no longer
wanted.

Held by: tests/client/test_job_listener.py
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import lz4.frame
import msgspec

from engine.api.job_names import job_user
from engine.api.kept_jobs import KeptJob
from engine.client.job_listener import JobListener
from engine.client.job_result import JobResult
from engine.client.notebook_progress import listener_of_job
from engine.client.termination import after, leaving_on_termination, uninterrupted
from engine.config.debug_options import SMALL_PART_SIZE
from engine.config.loader import Configuration
from engine.config.options import (
    ADAPTIVE,
    ADAPTIVE_BYTES_PER_TASK,
    ADAPTIVE_PARALLELISM,
    ADAPTIVE_SKEW,
    EXECUTION_MODE,
    LEGACY_ESTIMATES,
    PARALLELISM_DEFAULT,
    PROCESS_SIZE,
    RUNTIME_FILTERS,
    SKEW_FACTOR,
    SKEW_THRESHOLD,
    SLOTS,
)
from engine.config.sizes import format_size
from engine.errors import EngineError, JobCancelledError
from engine.formats.registry import format_of, sink_format_of
from engine.formats.sink_format import SinkFormat
from engine.formats.source_format import SourceFormat
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import USER_KEY, JobGraph, JobVertex
from engine.graph.operator_descriptor import SinkOperator
from engine.graph.plan import Plan, Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.memory.page_budget import SHARE_MIN, PageBudget
from engine.memory.process_memory import SIZE_STEP_BYTES
from engine.optimizer.explain import split_lines
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.stored_results import crowding
from engine.taskexecutor.task_resources import configured_sizes
from engine.user_warnings import warn_user


class PlannedJob(msgspec.Struct, frozen=True, array_like=True):
    """The submitted job, the lines about heavy keys that the optimizer split, and what the user is warned of."""

    graph: JobGraph
    splits: tuple[str, ...]
    warnings: tuple[str, ...] = ()


_encoder = msgspec.msgpack.Encoder()


@cache
def _decoder() -> msgspec.msgpack.Decoder[PlannedJob]:
    # Made when it is needed: it looks at the types of all operators.
    return msgspec.msgpack.Decoder(PlannedJob)


def planner_settings(
    configuration: Configuration,
    parallelism: int,
    default_mode: ExecutionMode,
    page_budget: PageBudget,
) -> OptimizerSettings:
    """Return the settings of the optimizer: the configuration's part, and the target's."""
    is_free = configuration.get(PARALLELISM_DEFAULT) is None and configuration.get(ADAPTIVE_PARALLELISM)
    small_part_bytes = configuration.get(SMALL_PART_SIZE)
    return OptimizerSettings(
        parallelism=parallelism,
        execution_mode=ExecutionMode(configuration.get(EXECUTION_MODE) or default_mode),
        has_small_parts=is_free or small_part_bytes is not None,
        small_part_bytes=small_part_bytes,
        legacy_estimates=configuration.get(LEGACY_ESTIMATES),
        runtime_filters=configuration.get(RUNTIME_FILTERS),
        page_budget=page_budget,
        is_adaptive=configuration.get(ADAPTIVE),
        adaptive_bytes_per_subtask=(
            configuration.get(ADAPTIVE_BYTES_PER_TASK) if configuration.get(ADAPTIVE_PARALLELISM) else 0
        ),
        skew_factor=configuration.get(SKEW_FACTOR) if configuration.get(ADAPTIVE_SKEW) else 0.0,
        skew_bytes=configuration.get(SKEW_THRESHOLD),
    )


def plan_job(plan: Plan, settings: OptimizerSettings, configuration: Configuration) -> PlannedJob:
    """Optimize a plan and make the graph of a new job."""
    stores, plan = plan.stores, msgspec.structs.replace(plan, stores={})
    optimized = optimize(plan, settings)
    crowded = crowding(optimized, configured_sizes(configuration, configuration.get(SLOTS)).process_bytes)
    is_small = settings.page_budget.share == SHARE_MIN
    warnings = [each for each in (crowded, _too_small(plan, configuration) if is_small else "") if each]
    for each in warnings:
        warn_user(each)
    job_graph = generate_job_graph(optimized, JobId.random(), plan.name, configuration.as_texts())
    job_graph = msgspec.structs.replace(job_graph, stores=stores, page_share=settings.page_budget.share)
    return PlannedJob(job_graph, split_lines(optimized), tuple(warnings))


def owned(job: PlannedJob) -> PlannedJob:
    """Return a job with the user that a server runs it for, if there is one."""
    user = job_user()
    if not user:
        return job
    configuration = {**job.graph.configuration, USER_KEY: user}
    return msgspec.structs.replace(job, graph=msgspec.structs.replace(job.graph, configuration=configuration))


def keep_job(kept: KeptJob, job: PlannedJob, conditions: Hashable) -> None:
    """Keep a job that was planned under some conditions.

    It is kept as compressed bytes: the objects of a hundred jobs would make the garbage collector's work longer.
    """
    kept.keep(lz4.frame.compress(_encoder.encode(job)), conditions)


def job_again(kept: KeptJob, sink: SinkSpec, conditions: Hashable) -> PlannedJob | None:
    """Return a kept job as a new one with another output; None where there is none, or the conditions are others."""
    if kept.job is None or kept.job[1] != conditions:
        return None
    job = _decoder().decode(lz4.frame.decompress(kept.job[0]))
    for each in job.warnings:
        warn_user(each)
    vertices = tuple(_with_sink(vertex, sink) for vertex in job.graph.vertices)
    graph = msgspec.structs.replace(job.graph, job_id=JobId.random(), vertices=vertices, stores={})
    return msgspec.structs.replace(job, graph=graph)


def _with_sink(vertex: JobVertex, sink: SinkSpec) -> JobVertex:
    """Return a vertex that writes into an output, if it writes at all."""
    last = vertex.chain[-1]
    if not isinstance(last.operator, SinkOperator):
        return vertex
    last = msgspec.structs.replace(last, operator=msgspec.structs.replace(last.operator, spec=sink))
    return msgspec.structs.replace(vertex, chain=(*vertex.chain[:-1], last))


def library_bytes(plan: Plan, *, writes: bool = False) -> int:
    """Return the bytes that libraries of formats take in a process of a job; ``writes``: those of its outputs alone."""
    found: dict[str, int] = {}
    for operator in (node.operator for node in plan.nodes):
        entry: SinkFormat | SourceFormat[Any] | None = None
        if isinstance(operator, Sink):
            entry = sink_format_of(operator.spec)
        elif isinstance(operator, Source) and not writes:
            entry = format_of(operator.spec)
        if entry is not None:
            found[entry.name] = entry.library_bytes
    return sum(found.values())


def _too_small(plan: Plan, configuration: Configuration) -> str:
    process = configured_sizes(configuration, configuration.get(SLOTS)).process_bytes
    taken = library_bytes(plan)
    wanted = -(-(process + 2 * taken) // SIZE_STEP_BYTES) * SIZE_STEP_BYTES
    return (
        f"{PROCESS_SIZE.key}: {format_size(process)} is too little beside the libraries of tables that the job needs,"
        f" which take {format_size(taken)}: the process may become larger; set it to {format_size(wanted)}"
    )


def run_to_end(
    job: PlannedJob,
    submit: Callable[[], None],
    wait: Callable[[JobListener], JobResult],
    give_up: Callable[[], None],
) -> JobResult:
    """Submit a job and return its result.

    Args:
        job: the argument of ``submit``.
        submit: raises EngineError when the job is refused; the listener hears nothing of it then.
        wait: returns when the job has finished, raises its error when it has not.
        give_up: cancels the job; called when the caller is interrupted, also in the middle of ``submit``.
    """
    listener = listener_of_job()
    job_id = job.graph.job_id.value
    is_submitted = False
    try:
        with leaving_on_termination():
            submit()
            is_submitted = True
            listener.on_submitted(job_id, job.graph.name)
            result = wait(listener)
    except BaseException as error:
        with uninterrupted():
            if not isinstance(error, EngineError):
                give_up()
            if is_submitted:
                is_cancel = isinstance(error, JobCancelledError) or not isinstance(error, Exception)
                with after(error):
                    listener.on_failed(job_id, "CANCELED" if is_cancel else "FAILED", error)
        raise
    result = msgspec.structs.replace(result, splits=job.splits)
    listener.on_finished(result)
    return result
