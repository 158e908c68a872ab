"""Settings of JobMasters: one place that makes them, whatever cluster they belong to."""

from __future__ import annotations

import pytest

from engine.config.loader import configuration_from_texts
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.jobmaster.job_master_settings import job_master_settings
from engine.jobmaster.restart_strategy import ExponentialDelayRestart, FixedDelayRestart, NoRestart

RESTARTS = "restart-strategy.type"


def job(**configuration: str) -> JobGraph:
    texts = {key.replace("__", "-").replace("_", "."): value for key, value in configuration.items()}
    return JobGraph(JobId("a" * 32), "a job", (), b"", texts)


@pytest.mark.parametrize(
    ("default", "of_cluster", "of_job", "expected"),
    [
        ("none", {}, {}, NoRestart),
        ("exponential-delay", {}, {}, ExponentialDelayRestart),
        ("exponential-delay", {RESTARTS: "fixed-delay"}, {}, FixedDelayRestart),
        ("exponential-delay", {RESTARTS: "fixed-delay"}, {"restart__strategy_type": "none"}, NoRestart),
    ],
)
def test_a_job_beats_its_cluster_which_beats_the_default(default, of_cluster, of_job, expected):
    settings = job_master_settings(configuration_from_texts(of_cluster), "resourcemanager", default)
    assert isinstance(settings.restart_strategy(job(**of_job)), expected)


def test_times_are_those_of_the_configuration_in_seconds():
    texts = {
        "slot.request.timeout": "7 s",
        "heartbeat.interval": "200 ms",
        "heartbeat.timeout": "900 ms",
        "high-availability.job-recovery.task-manager-timeout": "3 s",
    }
    settings = job_master_settings(configuration_from_texts(texts), "here", "none")
    assert (settings.slot_request_timeout_s, settings.reattach_timeout_s) == (7.0, 3.0)
    assert (settings.heartbeat_interval_s, settings.heartbeat_timeout_s) == (0.2, 0.9)
    assert settings.resource_manager_address == "here"
