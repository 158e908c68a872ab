"""Clusters for whole jobs: one for each configuration and module; leaks are looked for once, at a module's end.

Of tests with three parameters and more every two values meet (tests/sampling.py); ``make torture`` runs all.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from engine import Environment
from engine.minicluster.mini_cluster import close_mini_clusters

ROOT = Path(__file__).resolve().parents[2]

#: small, and every message between components passes its codec
SETTINGS = {
    "parallelism.default": 2,
    "taskmanager.memory.process.size": "512mb",
    "debug.check-gateways": True,
    # a machine with other work may take seconds to start the process that workers are forked from
    "task.cancellation.timeout": "60 s",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/integration" in str(item.path):
            item.add_marker(pytest.mark.integration)
            has_many = hasattr(item, "callspec") and len(item.callspec.params) > 2
            if has_many and item.get_closest_marker("sample") is None:
                item.add_marker(pytest.mark.sample("pairs"))


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """Clusters live as long as a module here; the module's own check comes at its end."""


def small_environment(tmp_path, force_spill, mode="PIPELINED"):
    """Two slots of 2 MB of managed memory each."""
    return Environment(
        config={
            "parallelism.default": 2,
            "taskmanager.memory.managed.size": "4mb",
            "io.tmp.dirs": str(tmp_path / "spill"),
            "debug.force-spill": force_spill,
            "execution.mode": mode,
        }
    )


def threads_alive():
    return {thread for thread in threading.enumerate() if thread.is_alive() and not thread.name.startswith("pydev")}


def children_alive():
    return {child.pid for child in psutil.Process().children(recursive=True)}


def wait_until(condition, seconds=30.0):
    """Return whether a condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_by_the_module():
    threads, children = threads_alive(), children_alive()
    yield
    assert wait_until(lambda: not threads_alive() - threads), f"threads left: {threads_alive() - threads}"
    assert wait_until(lambda: not children_alive() - children), "processes left"


@pytest.fixture(scope="module")
def open_environment(tmp_path_factory, nothing_is_left_by_the_module):
    """Return a function (settings) -> Environment; the same settings give the same one, all are closed at the end."""
    spill = tmp_path_factory.mktemp("spill")
    opened = {}

    def open_one(**settings):
        merged = {
            **SETTINGS,
            "io.tmp.dirs": str(spill),
            **{key.replace("__", "."): value for key, value in settings.items()},
        }
        key = tuple(sorted((name, str(value)) for name, value in merged.items()))
        if key not in opened:
            opened[key] = Environment(config=merged)
        return opened[key]

    yield open_one
    for environment in opened.values():
        environment.close()
    close_mini_clusters()
    assert not [path for path in spill.rglob("*") if path.is_file()], "spill files left"


@pytest.fixture(scope="module")
def environment(open_environment):
    """An Environment of two subtasks."""
    return open_environment()


MODES = {
    "one": {"parallelism.default": 1},
    "three": {"parallelism.default": 3},
    "spilling": {"parallelism.default": 3, "debug.force-spill": True},
    "batch": {"parallelism.default": 2, "execution.mode": "BATCH"},
}


@pytest.fixture(scope="module", params=MODES)
def any_environment(request, open_environment):
    """Environments that walk different paths to the same rows."""
    return open_environment(**MODES[request.param])


@pytest.fixture(scope="module", params=["one", "spilling"])
def two_environments(request, open_environment):
    """The two that differ most, for tests of every type."""
    return open_environment(**MODES[request.param])


def left_over(folder):
    """Return staging and other hidden entries beside outputs."""
    return [path.name for path in Path(folder).iterdir() if path.name.startswith(".")]


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a Python command line in tmp_path with the engine on its path."""

    def run_it(*arguments, settings=(), timeout=240, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DREY_")}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "DREY_TASKMANAGER_MEMORY_PROCESS_SIZE": "512mb",
            "DREY_PARALLELISM_DEFAULT": "2",
            "DREY_TASK_CANCELLATION_TIMEOUT": "60 s",
            "DREY_IO_TMP_DIRS": str(tmp_path / "spill"),
            **variables,
        }
        (tmp_path / "spill").mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run_it


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a Python command line in its own process group."""
    processes = []

    def start_it(*arguments, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DREY_")}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "DREY_TASKMANAGER_MEMORY_PROCESS_SIZE": "512mb",
            "DREY_PARALLELISM_DEFAULT": "2",
            "DREY_TASK_CANCELLATION_TIMEOUT": "60 s",
            "DREY_IO_TMP_DIRS": str(tmp_path / "spill"),
            **variables,
        }
        (tmp_path / "spill").mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start_it
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()
