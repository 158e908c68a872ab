"""Executor: where a plan runs. The targets register themselves here; the API knows none of them.

    register_executor("local", factory)          engine.targets does this when it is imported
    executor_of("local") -> Executor             one a target and process, made at first use

Known names are local, cluster and spark; those that are not registered do not exist yet.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from engine.api.kept_jobs import KeptJob
from engine.client.deployments import why_refused
from engine.client.job_result import JobResult
from engine.config.loader import Configuration
from engine.errors import ConfigurationError, NotYetSupportedError
from engine.graph.plan import Plan
from engine.graph.source_spec import SinkSpec

TARGETS = ("local", "cluster", "spark")


class Executor(Protocol):
    """Runs plans; safe to use from any thread, one job at a time or several."""

    @property
    def is_dry(self) -> bool:
        """Whether plans are only looked at: nothing is read beyond samples, and outputs may exist."""
        ...

    @property
    def is_in_process(self) -> bool:
        """Whether all tasks run in this process, and may hand their rows to it."""
        ...

    @property
    def takes_said(self) -> bool:
        """Whether plans are to have operators as users said them beside their lowered forms."""
        ...

    def default_parallelism(self, configuration: Configuration) -> int:
        """Return the number of subtasks of operators that say nothing of it."""
        ...

    @property
    def keeps_jobs(self) -> bool:
        """Whether ``execute_again`` may have something to run."""
        ...

    def execute(self, plan: Plan, configuration: Configuration, kept: KeptJob | None = None) -> JobResult:
        """Run a plan to its end, and keep its job; JobExecutionError when it fails."""
        ...

    def execute_again(self, kept: KeptJob, sink: SinkSpec, configuration: Configuration) -> JobResult | None:
        """Run a kept job into another output to its end; None where its plan is to be looked at again."""
        ...

    def release(self, configuration: Configuration) -> None:
        """Take note that the environment of these settings is closed: what only it used may go."""
        ...


ExecutorFactory = Callable[[], Executor]

_factories: dict[str, ExecutorFactory] = {}
_executors: dict[str, Executor] = {}


def register_executor(target: str, factory: ExecutorFactory) -> None:
    """Register the factory of a target's executor, in place of an earlier one."""
    _factories[target] = factory
    _executors.pop(target, None)


def check_target(target: str) -> None:
    """Raise ConfigurationError for a target that does not exist; what Flink calls so is refused by name."""
    if target in TARGETS or target in _factories:
        return
    raise ConfigurationError(f"target {target!r}: {why_refused(target) or 'choose one of ' + ', '.join(TARGETS)}")


def executor_of(target: str) -> Executor:
    """Return the executor of a target; NotYetSupportedError when it is known but not there."""
    check_target(target)
    if target not in _executors:
        if target not in _factories:
            raise NotYetSupportedError(f"target {target!r}")
        _executors[target] = _factories[target]()
    return _executors[target]
