"""One queue, one thread: whoever is first, and whether or not it could be started."""

import contextlib
import threading
import time
from pathlib import Path

import pytest

from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_space import SpillSpace
from tests.iomanager.conftest import IDENTITY

TASKS = 6
BLOCKS = 40


class SlowThread(threading.Thread):
    """A thread that takes a moment to make, as on a busy machine: meanwhile others come."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        if self.name.startswith("drey-spill"):
            time.sleep(0.02)


def _write(space: SpillSpace, number: int) -> SpillFile:
    writer = space.writer(f"run {number}", 1024)
    for index in range(BLOCKS):
        writer.write_bytes(bytes([number, index]) * (100 + index))
        writer.cut_block()
    return writer.finish()


def _read(file: SpillFile) -> list[bytes]:
    with file.reader(2) as reader:
        return list(reader)


def test_a_queue_that_many_begin_to_use_at_once_has_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads on one queue would write blocks of one file at the same offset, and read them for one cursor."""
    monkeypatch.setattr(threading, "Thread", SlowThread)
    gate = threading.Barrier(TASKS)
    failures: list[BaseException] = []

    def task(space: SpillSpace, number: int) -> None:
        try:
            gate.wait()
            file = _write(space, number)
            gate.wait()
            assert _read(file) == [bytes([number, index]) * (100 + index) for index in range(BLOCKS)]
        except BaseException as error:
            failures.append(error)
            gate.abort()

    with IOManager([str(tmp_path)]) as manager:
        with contextlib.ExitStack() as spaces:
            threads = [
                threading.Thread(target=task, args=(spaces.enter_context(manager.space(IDENTITY)), number))
                for number in range(TASKS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            names = sorted(each.name for each in threading.enumerate() if each.name.startswith("drey-spill"))
        assert names == ["drey-spill-read-0", "drey-spill-write-0"]
    assert failures == []


class NoThread(threading.Thread):
    """A thread that the system does not give."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_a_thread_that_cannot_be_started_is_an_error_and_the_next_one_may(
    io_manager: IOManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with io_manager.space(IDENTITY) as space:
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Thread", NoThread)
            writer = space.writer("victim", 1024)
            writer.write_bytes(b"x" * 1000)
            for call in (writer.cut_block, writer.cut_block, writer.finish):
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    call()
        assert _read(_write(space, 1))[0] == bytes([1, 0]) * 100
