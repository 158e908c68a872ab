"""Limits of folders: which writers they bind, what their errors say, and that nothing stays counted."""

import os  # noqa: F401 - of the process that is killed
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from engine.errors import DiskFullError
from engine.exchange.buffer_pool import unpooled_buffer
from engine.exchange.partition_file import PartitionFile
from engine.exchange.partition_folders import PartitionFolders
from engine.iomanager.disk_limit import DiskLimit
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.shown_sizes import size_text

LIMIT = 1_000_000
FIRST, SECOND = SpillIdentity("11" * 16, 0, 0, 0), SpillIdentity("22" * 16, 0, 0, 0)
ROW = random.Random(7).randbytes(1000)


def managed(*directories: Path, **settings: Any) -> IOManager:
    return IOManager([str(each) for each in directories], limit_bytes=LIMIT, compression="none", **settings)


def spilled(manager: IOManager, identity: SpillIdentity, size: int) -> None:
    """Spill rows, and keep them until the space is closed."""
    writer = manager.space(identity).writer("run", 65536)
    for _ in range(size // len(ROW)):
        writer.write_bytes(ROW)
    writer.finish()


def valued(manager: IOManager, identity: SpillIdentity, size: int) -> None:
    """Store wide values."""
    space = manager.space(identity)
    for _ in range(size // 100_000):
        space.write_value(memoryview(bytes(100_000)))


def stored(manager: IOManager, identity: SpillIdentity, size: int) -> PartitionFile:
    """Store a result."""
    folders = PartitionFolders(manager.folders, manager.ensure_folders, manager.limits).of_job(identity.job_id)

    def path(need: int = 0, full: Any = ()) -> Path:
        return folders.partition_path("result.shuffle.data", need, full)

    file = PartitionFile(path(), bytes(16), 1, path, folders.share)
    try:
        for _ in range(size // len(ROW)):
            file.append(0, [unpooled_buffer(ROW)])
        file.finish()
    except BaseException:
        file.delete()
        raise
    return file


def on_disk(manager: IOManager) -> int:
    """Return the bytes of all files but the lock."""
    return sum(path.stat().st_size for folder in manager.folders for path in folder.iterdir() if path.name != "lock")


@pytest.mark.parametrize("write", [spilled, valued, stored])
def test_what_is_written_is_counted_to_the_byte_and_given_back(tmp_path: Path, write: Any) -> None:
    with managed(tmp_path / "a") as manager:
        (limit,) = manager.limits
        file = write(manager, FIRST, 600_000)
        assert limit.used_bytes == on_disk(manager) >= 600_000
        assert limit.job_bytes() == {FIRST.job_id: limit.used_bytes}
        assert limit.left_bytes == LIMIT - limit.used_bytes
        if file is not None:
            file.delete()
            file.delete()
        for space in tuple(manager._spaces):
            space.close()
        assert (limit.used_bytes, limit.job_bytes(), on_disk(manager)) == (0, {}, 0)


@pytest.mark.parametrize("write", [spilled, valued, stored])
def test_a_limit_that_is_used_up_is_one_error_that_says_by_whom_and_the_other_job_goes_on(
    tmp_path: Path, write: Any
) -> None:
    with managed(tmp_path / "a") as manager:
        (limit,) = manager.limits
        spilled(manager, FIRST, 600_000)
        before = limit.used_bytes
        with pytest.raises(DiskFullError) as caught:
            write(manager, SECOND, 600_000)
        text = str(caught.value)
        assert str(manager.folders[0]) in text and "limit of 1 MB" in text
        assert f"job {FIRST.job_id} has {size_text(before)}" in text
        assert "raise taskmanager.disk.limit, add a directory to io.tmp.dirs" in text
        assert on_disk(manager) <= LIMIT
        for space in tuple(manager._spaces):
            if space.identity == SECOND:
                space.close()
        assert limit.job_bytes() == {FIRST.job_id: before}, "the failed one gave back what it had"
        spilled(manager, FIRST, 300_000)


@pytest.mark.parametrize("write", [spilled, valued, stored])
def test_a_file_goes_on_in_a_folder_with_room(tmp_path: Path, write: Any) -> None:
    with managed(tmp_path / "a", tmp_path / "b") as manager:
        spilled(manager, FIRST, 700_000)  # it lies in one of the two
        write(manager, SECOND, 900_000)
        assert sum(limit.used_bytes for limit in manager.limits) == on_disk(manager) >= 1_600_000
        assert all(limit.used_bytes <= LIMIT for limit in manager.limits)


def test_a_process_that_was_killed_leaves_no_count(tmp_path: Path) -> None:
    code = "import os, sys; from tests.iomanager.test_disk_limit import *; spilled(managed(Path(sys.argv[1])), FIRST, "
    code += "900_000); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.spill")) >= 900_000
    with managed(tmp_path) as manager:
        assert (manager.limits[0].used_bytes, list(tmp_path.rglob("*.spill"))) == (0, [])
        spilled(manager, SECOND, 900_000)


def test_many_threads_take_no_more_than_there_is() -> None:
    limit = DiskLimit("/data", 1000)
    got: list[int] = []

    def take(number: int) -> None:
        share = limit.share(f"job{number % 3}")
        for _ in range(500):
            try:
                share.reserve(7)
            except OSError:
                got.append(0)
            else:
                got.append(7)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(6)]
    shares = [limit.share(f"job{number}") for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) == limit.used_bytes == 1000 // 7 * 7 == sum(limit.job_bytes().values())
    for share in shares:
        share.give_back(share.used_bytes)
    assert limit.used_bytes == 0
    with pytest.raises(OSError, match="quota"):
        limit.share("job0").reserve(1001)


def test_without_a_limit_bytes_are_counted() -> None:
    limit = DiskLimit("/data")
    share = limit.share("job")
    share.reserve(1 << 50)
    assert (limit.used_bytes, share.used_bytes, limit.size_bytes) == (1 << 50, 1 << 50, 0)
    assert limit.left_bytes > 1 << 62
