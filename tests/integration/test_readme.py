"""What the README shows runs as it stands there."""

import re
import shlex
import subprocess
import sys

import pytest

from engine.cli.main import build_parser
from engine.examples.generate_instruments import generate
from tests.tidy.imports import ROOT

pytestmark = pytest.mark.integration

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_job_of_the_readme_runs_and_prints_what_it_promises(tmp_path):
    generate(20_000, tmp_path / "data", 1, "csv")
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "job.py").write_text(example)
    command = [sys.executable, "job.py"]
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "BROADCAST" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("[Row(CurrencyCode='EUR', instruments=")
    parts = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert parts and all(re.fullmatch(r"part-\d{5}\.csv", name) for name in parts)


def test_the_commands_of_the_readme_are_those_of_the_command_line():
    lines = [
        line.split("#")[0]
        for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
        for line in block.splitlines()
    ]
    commands = [shlex.split(line) for line in lines if line.startswith("bin/flink-run")]
    assert len(commands) >= 3
    for command in commands:
        build_parser().parse_args(command[1:])
