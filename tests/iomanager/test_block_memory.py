"""Blocks that many readers hold: managed memory that is free makes room for them, and what they held goes back."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_file import SpillFile
from engine.memory.manager import MemoryManager
from engine.memory.page_pool import PagePool
from tests.heap import resident_bytes
from tests.iomanager.conftest import IDENTITY
from tests.native import _memory_probe as probe

pytestmark = pytest.mark.skipif(not probe.pages_lie_in_slabs(), reason="blocks and pages are of the heap in this build")

MANAGED_BYTES = 48 << 20
BLOCK_BYTES = 64 << 10
#: for I/O beside managed memory, and the step in which the manager hears of more
ROOM_BYTES, STEP_BYTES = 8 << 20, 1 << 20


def test_blocks_of_many_readers_take_the_room_of_free_pages(tmp_path: Path) -> None:
    with one_block(tmp_path) as (manager, pool, io, file):
        held = [probe.take(pool) for _ in range(manager.pages_total // 4)]
        for page in held:
            probe.fill(page, manager.page_size, 7)
        warm_all(manager, pool)
        before = resident_bytes()
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(file.reader(0)) for _ in range(400)]
            assert all(len(next(reader)) == BLOCK_BYTES for reader in readers)
            assert io.buffer_bytes_out == 400 * BLOCK_BYTES
            assert manager.pages_resident * manager.page_size <= MANAGED_BYTES - 400 * BLOCK_BYTES + ROOM_BYTES
            assert resident_bytes() < before + ROOM_BYTES + 2 * STEP_BYTES
        assert resident_bytes() < before - 400 * BLOCK_BYTES + 2 * ROOM_BYTES + 2 * STEP_BYTES
        warm_all(manager, pool)
        assert manager.pages_resident == manager.pages_total
        assert [probe.count_other(page, manager.page_size, 7) for page in held] == [0] * len(held)
        for page in held:
            probe.give(pool, page)


def test_few_blocks_leave_pages_warm(tmp_path: Path) -> None:
    with one_block(tmp_path) as (manager, pool, _, file):
        warm_all(manager, pool)
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                next(stack.enter_context(file.reader(0)))
            assert manager.pages_resident == manager.pages_total


@contextlib.contextmanager
def one_block(folder: Path) -> Iterator[tuple[MemoryManager, PagePool, IOManager, SpillFile]]:
    """Yield all of a manager's pages as a pool, and a file of one block whose readers count against the manager."""
    with (
        MemoryManager(MANAGED_BYTES) as manager,
        manager.pool("a", manager.pages_total) as pool,
        IOManager([str(folder)], memory_manager=manager) as io,
        io.space(IDENTITY) as space,
    ):
        writer = space.writer("run", BLOCK_BYTES)
        writer.write_bytes(os.urandom(BLOCK_BYTES))
        yield manager, pool, io, writer.finish()


def warm_all(manager: MemoryManager, pool: PagePool) -> None:
    """Touch every page that is free."""
    pages = [probe.take(pool) for _ in range(manager.pages_free)]
    for page in pages:
        probe.fill(page, manager.page_size, 1)
    for page in pages:
        probe.give(pool, page)
