"""Every example prints the same lines embedded and on Spark."""

import runpy
import sys
from pathlib import Path

import pytest

import engine.examples
from engine.config.command_line import CommandLine, install_command_line

pytestmark = pytest.mark.spark

FOLDER = Path(engine.examples.__file__).parent
#: those that make files for others, or want arguments
OTHERS = {"__init__", "generate_instruments", "skew_join"}
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in OTHERS)


@pytest.fixture
def command_line():
    yield install_command_line
    install_command_line(CommandLine())


def _printed(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(FOLDER / f"{name}.py")])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_the_same(spark, name, command_line, capsys, monkeypatch):
    settings = {"parallelism.default": "2", "taskmanager.memory.process.size": "512mb"}
    printed = []
    for target in ("local", "spark"):
        command_line(CommandLine(settings, target))
        printed.append(sorted(_printed(name, capsys, monkeypatch).splitlines()))
    assert printed[0]
    assert printed[0] == printed[1]
