"""Without descriptors for a worker the machine is told of, not the function; nothing stays open, and nobody waits."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.thorough
@pytest.mark.parametrize("start", ["warm", "cold"])
def test_a_function_in_a_process_without_descriptors_is_refused_by_the_machine_or_runs(start):
    done = subprocess.run(
        [sys.executable, "-m", "tests.functions.few_descriptors_job", start],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.split()
    assert said == ["refused"] * said.count("refused") + ["right"] * said.count("right")
    assert said.count("refused") >= 5 and said[-1] == "right"
