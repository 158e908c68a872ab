"""What every test ends with: no thread, no child process, no descriptor that was not there before.

Clusters live as long as the process on purpose (one for each distinct configuration); tests that start one close it.
"""

import compileall
import os
import signal
import sys
import threading
import time
from pathlib import Path

import hypothesis
import psutil
import pytest

from tests import watchdog
from tests.sampling import keep_samples, take_more_examples

hypothesis.settings.register_profile("drey", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("drey")

# A shell that starts this in the background has SIGINT ignored, and children inherit that; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_WAIT_S = 30.0

#: start clusters and quorums of real processes: left out when everything runs, for they take minutes together; they
#: run when they are named, and with CHAOS=short or CHAOS=all
WHOLE_CLUSTERS = (
    "tests/dispatcher/test_crash_points.py",
    "tests/entrypoint/test_cluster_over_rest.py",
    "tests/entrypoint/test_daemons.py",
    "tests/entrypoint/test_high_availability.py",
    "tests/entrypoint/test_shipped_job.py",
    "tests/entrypoint/test_supervisor.py",
    "tests/entrypoint/test_wide_values.py",
    "tests/entrypoint/test_zookeeper.py",
    "tests/ha/test_preflight.py",
    "tests/ha/test_unrest.py",
    "tests/ha/test_zookeeper.py",
    "tests/ha/test_zookeeper_state.py",
    "tests/integration/test_scripts.py",
)


def pytest_ignore_collect(collection_path, config):
    """Leave out what starts whole clusters unless it was asked for."""
    is_everything = config.args == config.getini("testpaths")
    if is_everything and not os.environ.get("CHAOS"):
        place = collection_path.relative_to(config.rootpath).as_posix()
        return True if place in WHOLE_CLUSTERS else None
    return None


def pytest_unconfigure():
    """Say nothing of the outputs that tests declare and never write."""
    unwritten = sys.modules.get("engine.api.unwritten_outputs")
    if unwritten is not None:
        unwritten.UNWRITTEN.forget()


def pytest_configure(config):
    config.addinivalue_line("markers", "sample(of): the default run takes few of the parameters, see tests/sampling.py")
    watchdog.begin(config)
    if sys.dont_write_bytecode:
        # else each of the processes that tests start compiles the engine for itself
        for room in ("engine", "ha"):
            compileall.compile_dir(Path(__file__).parents[1] / room, quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with watchdog.watched(item):
        return (yield)


def pytest_collection_modifyitems(config, items):
    keep_samples(config, items)
    take_more_examples(items)


def _threads():
    return {thread for thread in threading.enumerate() if thread.is_alive() and not thread.name.startswith("pydev")}


def _children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()  # a look at every process of the machine costs more than most tests
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request):
    """Fail a test that leaves threads or processes; Spark's own are exempt."""
    threads, children = _threads(), _children()
    yield
    if request.node.get_closest_marker("spark"):
        return
    deadline = time.monotonic() + _WAIT_S
    while (_threads() - threads or _children() - children) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not (_threads() - threads), "threads left behind"
    assert not (_children() - children), "processes left behind"
