"""Log files are read by name only: no path, no link and no other process's file gets through."""

from __future__ import annotations

import os

import pytest

from engine.errors import LogNotFoundError
from engine.insight.log_folder import LogFolder

JOB = "0" * 31 + "a"
ESCAPES = [
    "",
    ".",
    "..",
    "../secret",
    "..%2fsecret",
    "/etc/passwd",
    "me.log/../../secret",
    "me.log\0",
    "me.log\n",
    ".me.log",
    "other.log",
    "me.link",
    "me.folder",
    "me.pipe",
    "jobs",
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret").write_text("secret")
    logs = tmp_path / "log"
    logs.mkdir()
    (logs / "me.log").write_text("0123456789")
    (logs / "me.log.1").write_text("older")
    (logs / "other.log").write_text("of another process")
    (logs / "me.link").symlink_to(tmp_path / "secret")
    (logs / "me.folder").mkdir()
    os.mkfifo(logs / "me.pipe")
    (logs / "jobs" / JOB).mkdir(parents=True)
    (logs / "jobs" / JOB / "v0-0-0.log").write_text("of a task")
    (logs / "jobs" / JOB / "link").symlink_to(tmp_path / "secret")
    (logs / "jobs" / ("0" * 32)).symlink_to(tmp_path)
    return LogFolder(logs / "me.log")


def test_a_process_shows_its_own_files_and_those_of_jobs(folder):
    assert [(file.name, file.size_bytes) for file in folder.files()] == [("me.log", 10), ("me.log.1", 5)]
    assert [(file.name, file.size_bytes) for file in folder.files(JOB)] == [("v0-0-0.log", 9)]
    assert folder.files("f" * 32) == ()


def test_a_file_is_read_in_parts_and_from_its_end(folder):
    part = folder.read("me.log", 2, 3)
    assert (part.content, part.offset, part.size_bytes) == (b"234", 2, 10)
    assert folder.read("me.log", -4).content == b"6789"
    assert folder.read("me.log", -40).content == b"0123456789"
    assert folder.read("me.log", 40).content == b""
    assert folder.read("v0-0-0.log", job_id=JOB).content == b"of a task"


@pytest.mark.parametrize("name", ESCAPES, ids=repr)
def test_nothing_but_a_file_of_the_process_is_read(folder, name):
    with pytest.raises(LogNotFoundError):
        folder.read(name)


@pytest.mark.parametrize("name", [*ESCAPES, "link", "../../me.log"], ids=repr)
def test_nothing_but_a_file_of_the_job_is_read(folder, name):
    with pytest.raises(LogNotFoundError):
        folder.read(name, job_id=JOB)


@pytest.mark.parametrize("job_id", ["..", "", "../jobs", "0" * 32, "f" * 32], ids=repr)
def test_a_job_is_named_by_its_id_and_is_no_link(folder, job_id):
    assert folder.files(job_id) == ()
    with pytest.raises(LogNotFoundError):
        folder.read("secret", job_id=job_id)


def test_a_process_without_log_files_has_none():
    assert LogFolder(None).files() == ()
    with pytest.raises(LogNotFoundError):
        LogFolder(None).read("me.log")
