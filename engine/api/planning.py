"""Planning between a program and its execution: exact splits for sources, and the explained plan.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from engine.api.executor import executor_of
from engine.client.job_result import JobResult
from engine.config.loader import Configuration
from engine.config.options import (
    ADAPTIVE,
    EXECUTION_MODE,
    LEGACY_ESTIMATES,
    MANAGED_SIZE,
    RUNTIME_FILTERS,
    SEGMENT_SIZE,
)
from engine.errors import NotYetSupportedError, PlanError
from engine.formats.registry import sink_format_of
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.plan import Plan, Sink
from engine.ids import JobId
from engine.lowering.logical_node import LogicalNode
from engine.memory.page_budget import PageBudget
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.shown_html import folded_html

if TYPE_CHECKING:
    from engine.profile.job_profile import JobProfile


@runtime_checkable
class OptimizingExecutor(Protocol):
    """An executor that says how it would have a plan optimized."""

    def optimizer_settings(self, plan: Plan, configuration: Configuration) -> OptimizerSettings:
        """Return the settings of its place for a plan."""
        ...


@runtime_checkable
class ProfilingExecutor(Protocol):
    """An executor that knows the whole run of a job that it has run."""

    def job_profile(self, job_id: JobId, configuration: Configuration) -> JobProfile:
        """Return the profile of a job."""
        ...


def explain_plan(plan: Plan, target: str, configuration: Configuration, parallelism: int) -> str:
    """Return the explained plan as text."""
    return explain(optimize(plan, _settings(plan, target, configuration, parallelism)))


def analyzed_plan(
    plan: Plan, result: JobResult, target: str, configuration: Configuration, parallelism: int, *, form: str
) -> str:
    """Return a plan beside what its operators did as "text"; the profile of the job as "json", or "html", its page."""
    if not result.vertices:
        raise PlanError("explain(analyze=True) needs the end of the job: submit without -d")
    executor = executor_of(target)
    if form != "text" and isinstance(executor, ProfilingExecutor):
        from engine.profile.profile_page import profile_page

        profile = executor.job_profile(JobId(result.job_id), configuration)
        return profile_page(profile) if form == "html" else msgspec.json.encode(profile).decode()
    from engine.optimizer.analysis import analysis_text, analyze

    vertices = result.vertices
    analysis = analyze(
        optimize(plan, _settings(plan, target, configuration, parallelism)),
        (each for vertex in vertices for each in vertex.operators),
        result.runtime_ms / 1000,
        sum(subtask.output_us for vertex in vertices for subtask in vertex.subtasks),
        (*result.splits, *(decision.text for decision in result.decisions)),
        result.stores,
    )
    if form == "json":
        return msgspec.json.encode(analysis).decode()
    text = analysis_text(analysis)
    return folded_html("plan", text, is_open=True) if form == "html" else text


def _settings(plan: Plan, target: str, configuration: Configuration, parallelism: int) -> OptimizerSettings:
    """Return the executor's settings, or what the configuration alone says."""
    try:
        executor = executor_of(target)
    except NotYetSupportedError:
        executor = None
    if isinstance(executor, OptimizingExecutor):
        return executor.optimizer_settings(plan, configuration)
    defaults = OptimizerSettings()
    mode = configuration.get(EXECUTION_MODE)
    return OptimizerSettings(
        parallelism=parallelism,
        execution_mode=ExecutionMode(mode) if mode else defaults.execution_mode,
        legacy_estimates=configuration.get(LEGACY_ESTIMATES),
        runtime_filters=configuration.get(RUNTIME_FILTERS),
        page_budget=PageBudget(
            configuration.get(MANAGED_SIZE) or defaults.page_budget.size_bytes, configuration.get(SEGMENT_SIZE)
        ),
        is_adaptive=configuration.get(ADAPTIVE),
    )


def as_files_are_now(sink: LogicalNode) -> LogicalNode:
    """Return a sink that adds files, once more held against those that are there."""
    if not isinstance(sink.operator, Sink) or not sink.operator.spec.mode:
        return sink
    spec = sink.operator.spec
    entry = sink_format_of(spec)
    if entry.is_table:
        return sink
    from engine.outputs.added_files import like_what_is_there

    return msgspec.structs.replace(
        sink,
        operator=msgspec.structs.replace(
            sink.operator, spec=like_what_is_there(spec, sink.schema, entry.call, warns=False)
        ),
    )
