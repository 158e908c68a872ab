"""Files are opened when they are used, and no more of them stay open than may be."""

import errno
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.iomanager.open_files import OpenFile, open_file_count, open_file_limit, shed


@pytest.fixture(autouse=True)
def _nothing_is_open() -> Iterator[None]:
    shed()
    before = open_file_count()
    yield
    shed()
    assert open_file_count() == before


@pytest.fixture
def few() -> Iterator[int]:
    """A limit of descriptors under which so many files stay open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    yield open_file_limit()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _file(folder: Path, number: int) -> OpenFile:
    file = OpenFile(folder / f"{number}.spill", is_new=True)
    with file as descriptor:
        os.pwrite(descriptor, str(number).encode(), 0)
    return file


def _content(file: OpenFile) -> str:
    with file as descriptor:
        return os.pread(descriptor, 100, 0).decode()


def test_the_least_recently_used_files_are_closed(tmp_path: Path, few: int) -> None:
    assert few == 100
    files = [_file(tmp_path, number) for number in range(few)]
    assert all(file.is_open for file in files)
    assert _content(files[0]) == "0"
    more = [_file(tmp_path, number) for number in range(few, few + 10)]
    assert [file.is_open for file in files] == [True] + [False] * 10 + [True] * (few - 11)
    assert [_content(file) for file in (*more, *files)] == [
        str(number) for number in (*range(few, few + 10), *range(few))
    ]
    assert open_file_count() == few


def test_files_in_use_stay_open_however_many_they_are(tmp_path: Path, few: int) -> None:
    files = [_file(tmp_path, number) for number in range(few + 20)]
    descriptors = [file.__enter__() for file in files]
    assert open_file_count() == few + 20
    assert shed() == 0
    assert [os.pread(each, 100, 0) for each in descriptors] == [str(number).encode() for number in range(few + 20)]
    for file in files:
        file.__exit__(None, None, None)
    assert open_file_count() == few


def test_where_no_descriptor_is_left_the_unused_ones_are_taken(tmp_path: Path, few: int) -> None:
    files = [_file(tmp_path, number) for number in range(few)]
    others = []
    with pytest.raises(OSError, match="Too many open files"):
        while True:
            others.append(os.dup(0))
    try:
        wanted = OpenFile(tmp_path / "more.spill", is_new=True)
        assert not files[0].is_open and files[1].is_open
        used = [*files[1:], wanted]
        assert len({file.__enter__() for file in used}) == few
        with pytest.raises(OSError, match="Too many open files") as raised:  # those of ours are all in use
            files[0].__enter__()
        assert (raised.value.errno, raised.value.filename) == (errno.EMFILE, files[0].path)
        for file in used:
            file.__exit__(None, None, None)
        assert _content(files[0]) == "0" and _content(wanted) == ""
    finally:
        for descriptor in others:
            os.close(descriptor)


def test_a_file_is_closed_when_its_last_user_has_given_it_back(tmp_path: Path) -> None:
    file = _file(tmp_path, 7)
    with file as descriptor:
        file.close()
        Path(file.path).unlink()
        assert os.pread(descriptor, 100, 0) == b"7"
        assert file.is_open
    assert not file.is_open
    file.close()
    Path(file.path).write_text("somebody else's")
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.__enter__()


def test_a_new_file_is_for_this_user_alone_and_takes_nobody_elses_place(tmp_path: Path) -> None:
    file = _file(tmp_path, 1)
    assert Path(file.path).stat().st_mode & 0o777 == 0o600
    with file as descriptor:
        assert not os.get_inheritable(descriptor)
    with pytest.raises(FileExistsError):
        OpenFile(file.path, is_new=True)
    again = OpenFile(file.path)
    assert not again.is_open
    assert _content(again) == "1"
    Path(file.path).unlink()
    shed()
    with pytest.raises(FileNotFoundError, match=file.path):
        _content(file)


def test_threads_that_open_and_close_the_same_files_get_their_own_bytes(tmp_path: Path, few: int) -> None:
    files = [_file(tmp_path, number) for number in range(few + 50)]
    failures: list[str] = []

    def reads(step: int) -> None:
        for turn in range(2000):
            number = turn * step % len(files)
            if _content(files[number]) != str(number):
                failures.append(f"file {number}")

    threads = [threading.Thread(target=reads, args=(step,)) for step in (1, 7, 11, 13)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        shed()
    for thread in threads:
        thread.join()
    assert failures == []
    assert open_file_count() <= few
