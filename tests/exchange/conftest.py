"""An exchange that leaves neither thread nor descriptor behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exchange.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    threads = threading.active_count()
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    world = World(tmp_path)
    yield world
    world.close()
    gc.collect()
    assert threading.active_count() <= threads
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
