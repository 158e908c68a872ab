"""The epoch of a JobManager without a quorum: it only grows, and no other user has a say in it."""

import errno
import os

import pytest

from engine.clock import ManualClock
from engine.entrypoint.standalone_epoch import next_epoch
from engine.private_folder import NotPrivateError


def test_it_grows_also_when_the_clock_stands_or_the_file_is_junk(tmp_path):
    path, clock = tmp_path / "pid" / "x.epoch", ManualClock(1000.0)
    epochs = [next_epoch(path, clock) for _ in range(3)]
    assert epochs == sorted(set(epochs))
    path.write_text("junk")
    assert next_epoch(path, clock) == clock.wall_ms()
    assert [each.name for each in path.parent.iterdir()] == ["x.epoch"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed_and_nothing_is_written_where_it_points(tmp_path):
    path, target = tmp_path / "x.epoch", tmp_path / "target"
    target.write_text("1")
    path.symlink_to(target)
    (tmp_path / f"x.epoch.{os.getpid()}").symlink_to(target)
    with pytest.raises(NotPrivateError, match="symbolic link"):
        next_epoch(path, ManualClock())
    path.unlink()
    next_epoch(path, ManualClock())
    assert target.read_text() == "1"


def test_without_room_the_epoch_is_not_noted_and_the_start_goes_on(tmp_path, monkeypatch, caplog):
    path = tmp_path / "epoch"
    path.write_text("5\n")
    clock = ManualClock()

    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("engine.entrypoint.standalone_epoch._note", refuse)
    assert next_epoch(path, clock) == max(clock.wall_ms(), 6)
    assert path.read_text() == "5\n" and os.strerror(errno.ENOSPC) in caplog.text
