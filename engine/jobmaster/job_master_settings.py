"""JobMasterSettings: the settings of a JobMaster, from the process's configuration and the job's own.

    job_master_settings(configuration, address of the ResourceManager, restart strategy by default) ─► JobMasterSettings

The only difference between an embedded cluster and one of processes is what happens by default to a task that failed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial

import msgspec

from engine.config.loader import Configuration, configuration_from_texts
from engine.config.options import (
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    JOB_PRIORITY,
    JOB_RECOVERY_TASK_MANAGER_TIMEOUT,
    RESTART_GIVE_UP,
    SLOT_REQUEST_TIMEOUT,
    STALLED_TIMEOUT,
)
from engine.gateways.job_queue import JobTurn
from engine.graph.job_graph import JobGraph
from engine.jobmaster.job_limits import limits_beside, limits_of_cluster
from engine.jobmaster.restart_strategy import NoRestart, RestartStrategy, is_endless, restart_strategy
from engine.jobmaster.user_use import UserUse


class JobMasterSettings(msgspec.Struct, frozen=True):
    """The settings of a JobMaster. Times in seconds."""

    slot_request_timeout_s: float
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    resource_manager_address: str
    #: restart strategy for a job; by default nothing is tried again
    restart_strategy: Callable[[JobGraph], RestartStrategy] = lambda _: NoRestart()
    #: seconds in which a TaskExecutor must answer the next leader's JobMaster, or is lost
    reattach_timeout_s: float = 30.0
    #: time that all tasks of a job may wait for each other; 0: unlimited
    stalled_timeout_s: Callable[[JobGraph], float] = lambda _: 0.0
    #: time that the same failure may repeat on every TaskExecutor before the job ends; 0: unlimited
    give_up_s: Callable[[JobGraph], float] = lambda _: 0.0
    #: limits of a job, by the keys of their options
    limits: Callable[[JobGraph], dict[str, int]] = lambda _: {}
    #: sums of what the jobs of a user take, for all jobs with these settings
    user_use: UserUse = msgspec.field(default_factory=UserUse)


def job_master_settings(
    configuration: Configuration, resource_manager_address: str, default_strategy: str
) -> JobMasterSettings:
    """Return the settings of every JobMaster of a process.

    Args: default_strategy: of jobs, where neither they nor the configuration name one.
    """

    def job_configuration(job_graph: JobGraph) -> Configuration:
        return configuration_from_texts({**configuration.as_texts(), **job_graph.configuration})

    def strategy_of(job_graph: JobGraph) -> RestartStrategy:
        return restart_strategy(default_strategy, job_configuration(job_graph), random.random)

    cluster_limits = cache(partial(limits_of_cluster, configuration))

    def give_up_s(job_graph: JobGraph) -> float:
        own = job_configuration(job_graph)
        return own.get(RESTART_GIVE_UP) / 1000 if is_endless(default_strategy, own) else 0.0

    return JobMasterSettings(
        slot_request_timeout_s=configuration.get(SLOT_REQUEST_TIMEOUT) / 1000,
        heartbeat_interval_s=configuration.get(HEARTBEAT_INTERVAL) / 1000,
        heartbeat_timeout_s=configuration.get(HEARTBEAT_TIMEOUT) / 1000,
        resource_manager_address=resource_manager_address,
        restart_strategy=strategy_of,
        reattach_timeout_s=configuration.get(JOB_RECOVERY_TASK_MANAGER_TIMEOUT) / 1000,
        stalled_timeout_s=lambda job_graph: job_configuration(job_graph).get(STALLED_TIMEOUT) / 1000,
        give_up_s=give_up_s,
        limits=lambda job_graph: limits_beside(cluster_limits(), job_graph),
    )


def job_turn(job_graph: JobGraph, order: int) -> JobTurn:
    """Return the place of a job among those that wait; raises ConfigurationError."""
    own = {key: text for key, text in job_graph.configuration.items() if key == JOB_PRIORITY.key}
    return JobTurn(configuration_from_texts(own).get(JOB_PRIORITY), order, job_graph.user)
