"""Fault points: armed by an option, each acts once, the rest of the time they cost a comparison."""

import signal
import subprocess
import sys

import pytest

from engine.errors import ConfigurationError
from engine.fault_points import InjectedFaultError, arm, reach


@pytest.fixture(autouse=True)
def disarmed():
    yield
    arm("")


def test_a_point_that_is_not_armed_does_nothing():
    reach("sink.decided")
    arm("task.running:fail:/nonexistent/marker")
    reach("sink.decided")


def test_an_armed_point_fails_once(tmp_path):
    arm(f"sink.decided:fail:{tmp_path / 'marker'}")
    with pytest.raises(InjectedFaultError, match=r"sink\.decided"):
        reach("sink.decided")
    reach("sink.decided")
    assert (tmp_path / "marker").read_text().startswith("sink.decided ")


def test_an_armed_point_kills_its_process(tmp_path):
    program = (
        "from engine.fault_points import arm, reach\n"
        f"arm('task.running:kill:{tmp_path / 'marker'}')\n"
        "reach('task.running')\nprint('alive')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "alive\n"


@pytest.mark.parametrize("text", ["task.running", "task.running:kill", "no:kill:/m", "task.running:hurt:/m"])
def test_what_is_no_fault_point_is_refused(text):
    with pytest.raises(ConfigurationError, match="POINT:kill"):
        arm(text)
