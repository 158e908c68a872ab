"""An embedded cluster of fake tasks that leaves neither thread nor descriptor."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.minicluster.mini_cluster import MiniCluster
from tests.minicluster.clusters import SETTINGS
from tests.minicluster.fake_tasks import FakeResources


@pytest.fixture
def resources() -> FakeResources:
    return FakeResources()


@pytest.fixture
def cluster(resources):
    threads = set(threading.enumerate())
    descriptors = set(Path("/proc/self/fd").iterdir())
    cluster = MiniCluster(SETTINGS, resources)
    yield cluster
    cluster.close()
    assert resources.is_closed or not resources.descriptors
    assert set(threading.enumerate()) <= threads
    assert set(Path("/proc/self/fd").iterdir()) <= descriptors
