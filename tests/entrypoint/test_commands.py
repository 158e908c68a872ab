"""Console scripts of an installation: words and usage as the scripts of a checkout have them."""

import subprocess
import sys

import pytest

from engine.entrypoint import commands
from tests.tidy.imports import ROOT


@pytest.fixture
def called(monkeypatch):
    """What reaches the commands behind the scripts."""
    calls = []
    monkeypatch.setattr(commands, "main", lambda words: calls.append(list(words)) or 0)
    return calls


@pytest.mark.parametrize(
    ("command", "words", "expected"),
    [
        (commands.jobmanager, "start -D a=b host 1", "jobmanager start -D a=b host 1"),
        (commands.taskmanager, "stop-all", "taskmanager stop-all"),
        (commands.historyserver, "start-foreground", "historyserver start-foreground"),
        (commands.standalone_job, "start JOB.py 1", "standalonejob start JOB.py 1"),
        (commands.start_cluster, "", "cluster start"),
        (commands.start_cluster, "-D a=b", "cluster start -D a=b"),
        (commands.stop_cluster, "", "cluster stop"),
        (commands.start_quorum, "", "quorum start"),
        (commands.stop_quorum, "", "quorum stop"),
        (commands.zookeeper, "start 2", "zookeeper start 2"),
        (commands.zookeeper, "stop", "zookeeper stop"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_command_runs_what_its_script_does(called, monkeypatch, command, words, expected):
    monkeypatch.setattr(sys, "argv", ["/anywhere/name.sh", *words.split()])
    assert command() == 0
    assert called == [expected.split()]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (commands.jobmanager, ""),
        (commands.taskmanager, "restart"),
        (commands.start_cluster, "now"),
        (commands.stop_cluster, "now"),
        (commands.stop_quorum, "now"),
        (commands.zookeeper, "start"),
        (commands.zookeeper, "start one"),
    ],
)
def test_wrong_words_show_how_a_command_is_called(called, monkeypatch, capsys, command, words):
    monkeypatch.setattr(sys, "argv", ["/anywhere/name.sh", *words.split()])
    assert command() == 1
    assert capsys.readouterr().err.startswith("Usage: name.sh")
    assert called == []


@pytest.mark.parametrize("word", ["-h", "--help"])
@pytest.mark.parametrize("command", [commands.jobmanager, commands.start_cluster, commands.stop_cluster])
def test_help_that_is_asked_for_is_no_failure(called, monkeypatch, capsys, command, word):
    monkeypatch.setattr(sys, "argv", ["/anywhere/name.sh", word])
    assert command() == 0
    assert capsys.readouterr().out.startswith("Usage: name.sh")
    assert called == []


@pytest.mark.parametrize("name", ["start-cluster", "stop-cluster", "taskmanager", "zookeeper", "stop-zookeeper-quorum"])
def test_the_script_of_a_checkout_shows_help_as_well(name):
    done = subprocess.run([ROOT / "bin" / f"{name}.sh", "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {name}.sh")


def test_the_export_without_pyspark_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    assert commands.spark_export() == 1
    assert "pip install 'drey-engine[spark]'" in capsys.readouterr().err
