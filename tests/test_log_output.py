"""Output that finds no room is dropped, counted and told once; a log that was removed is made again."""

import errno
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine import log_output
from engine.entrypoint.log_files import LogFileHandler
from engine.log_output import LogFile, LogOutput, text_stream

FULL = Path("/dev/full")


@pytest.fixture
def disk(monkeypatch):
    """A disk that takes ``room`` bytes more; None: any number."""

    class Disk:
        room = None

    write = os.write

    def limited(descriptor, data):
        if Disk.room is None:
            return write(descriptor, data)
        if Disk.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = write(descriptor, data[: Disk.room])
        Disk.room -= count
        return count

    monkeypatch.setattr(log_output.os, "write", limited)
    return Disk


def record(text):
    return logging.makeLogRecord({"msg": text, "levelno": logging.INFO})


def test_lines_that_find_no_room_are_told_once_when_there_is_room_again(tmp_path, disk):
    path = tmp_path / "x.log"
    handler = LogFileHandler(path, 1 << 20, 3)
    handler.handle(record("first"))
    disk.room = 3
    for number in range(5):
        handler.handle(record(f"lost {number}"))
    disk.room = None
    handler.handle(record("again"))
    handler.handle(record("last"))
    handler.close()
    first, torn, told, *rest = path.read_text().splitlines()
    assert (first, torn, rest) == ("first", "los", ["again", "last"])
    assert "5 lines are missing here" in told and os.strerror(errno.ENOSPC) in told


def test_a_stream_that_could_not_write_has_nothing_left_that_fails_at_its_end(tmp_path, disk):
    file = LogFile(tmp_path / "x.log")
    stream = text_stream(file)
    disk.room = 0
    print("lost", file=stream)
    stream.flush()
    stream.close()
    assert (tmp_path / "x.log").read_text() == ""


def test_what_one_file_lost_is_not_told_in_the_next_one_behind_the_same_descriptor(tmp_path, disk):
    names = [tmp_path / "a", tmp_path / "b"]
    descriptors = [os.open(name, os.O_WRONLY | os.O_CREAT) for name in names]
    output = LogOutput(descriptors[0])
    disk.room = 0
    output.write(b"lost\n")
    disk.room = None
    os.dup2(descriptors[1], descriptors[0])
    output.write(b"kept\n")
    for descriptor in descriptors:
        os.close(descriptor)
    assert names[1].read_text() == "kept\n"


def test_a_log_whose_folder_was_removed_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(log_output, "_LOOK_S", 0.0)
    folder = tmp_path / "log"
    handler = LogFileHandler(folder / "x.log", 1 << 20, 3)
    handler.handle(record("gone"))
    shutil.rmtree(folder)
    handler.handle(record("kept"))
    handler.close()
    assert (folder / "x.log").read_text() == "kept\n"


def test_a_log_that_cannot_be_made_fails_nobody_and_begins_when_it_can(tmp_path):
    folder = tmp_path / "log"
    folder.write_text("in the way")
    handler = LogFileHandler(folder / "x.log", 1 << 20, 3)
    handler.handle(record("lost"))
    folder.unlink()
    handler.handle(record("kept"))
    handler.close()
    told, kept = (folder / "x.log").read_text().splitlines()
    assert "1 lines are missing here" in told and kept == "kept"


def test_a_full_log_that_cannot_be_put_away_goes_on(tmp_path, monkeypatch):
    handler = LogFileHandler(tmp_path / "x.log", 1, 3)

    def refuse(*arguments):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("engine.entrypoint.log_files.rotate_logs", refuse)
    for number in range(3):
        handler.handle(record(f"{number}"))
    handler.close()
    assert (tmp_path / "x.log").read_text().split() == ["0", "1", "2"]


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device")
def test_a_process_whose_output_is_full_prints_on_and_ends_with_its_own_exit_code():
    program = "import sys; from engine.log_output import guard_output; guard_output()\n"
    program += "for number in range(3): print(number); print(number, file=sys.stderr)\nsys.exit(7)"
    with FULL.open("w") as full:
        assert subprocess.run([sys.executable, "-c", program], stdout=full, stderr=full, check=False).returncode == 7
