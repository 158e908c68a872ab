"""Flink's other ways to deploy are refused by name, wherever a person writes them."""

import pytest

from engine import ConfigurationError, Environment
from engine.cli.main import main
from engine.client.deployments import why_refused
from engine.client.leader_source import FixedAddresses

TARGETS = {
    "yarn-session": "YARN",
    "yarn-per-job": "YARN",
    "yarn-application": "YARN",
    "mesos": "Mesos",
    "kubernetes-session": "Kubernetes",
    "kubernetes-application": "Kubernetes",
}


@pytest.mark.parametrize(("target", "manager"), TARGETS.items())
def test_a_target_of_a_resource_manager_is_refused_by_name(target, manager, capsys):
    with pytest.raises(ConfigurationError, match=f"{target}.*does not ask {manager} for processes.*-t cluster -m"):
        Environment(target=target)
    with pytest.raises(SystemExit) as ended:
        main(["job", "submit", "-t", target, "job.py"])
    assert ended.value.code == 1
    assert f"does not ask {manager} for processes" in capsys.readouterr().err


def test_a_cluster_that_runs_already_has_another_name():
    with pytest.raises(ConfigurationError, match=r"remote.*-t cluster -m HOST:PORT"):
        Environment(target="remote")


def test_the_address_of_a_resource_manager_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"yarn-cluster.*does not ask YARN"):
        FixedAddresses("yarn-cluster")


@pytest.mark.parametrize("word", ["local", "cluster", "spark", "localhost:8081", "elsewhere", ""])
def test_other_words_are_not_refused(word):
    assert why_refused(word) is None
