"""An IOManager, and a check that no file, thread or descriptor is left."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity

IDENTITY = SpillIdentity(job_id="00112233445566778899aabbccddeeff", vertex_index=3, subtask_index=1, attempt_number=2)


def _open_files() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if "spill" in target:
            found.add(target)
    return found


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    before = _open_files()
    yield
    if not _open_files() <= before:
        gc.collect()
        assert _open_files() <= before
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("drey-spill")] == []


@pytest.fixture
def io_manager(tmp_path: Path) -> Iterator[IOManager]:
    with IOManager([str(tmp_path / "disk0"), str(tmp_path / "disk1")]) as manager:
        yield manager
    assert manager.buffer_bytes_out == 0
    assert list((tmp_path / "disk0").iterdir()) == list((tmp_path / "disk1").iterdir()) == []
