"""What every test ends with: no thread, no child process, no descriptor that was not there before.

Clusters live as long as the process on purpose (one for each distinct configuration); tests that start one close it.
"""

import gc
import os
import re
import signal
import sys
import threading
import time

import hypothesis
import psutil
import pytest

from tests import compiling, durations, scopes, tiers, watchdog
from tests.sampling import MOST_EXAMPLES, keep_samples, take_examples

pytest_plugins = ["pytester", "tests.zygote"]  # the first for tests of what tests share

hypothesis.settings.register_profile("drey", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("drey")

# JVMs of tests end before the second compiler, which takes a third of their processor time, has paid for itself. The
# first alone has room for 48 MB of code and 21 MB of classes, which Spark fills: what it has it would make anew.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m",
)
# No test speaks TLS with servers of others, whose certificates each process reads when it imports aiohttp.
os.environ.setdefault("SSL_CERT_FILE", os.devnull)
# Jobs of tests have the subtasks that tests set, however few processors there are.
os.environ.setdefault("DREY_PARALLELISM_MAX_PER_PROCESSOR", "64")

# A shell that starts this in the background has SIGINT ignored, nohup SIGHUP; children inherit it, and tests send both.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_WAIT_S = 30.0
_ADDRESS = re.compile(r"at 0x[0-9a-f]{6,}")


def pytest_addoption(parser):
    tiers.add_options(parser)
    durations.add_options(parser)


def pytest_unconfigure():
    """Say nothing of the outputs that tests declare and never write."""
    unwritten = sys.modules.get("engine.api.unwritten_outputs")
    if unwritten is not None:
        unwritten.UNWRITTEN.forget()


def pytest_configure(config):
    config.addinivalue_line("markers", "sample(of): the default run takes few of the parameters, see tests/sampling.py")
    tiers.register(config)
    durations.register(config)
    watchdog.begin(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    tiers.share_folder(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return scopes.scheduler_of(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with tiers.turn(item), watchdog.watched(item):
        return (yield)


def pytest_collection_modifyitems(config, items):
    addressed = [item.nodeid for item in items if _ADDRESS.search(item.nodeid)]
    if addressed:  # workers of one run would collect tests of different names, and refuse each other
        raise pytest.UsageError(f"the name of a test holds an object's address; give it an id: {addressed[0]}")
    tiers.keep_tiers(config, items)
    keep_samples(config, items)
    take_examples(items, most=MOST_EXAMPLES if durations.run_of(config) == "quick" else None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect without the collector of cycles, which would look through what grows by millions of objects that stay."""
    gc.disable()
    try:
        if not tiers.is_named(session.config):
            compiling.compile_share(session.config)
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Take what collection has made out of what the collector looks through, also when pytest ends, ten times."""
    gc.collect()
    gc.freeze()


def _threads():
    # A thread of a library that has called Python once is known by a stand-in, which does not end with it.
    own = (thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread))
    return {thread for thread in own if thread.is_alive() and not thread.name.startswith("pydev")}


def _children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()  # a look at every process of the machine costs more than most tests
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _held():
    """Return the bytes of batches that readers and writers hold in this process."""
    budget = sys.modules.get("engine.memory.budget")
    return 0 if budget is None else budget.process_budget.held(budget.Kind.ARROW)


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request):
    """Fail a test that leaves threads, processes, or memory of readers that are open; Spark's own are exempt."""
    threads, children, held = _threads(), _children(), _held()
    yield
    if request.node.get_closest_marker("spark"):
        return
    deadline = time.monotonic() + _WAIT_S
    while (_threads() - threads or _children() - children or _held() > held) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not (_threads() - threads), "threads left behind"
    assert _held() <= held, "memory of a reader or a writer that was not closed"
    assert not (_children() - children), "processes left behind"
