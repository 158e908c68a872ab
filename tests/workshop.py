"""A workshop: memory and spill files of one operator, checked for leaks at the end."""

import contextlib
import tempfile
from pathlib import Path

import pytest

from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_identity import SpillIdentity
from engine.memory.manager import MemoryManager


class Workshop:
    """Hands out (pool, space) and checks that nothing is left when they are done with."""

    def __init__(self, directory, io):
        self.directory = directory
        self.io = io

    def files(self):
        return [path for path in self.directory.rglob("*.spill") if path.is_file()]

    @contextlib.contextmanager
    def operator(self, pages, page_size=4096):
        with (
            MemoryManager(pages * page_size, page_size) as manager,
            manager.pool("operator", pages) as pool,
            self.io.space(SpillIdentity("0" * 32, 0, 0, 0)) as space,
        ):
            yield pool, space
            assert pool.pages_used == 0
            assert pool.pages_peak <= pages
            assert self.files() == []


@pytest.fixture
def workshop():
    with tempfile.TemporaryDirectory() as directory:
        io = IOManager([directory])
        yield Workshop(Path(directory), io)
        io.close()
