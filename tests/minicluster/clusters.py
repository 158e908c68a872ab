"""Embedded clusters of fake tasks, and how a test waits for them."""

from __future__ import annotations

import time

from engine.minicluster.mini_cluster import MiniCluster
from tests.minicluster.fake_tasks import FakeResources

SETTINGS = {"debug.check-gateways": "true"}
#: a job may have to wait for slots for so long only where there are too few
IMPATIENT = {"slot.request.timeout": "1 s"}


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)


def fixed_cluster(resources: FakeResources, slots: int, **settings: str) -> MiniCluster:
    return MiniCluster({**SETTINGS, "taskmanager.numberOfTaskSlots": str(slots), **settings}, resources, False)
