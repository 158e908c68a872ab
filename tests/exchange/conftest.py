"""An exchange that leaves neither thread nor descriptor behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exchange.world import World


def assert_nothing_is_open(threads: int, descriptors: int) -> None:
    """Compare with what there was; what is only left in cycles is collected, which takes a while."""
    if open_descriptors() > descriptors:
        gc.collect()
    assert threading.active_count() <= threads
    assert open_descriptors() <= descriptors


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    threads = threading.active_count()
    descriptors = open_descriptors()
    world = World(tmp_path)
    yield world
    world.close()
    assert_nothing_is_open(threads, descriptors)
