"""Disks that are full, and bits of spill files that flip while they are in use."""

import contextlib
import os
import random
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: files of operators and of results, by the end of their names
_ENDINGS: Final = (".spill", ".shuffle.data")
_FILES_MAX: Final = 4
_BYTES_MIN: Final = 128 << 10
#: one bit in each so many bytes: some blocks are spared
_STRIDE: Final = 256 << 10


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Make an empty folder a disk of that size. Ends the program where that is not allowed."""
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "drey-acceptance"]
    if subprocess.run(["mount", *options, folder], check=False, capture_output=True).returncode:
        raise SystemExit("--disk-full mounts a tmpfs, which this user may not")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


class BitFlipper(threading.Thread):
    """Flips bits in the first spill files that are large enough, while they are in use."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        super().__init__(name="bit-flipper")
        self._folder = folder
        self._random = random.Random(seed)
        self._ends = threading.Event()
        #: names of the files and how many bits of each
        self.flipped: dict[str, int] = {}

    def __enter__(self) -> "BitFlipper":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self.join()

    def run(self) -> None:
        while not self._ends.wait(0.02) and len(self.flipped) < _FILES_MAX:
            for parent, _, names in os.walk(self._folder):
                for name in names:
                    if name.endswith(_ENDINGS) and name not in self.flipped and len(self.flipped) < _FILES_MAX:
                        with contextlib.suppress(FileNotFoundError):
                            self._flip(Path(parent, name))

    def _flip(self, path: Path) -> None:
        with path.open("r+b", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size < _BYTES_MIN:
                return
            places = [self._random.randrange(begin, min(size, begin + _STRIDE)) for begin in range(0, size, _STRIDE)]
            for at in places:
                byte = os.pread(file.fileno(), 1, at)
                os.pwrite(file.fileno(), bytes([byte[0] ^ 1 << self._random.randrange(8)]), at)
            self.flipped[path.name] = len(places)
