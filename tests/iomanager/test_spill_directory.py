"""Spill directories: full, read-only and vanished disks, and the sweep of what dead processes left."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import ConfigurationError, DiskFullError, SpillError
from engine.exchange.partition_folders import PartitionFolders
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_directory import FOLDER_PREFIX
from engine.process_folder import LOCK_NAME, sweep
from tests.iomanager.conftest import IDENTITY

ROW = os.urandom(1000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    path = tmp_path / "small"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mount is not possible here: {mounted.stderr.decode().strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_is_an_error_with_path_need_and_free_space_and_the_next_writer_works(small_disk: Path) -> None:
    with IOManager([str(small_disk)], compression="none") as manager, manager.space(IDENTITY) as space:
        writer = space.writer("run", 65536)
        with pytest.raises(DiskFullError) as caught:
            for _ in range(2000):
                writer.write_bytes(ROW)
        text = str(caught.value)
        assert (
            str(manager.folders[0]) in text and "65072 bytes" in text and "bytes free" in text and "io.tmp.dirs" in text
        )
        assert caught.value.retryable and isinstance(caught.value, OSError)
        for call in (lambda: writer.write_bytes(ROW), writer.finish):  # poisoned, and cleaned up by finish
            with pytest.raises(DiskFullError):
                call()
        assert manager.buffer_bytes_out == 0
        assert [path.name for path in manager.folders[0].iterdir()] == ["lock"]
        again = space.writer("again", 65536)
        for _ in range(500):
            again.write_bytes(ROW)
        with again.finish().reader() as reader:
            assert b"".join(reader) == ROW * 500


def test_a_file_goes_on_in_another_directory_when_the_first_is_full(small_disk: Path, tmp_path: Path) -> None:
    with (
        IOManager([str(small_disk), str(tmp_path / "large")], compression="none") as manager,
        manager.space(IDENTITY) as space,
    ):
        small = manager._directories[0]
        manager._directories[1].free_bytes = lambda: 0  # type: ignore[method-assign]  # so that the small one is first
        writer = space.writer("run", 65536)
        for _ in range(3000):
            writer.write_bytes(ROW)
        file = writer.finish()
        assert [Path(path).parent for path in file.paths] == manager.folders
        assert Path(file.paths[0]).parent == small.folder
        assert sum(Path(path).stat().st_size for path in file.paths) == file.stored_bytes  # the torn block is cut off
        with file.reader() as reader:
            assert b"".join(reader) == ROW * 3000
        file.delete()
        assert [path.name for folder in manager.folders for path in folder.iterdir()] == ["lock", "lock"]


def test_a_limit_of_the_file_size_starts_the_next_extent_or_is_reported(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with IOManager([str(tmp_path)], compression="none") as manager, manager.space(IDENTITY) as space:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        try:
            writer = space.writer("run", 65536)
            for _ in range(1000):
                writer.write_bytes(ROW)
            file = writer.finish()
            hopeless = space.writer("hopeless", 300_000)
            with pytest.raises(DiskFullError, match=r"block of 300072 bytes"):
                for _ in range(1000):
                    hopeless.write_bytes(ROW)
                hopeless.finish()
            hopeless.discard()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        assert len(file.paths) == 6
        with file.reader() as reader:
            assert b"".join(reader) == ROW * 1000


@pytest.mark.parametrize("what", ["folder", "directory", "lock"])
def test_a_folder_that_somebody_removed_is_made_again_and_still_locked(tmp_path: Path, what: str) -> None:
    with IOManager([str(tmp_path / "a")]) as manager, manager.space(IDENTITY) as space:
        (folder,) = manager.folders
        if what == "lock":
            (folder / LOCK_NAME).unlink()
        else:
            shutil.rmtree(folder if what == "folder" else folder.parent)
        writer = space.writer("run")
        writer.write_bytes(ROW)
        file = writer.finish()
        assert Path(file.paths[0]).parent == folder
        assert folder.stat().st_mode & 0o777 == 0o700
        assert sweep(folder.parent, FOLDER_PREFIX) == []
        assert PartitionFolders(manager.folders, manager.ensure_folders).partition_path("p").parent == folder
    assert list((tmp_path / "a").iterdir()) == []


def test_results_find_their_folder_again_when_somebody_removed_it(tmp_path: Path) -> None:
    with IOManager([str(tmp_path / "a")]) as manager:
        places = PartitionFolders(manager.folders, manager.ensure_folders)
        shutil.rmtree(tmp_path / "a")
        assert places.partition_path("p").parent.is_dir()


def test_a_folder_that_vanished_and_cannot_be_made_is_replaced_by_another_directory_or_named(tmp_path: Path) -> None:
    with IOManager([str(tmp_path / "a"), str(tmp_path / "b")]) as manager, manager.space(IDENTITY) as space:
        _put_in_the_way(tmp_path / "a")
        writer = space.writer("run")
        writer.write_bytes(ROW)
        file = writer.finish()
        assert Path(file.paths[0]).parent == manager.folders[1]
        _put_in_the_way(tmp_path / "b")
        writer = space.writer("run")
        writer.write_bytes(ROW)
        with pytest.raises(SpillError, match=r"Not a directory|File exists") as caught:
            writer.finish()
        assert str(manager.folders[0]) in str(caught.value) and str(manager.folders[1]) in str(caught.value)
        assert not isinstance(caught.value, DiskFullError)


def _put_in_the_way(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_text("in the way")


def test_a_directory_that_is_not_there_is_made_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    new = tmp_path / "new" / "tmp"
    with IOManager([str(new), str(tmp_path)]) as manager:
        assert [folder.parent for folder in manager.folders] == [new, tmp_path]
        assert new.stat().st_mode & 0o777 == 0o700
    assert [record.getMessage() for record in caplog.records] == [f"io.tmp.dirs: {new} was not there and has been made"]


def test_a_directory_that_cannot_be_used_is_an_error_and_nothing_is_left_in_the_others(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"io\.tmp\.dirs: the spill directory .*file cannot be used"):
        IOManager([str(tmp_path / "good"), str(tmp_path / "file")])
    assert list((tmp_path / "good").iterdir()) == []
    with pytest.raises(ConfigurationError, match="no spill directory is given"):
        IOManager([])
    with pytest.raises(ConfigurationError, match="lz4 or none"):
        IOManager([str(tmp_path / "good")], compression="zip")


def test_a_read_only_directory_is_an_error_that_names_it(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(ConfigurationError, match=f"{small_disk} cannot be used: Read-only file system"):
        IOManager([str(small_disk)])


def test_the_folder_is_private_and_two_managers_of_one_process_have_their_own(tmp_path: Path) -> None:
    with IOManager([str(tmp_path)]) as first, IOManager([str(tmp_path), str(tmp_path)]) as second:
        assert first.folders != second.folders and len(second.folders) == 1
        for folder in (*first.folders, *second.folders):
            assert folder.stat().st_mode & 0o777 == 0o700
            assert folder.name.startswith(f"drey-spill-{os.getpid()}-")
        with second.space(IDENTITY) as space:
            writer = space.writer("run")
            writer.write_bytes(ROW)
            assert Path(writer.finish().paths[0]).stat().st_mode & 0o777 == 0o600


CHILD = textwrap.dedent(
    """
    import sys, time
    from engine.iomanager.io_manager import IOManager
    from engine.iomanager.spill_identity import SpillIdentity
    manager = IOManager([sys.argv[1]])
    space = manager.space(SpillIdentity("00" * 16, 0, 0, 0))
    writer = space.writer("run")
    writer.write_bytes(bytes(1000))
    file = writer.finish()
    sys.stdout.write(str(manager.folders[0]) + "\\n")
    sys.stdout.flush()
    if sys.argv[2] == "wait":
        time.sleep(600)
    """
)


def test_files_of_a_killed_process_are_swept_and_those_of_a_living_one_stay(tmp_path: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), "wait"], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        folders = [Path(child.stdout.readline().strip()) for child in children if child.stdout]
        assert all(len(list(folder.iterdir())) == 2 for folder in folders)
        children[0].send_signal(signal.SIGKILL)
        children[0].wait()
        with IOManager([str(tmp_path)]):
            assert not folders[0].exists()
            assert len(list(folders[1].iterdir())) == 2
    finally:
        for child in children:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()
    assert sweep(tmp_path, FOLDER_PREFIX) == [folders[1]]
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_forgets_close_still_ends_quietly_and_is_swept(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), "end"], check=False, capture_output=True, text=True, timeout=120
    )
    assert (child.returncode, child.stderr) == (0, "")
    assert [str(folder) for folder in sweep(tmp_path, FOLDER_PREFIX)] == [child.stdout.strip()]


def test_a_folder_without_a_lock_is_left_alone_until_it_is_old(tmp_path: Path) -> None:
    young, old = tmp_path / "drey-spill-1-1-0", tmp_path / "drey-spill-2-2-0"
    young.mkdir()
    old.mkdir()
    os.utime(old, (0, 0))
    (tmp_path / "somebody-else").mkdir()
    assert sweep(tmp_path, FOLDER_PREFIX) == [old]
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "somebody-else"]
