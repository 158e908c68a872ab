"""Folders of this machine: renames, links and locks, and what stands in for those that a file system lacks."""

import errno
import subprocess
import sys
import threading

import pytest

from engine.storage import local_folders, renames
from engine.storage.file_system import HardLinksError
from engine.storage.local_folders import LocalFolders

FOLDERS = LocalFolders()


def test_exchange_and_rename_use_the_kernel_or_fall_back(tmp_path, monkeypatch):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    FOLDERS.make(first)
    FOLDERS.make(second)
    (tmp_path / "first" / "x").touch()
    if FOLDERS.exchange(first, second):
        assert (tmp_path / "second" / "x").exists()
    old, taken, new = (str(tmp_path / name) for name in ("old", "taken", "new"))
    for function in (renames._renameat2, lambda: None):
        monkeypatch.setattr(renames, "_renameat2", function)
        FOLDERS.make(old)
        FOLDERS.make(taken)
        with pytest.raises(FileExistsError):
            FOLDERS.rename_if_absent(old, taken)
        FOLDERS.rename_if_absent(old, new)
        FOLDERS.remove_empty([new])
    assert FOLDERS.exchange(first, second) is False


def test_folders_that_were_missing_go_again_where_nothing_is_in_them(tmp_path):
    made = FOLDERS.make_missing(str(tmp_path / "a" / "b" / "c"))
    assert made == tuple(str(tmp_path / name) for name in ("a/b/c", "a/b", "a"))
    (tmp_path / "a" / "file").touch()
    FOLDERS.remove_empty(made)
    assert [each.name for each in tmp_path.rglob("*")] == ["a", "file"]
    assert FOLDERS.make_missing(str(tmp_path / "a")) == ()


def test_what_was_made_above_a_file_is_gone_when_the_rest_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        FOLDERS.make_missing(str(tmp_path / "file" / "a" / "b"))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_links_says_so(tmp_path, monkeypatch):
    (tmp_path / "old").write_bytes(b"x")
    FOLDERS.link(str(tmp_path / "old"), str(tmp_path / "new"))
    assert FOLDERS.identity(str(tmp_path / "new")) == FOLDERS.identity(str(tmp_path / "old"))

    def refuse(*_, **__):
        raise OSError(errno.ENOTSUP, "no links")

    monkeypatch.setattr(local_folders.os, "link", refuse)
    with pytest.raises(HardLinksError, match="no hard links"):
        FOLDERS.link(str(tmp_path / "old"), str(tmp_path / "other"))


def test_a_renamed_folder_keeps_its_identity(tmp_path):
    folder = str(tmp_path / "old")
    FOLDERS.make(folder)
    before = FOLDERS.identity(folder)
    FOLDERS.rename(folder, str(tmp_path / "new"))
    assert before is not None
    assert FOLDERS.identity(str(tmp_path / "new")) == before
    assert FOLDERS.identity(folder) is None


def test_a_lock_is_held_by_one_at_a_time_and_leaves_nothing(tmp_path):
    path, inside, most = str(tmp_path / "lock"), [], []

    def work():
        for _ in range(20):
            with FOLDERS.lock(path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80
    assert list(tmp_path.iterdir()) == []


def test_a_lock_of_a_process_that_was_killed_is_removed_and_one_that_is_held_is_not(tmp_path):
    path = str(tmp_path / "lock")
    program = (
        "import os, sys\nfrom engine.storage.local_folders import LocalFolders\n"
        "with LocalFolders().lock(sys.argv[1]):\n    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, path], check=False)
    assert FOLDERS.identity(path) is not None
    FOLDERS.remove_stale_lock(path)
    assert FOLDERS.identity(path) is None
    with FOLDERS.lock(path):
        FOLDERS.remove_stale_lock(path)
        assert FOLDERS.identity(path) is not None
