"""Commands that are called in a folder of somebody else run nothing of it; a script's own folder comes last."""

import os
import re
import subprocess
import sys

import pytest

from engine.python_command import drop_current_folder, own_search_path, python_command
from tests.tidy.imports import ROOT, source_files

#: of Python, of what the engine is written on, of the engine
OWN = ("drey", "engine", "ha")
NAMES = ("yaml", "queue", "select", "logging", "json", "msgspec", "pyarrow", "aiohttp", "typing", *OWN)
TRAP = "open({marker!r}, 'a').write(__name__ + '\\n')\nraise SystemExit(99)\n"
SCRIPT = """
import pyarrow as pa
from engine import Environment
from own_of_the_job import FACTOR
env = Environment(config={"parallelism.default": 1})
numbers = env.from_arrow(pa.table({"a": [1, 2, 3]}))
def scaled(row):
    import own_of_the_job, queue
    return (row[0] * own_of_the_job.FACTOR * len(queue.Queue.__name__),)
print(sorted(row["a"] for row in numbers.map(scaled, schema=numbers.schema).collect()))
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "of-somebody"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    (folder / "own_of_the_job.py").write_text("FACTOR = 10\n")
    (folder / "job.py").write_text(SCRIPT)
    return folder


@pytest.fixture
def run(folder, tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    # Not as it is delivered: a parser is loaded.
    (conf / "config.yaml").write_text("rest.port: 1\nclient.timeout: 1 ms\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("DREY_", "PYTHON"))}
    environment |= {"DREY_CONF_DIR": str(conf), "DREY_LOG_DIR": str(tmp_path), "DREY_PID_DIR": str(tmp_path)}

    def run(*command, **variables):
        done = subprocess.run(
            command, cwd=folder, env=environment | variables, capture_output=True, text=True, timeout=120, check=False
        )
        marker = tmp_path / "marker"
        assert not marker.exists(), f"{command} ran {marker.read_text()}"
        return done

    return run


def test_commands_import_nothing_of_the_current_folder(run):
    asked = run(*python_command("engine.cli.main", "job", "list"))
    assert "ClusterUnreachableError" in asked.stderr
    assert run(*python_command("engine.cli.main", "config", "show")).returncode == 0
    stopped = run(str(ROOT / "bin" / "stop-cluster.sh"))
    assert (stopped.returncode, stopped.stderr) == (0, "")


@pytest.mark.parametrize("path", [":{}", "{}:", ".:{}", "{}::./"])
def test_an_entry_of_pythonpath_that_means_the_current_folder_is_dropped(run, tmp_path, path):
    path = path.format(tmp_path)
    assert run(str(ROOT / "bin" / "stop-cluster.sh"), PYTHONPATH=path).returncode == 0
    asked = run(str(ROOT / "bin" / "flink-run"), "config", "show", PYTHONPATH=path)
    assert asked.returncode == 0, asked.stderr


def test_what_a_process_starts_is_given_no_entry_that_means_the_current_folder(monkeypatch):
    for given, kept in ((":/a", "/a"), ("/a::.:./:/b", "/a:/b"), ("a:..", "a:.."), (".", None), ("", None)):
        monkeypatch.setenv("PYTHONPATH", given)
        drop_current_folder()
        assert os.environ.get("PYTHONPATH") == kept


def test_a_script_there_runs_with_its_own_modules_behind_all_others_also_in_workers(run, folder):
    done = run(*python_command("engine.cli.main", "job", "submit", "job.py"))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[50, 100, 150]"), done.stderr
    for name in OWN:
        assert [line for line in done.stderr.splitlines() if f"{folder / name}.py has the name of a package" in line]


def test_a_module_of_py_files_comes_first_and_brings_nothing_of_its_folder(run, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("queue", "own_of_the_job"):
        (tmp_path / "elsewhere" / f"{name}.py").write_text("FACTOR = 20\n")
    words = ("job", "submit", "--py-files", str(tmp_path / "elsewhere" / "own_of_the_job.py"), "job.py")
    done = run(*python_command("engine.cli.main", *words))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[100, 200, 300]"), done.stderr


def test_an_ha_beside_a_script_that_python_runs_is_one_line(tmp_path):
    (tmp_path / "ha.py").touch()
    (tmp_path / "job.py").write_text("from engine import Environment\n")
    done = subprocess.run([sys.executable, "job.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    hides = f"ImportError: {tmp_path / 'ha.py'} hides the package ha of Drey: rename it"
    assert done.stderr.splitlines()[-1] == hides


def test_the_current_folder_is_told_to_others_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/b", "/a"])
    assert own_search_path() == (str(tmp_path), "/b", "/a")
    tmp_path.rmdir()
    assert own_search_path() == ("/b", "/a")


def test_whatever_runs_python_does_so_without_the_current_folder():
    for path in source_files():
        if path.suffix == ".py" and path.is_relative_to(ROOT / "engine") and path.name != "python_command.py":
            assert not re.search(r"sys\.executable,", path.read_text(encoding="utf-8")), path
    calls = []
    for path in (ROOT / "bin").iterdir():
        calls += re.findall(r'"\$(?:DREY_PYTHON|python|candidate)" (?!setup\.py|--version|\])(\S+)', path.read_text())
    assert len(calls) > 12
    assert set(calls) == {"-P"}
