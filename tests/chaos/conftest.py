"""Data and oracle of the chaos jobs.

``CHAOS=all`` runs everything in about an hour, ``CHAOS=full`` more of the same, ``CHAOS=short`` a part of it that takes
a few minutes; without it nothing is collected. ``CHAOS_SEED=n`` repeats the random schedules of one seed.
``CHAOS_RECORDS=folder`` keeps what leader trials have passed, so that a run goes on where it was interrupted.
"""

import os
import random

import pytest

from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import started_quorum

__all__ = ["IS_FULL", "IS_SHORT", "JOB", "RATE", "rows_of"]

IS_FULL = os.environ.get("CHAOS") == "full"
IS_SHORT = os.environ.get("CHAOS") == "short"
collect_ignore_glob = [] if os.environ.get("CHAOS") else ["test_*.py"]
#: only with CHAOS=all
ONLY_LONG = ["cut_task_managers", "flipped_bits", "many_task_managers", "network", "proxies", "soak"]
collect_ignore = [f"test_{name}.py" for name in ONLY_LONG] if IS_SHORT else []


def pytest_collection_modifyitems(items):
    # Clusters and quorums have ports and folders of their own, and mostly wait; long schedules want a quiet machine.
    marks = [pytest.mark.timeout(300), pytest.mark.processes, *([] if IS_SHORT else [pytest.mark.alone])]
    for item in items:
        if "tests/chaos" in str(item.path):
            for mark in marks:
                item.add_marker(mark)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chaos-data")
    write_data(folder)
    return folder


@pytest.fixture(scope="session")
def expected(data):
    return expected_rows(data)


@pytest.fixture
def seed(request):
    """Return the random numbers of one schedule."""
    chosen = int(os.environ.get("CHAOS_SEED", request.param))
    print(f"seed {chosen}")
    return random.Random(chosen)


@pytest.fixture
def quorum(tmp_path):
    """Three servers of ZooKeeper of the test's own."""
    with started_quorum(tmp_path / "quorum", 3) as made:
        yield made


@pytest.fixture
def small_quorum(tmp_path):
    """One server, where its faults are not the test's."""
    with started_quorum(tmp_path / "quorum", 1) as made:
        yield made
