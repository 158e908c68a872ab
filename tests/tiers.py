"""Which tests a run takes, and which of them have the machine to themselves.

A test says by its markers what it costs, and one rule decides:

    no marker          quick: every run takes it; of its parametrizations so many that each value of each is in one
    ``thorough``       more of what quick tests show, or longer: ``--all`` and ``--rest`` take it
    ``integration``    runs whole jobs: thorough, unless it is marked ``quick``; some sixty are, a few of each kind
    ``spark``          needs a session of Spark, half a minute of processor time: thorough likewise
    ``processes``      starts clusters or quorums of real processes: ``--rest`` takes it, and a run with ``CHAOS`` set

    bin/run-tests           quick
    bin/run-tests --all     quick and thorough, all parametrizations (tests/sampling.py): everything but ``processes``
    bin/run-tests --rest    what the run without options leaves out of --all, and processes: nothing runs twice

What the command line names by folder, file or test runs whatever its markers. ``@pytest.mark.quick`` on a test takes
away what its module is marked with.

Runs of several processes (pytest-xdist) share the machine, a scope at a time (tests/scopes.py), in the order in which
tests are collected. Files with real processes, which mostly wait, and others, which compute, take turns, so that both
are under way at any time. In the last third are many short ones alone, so that no process of the run is left over with
a test that takes a minute; then come tests that run alone.

A test that needs a fixed port, a control group, a quorum or a quiet machine is marked ``alone``: nothing else runs
beside it. Two locked files of the run see to that, in the manner of a turnstile: who is alone keeps the turnstile while
it waits for the others to end, so that it gets its turn.

    everybody     turnstile ─► machine (shared), turnstile given back ─► test
    alone         turnstile ─► machine (exclusive)                    ─► test, then both are given back
"""

import contextlib
import fcntl
import itertools
import os
import tempfile
from pathlib import Path

import pytest

from tests.sampling import left_out

#: the nearest of these decides
TIERS = ("quick", "thorough", "processes")
#: what a test needs that only few quick tests may
_DEAR = ("integration", "spark")
_MARKERS = (
    "quick: taken by every run although its module is not",
    "thorough: left out of the default run; --all and --rest take it",
    "processes: starts clusters or quorums of real processes; --rest takes it",
    "alone: needs a port, a control group, a quorum or a quiet machine; nothing runs beside it",
)
_INPUT = "drey_machine"
_folder = pytest.StashKey[Path]()
_owned = pytest.StashKey[tempfile.TemporaryDirectory]()


def add_options(parser):
    """Add ``--all`` and ``--rest``."""
    group = parser.getgroup("tiers")
    group.addoption("--all", action="store_true", help="also thorough tests; all but those of real clusters")
    group.addoption("--rest", action="store_true", help="what a run without options leaves out")


def register(config):
    """Make the markers known, and the folder of this run's locks."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    if hasattr(config, "workerinput"):
        config.stash[_folder] = Path(config.workerinput[_INPUT])


def share_folder(node):
    """Tell a process of this run where the locks are; the process that leads the run keeps their folder."""
    folder = node.config.stash.get(_owned, None)
    if folder is None:
        folder = node.config.stash[_owned] = tempfile.TemporaryDirectory(prefix="drey-tests-")
        node.config.add_cleanup(folder.cleanup)
    node.workerinput[_INPUT] = folder.name


def is_named(config):
    """Whether the command line chooses tests itself."""
    return config.args != config.getini("testpaths")


def tier_of(item):
    """Return the tier that the nearest marker names; without one whole jobs and Spark are thorough, others quick."""
    names = [marker.name for marker in item.iter_markers()]
    for name in names:
        if name in TIERS:
            return name
    return "thorough" if any(name in _DEAR for name in names) else "quick"


def tiers_taken(config):
    """Return the tiers of a run whose command line names no tests."""
    if config.getoption("rest"):
        return {"quick", "thorough", "processes"}
    taken = {"quick", "thorough"} if config.getoption("all") else {"quick"}
    return taken | {"processes"} if os.environ.get("CHAOS") else taken


def keep_tiers(config, items):
    """Take the tests of other runs out of ``items``; files with and without real processes take turns."""
    tiers = {item: tier_of(item) for item in items}
    if not is_named(config):
        chosen = chosen_of(config, tiers)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    with_processes = {item.path for item in items if tiers[item] == "processes"}
    files = list(dict.fromkeys(item.path for item in items))
    others = [path for path in files if path not in with_processes]
    order = in_turns([path for path in files if path in with_processes], others)
    places = {path: place for place, path in enumerate(order)}
    items.sort(key=lambda item: (is_alone(item), places[item.path]))


def in_turns(first, others):
    """Return the members of both lists: behind each of the first so many others that a third of them is left."""
    few, rest = 2 * len(others) // (3 * len(first) or 1), iter(others)
    return [*itertools.chain.from_iterable((one, *itertools.islice(rest, few)) for one in first), *rest]


def chosen_of(config, tiers):
    """Return the tests of a run whose command line names none, of all tests and their tiers."""
    taken = tiers_taken(config)
    of_tiers = {item for item, tier in tiers.items() if tier in taken}
    if config.getoption("all"):
        return of_tiers
    quick = [item for item, tier in tiers.items() if tier == "quick"]
    dropped = left_out(quick, lambda item: 1)  # so many stay that every value of every parameter is in one
    return of_tiers.difference(item for item in quick if (item in dropped) != config.getoption("rest"))


def is_alone(item):
    """Whether nothing may run beside a test."""
    return item.get_closest_marker("alone") is not None


@contextlib.contextmanager
def turn(item):
    """Have the machine, with others or alone, while the test runs; without pytest-xdist there are no others."""
    folder = item.config.stash.get(_folder, None)
    if folder is None:
        yield
        return
    with (folder / "machine").open("w") as machine, (folder / "turnstile").open("w") as turnstile:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        try:
            fcntl.flock(machine, fcntl.LOCK_EX if is_alone(item) else fcntl.LOCK_SH)
            if not is_alone(item):
                fcntl.flock(turnstile, fcntl.LOCK_UN)
            yield
        finally:
            # by name: a child that was forked and lives on has the same open files
            fcntl.flock(machine, fcntl.LOCK_UN)
            fcntl.flock(turnstile, fcntl.LOCK_UN)
