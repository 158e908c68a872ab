"""The commands of the tutorial run, one after the other; numbers of the first page are those of the measurements."""

import re
import shlex
import subprocess

import pytest

from tests.docs.pages import FOLDER, blocks_of
from tests.entrypoint.conftest import ROOT, installation

__all__ = ["installation"]

TUTORIAL = (FOLDER / "tutorial.md").read_text(encoding="utf-8")


@pytest.mark.processes
@pytest.mark.thorough
def test_the_commands_of_the_tutorial_run_here_and_on_a_cluster(installation, tmp_path):
    data, *_, program = blocks_of(TUTORIAL, "python")
    (tmp_path / "rentals.py").write_text(program.code)
    (tmp_path / "make_data.py").write_text(data.code)
    lines = [shlex.split(line) for block in blocks_of(TUTORIAL, "bash") for line in block.code.splitlines()]
    said = {}
    try:
        for words in [[str(ROOT / ".venv/bin/python"), "make_data.py"], *lines]:
            command = [str(ROOT / words[0]), *words[1:]]
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=installation.environment,
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=100,
            )
            assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout}{done.stderr}"
            said[shlex.join(words[:3])] = done.stdout
    finally:
        installation.script("stop-cluster.sh")
    assert "csv source" in said["bin/flink-run job info"]
    assert re.search(r"North\s+\S?\s*28", said["bin/flink-run sql -e"])
    assert "FINISHED" in said["bin/flink-run job list"]
    parts = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("hours", "hours-of-cluster")]
    assert all(name.endswith(".parquet") for names in parts for name in names) and all(parts)


@pytest.mark.parametrize("page", ["index", "which-engine"])
def test_numbers_beside_other_engines_are_those_that_were_measured(page):
    measured = (FOLDER / "performance.md").read_text(encoding="utf-8")
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    cells = re.findall(r"(?m)^\| .*(?:DuckDB|Drey|TPC-H|ClickBench|256 MB).*$", text)
    numbers = {number for cell in cells for number in re.findall(r"\b\d+\.\d+\b", cell)}
    assert len(numbers) >= 7
    assert {
        number for number in numbers if not re.search(rf"(?<![\d.]){re.escape(number)}\d?(?![\d.]\d)", measured)
    } == set()
