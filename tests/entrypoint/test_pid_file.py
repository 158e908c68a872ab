"""Pid files: one pid a line, and an identity beside it that no other process can have."""

import errno
import os
import signal
import subprocess
import sys
import threading

import pytest

from engine.entrypoint.daemon_control import stop_daemons
from engine.entrypoint.pid_file import DaemonProcess, PidFile, is_daemon, process_identity
from engine.entrypoint.places import Places
from engine.private_folder import NotPrivateError
from engine.python_command import python_command
from tests.entrypoint.conftest import until


def this_process(number=0):
    return DaemonProcess(os.getpid(), number, process_identity(os.getpid()))


def test_the_file_has_one_bare_pid_a_line_and_goes_with_the_last(tmp_path):
    file = PidFile(tmp_path / "pid" / "flink-me-x.pid", "taskmanager")
    with file.locked() as processes:
        processes.append(this_process(3))
        processes.append(DaemonProcess(7, 1, "another/1"))
    assert file.path.read_text() == f"{os.getpid()}\n7\n"
    assert [(process.pid, process.number, process.is_alive) for process in file.read()] == [
        (os.getpid(), 3, True),
        (7, 1, False),
    ]
    with file.locked() as processes:
        del processes[:]
    assert list((tmp_path / "pid").iterdir()) == []


def test_a_pid_that_belongs_to_another_process_now_is_stale():
    assert this_process().is_alive
    assert not DaemonProcess(os.getpid(), 0, "boot/1").is_alive


@pytest.fixture
def daemon_like(tmp_path):
    """A process with the command line of a TaskManager."""
    package = tmp_path / "modules" / "engine" / "entrypoint"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "taskmanager.py").write_text("print(flush=True)\ninput()\n")
    child = subprocess.Popen(
        python_command("engine.entrypoint.taskmanager", "--log-file", "x"),
        env={**os.environ, "PYTHONPATH": str(tmp_path / "modules")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def test_a_line_without_identity_counts_where_its_process_is_a_daemon_of_that_kind(tmp_path, daemon_like):
    (tmp_path / "a.pid").write_text(f"{daemon_like.pid}\n")
    (process,) = PidFile(tmp_path / "a.pid", "taskmanager").read()
    assert process.is_alive
    assert PidFile(tmp_path / "a.pid", "jobmanager", lambda text: None).read() == []


def test_a_line_without_identity_of_another_user_or_of_nobody_does_not_count(tmp_path, daemon_like, monkeypatch):
    assert is_daemon(daemon_like.pid, "taskmanager")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert not is_daemon(daemon_like.pid, "taskmanager")
    daemon_like.communicate()
    assert not is_daemon(daemon_like.pid, "taskmanager")


@pytest.mark.parametrize("is_beside_a_real_one", [False, True])
def test_a_foreign_process_whose_number_was_written_in_is_neither_stopped_nor_counted(
    tmp_path, capfd, is_beside_a_real_one
):
    places = Places(tmp_path, tmp_path, tmp_path, "me", "here")
    path = places.pid_file("taskmanager")
    real, foreign = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    try:
        if is_beside_a_real_one:
            with PidFile(path, "taskmanager").locked() as processes:
                processes.append(DaemonProcess(real.pid, 0, process_identity(real.pid)))
        with path.open("a") as file:
            file.write(f"{foreign.pid}\n")
        path.chmod(0o600)
        assert [process.pid for process in PidFile(path, "taskmanager").read()] == [real.pid] * is_beside_a_real_one
        assert stop_daemons(places, "taskmanager", all_of_them=True) == 0
        said = capfd.readouterr()
        assert "passing over a process that is no taskmanager of this user" in said.err
        assert str(foreign.pid) not in said.out
        assert foreign.poll() is None
        if is_beside_a_real_one:
            assert real.wait() == -signal.SIGTERM
        assert not path.exists()
    finally:
        for child in (real, foreign):
            child.kill()
            child.wait()


def test_a_process_that_ended_is_dead_before_its_parent_asks():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = DaemonProcess(child.pid, 0, process_identity(child.pid))
    assert process.is_alive
    child.stdin.close()
    until(lambda: not process.is_alive)
    child.wait()


def test_who_reads_while_others_write_sees_lines_as_a_whole(tmp_path):
    file = PidFile(tmp_path / "a.pid", "taskmanager")
    lines = [DaemonProcess(pid, 0, f"boot/{pid}", 100 * pid, f"boot/{100 * pid}") for pid in (7, 88)]
    is_over = threading.Event()

    def replace():
        for turn in range(600):
            with file.locked() as processes:
                processes[:] = [lines[turn % 2]] * (turn % 3)
        is_over.set()

    writer = threading.Thread(target=replace)
    writer.start()
    seen = set()
    while not is_over.is_set():
        seen |= set(file.read())
    writer.join()
    assert seen <= set(lines)


def test_no_line_is_lost_when_many_write_and_the_file_comes_and_goes(tmp_path):
    file = PidFile(tmp_path / "a.pid", "taskmanager")
    seen = []

    def add_and_remove(pid):
        for _ in range(100):
            with file.locked() as processes:
                processes.append(DaemonProcess(pid, 0, "boot/1"))
            with file.locked() as processes:
                seen.append([process.pid for process in processes].count(pid))
                processes[:] = [process for process in processes if process.pid != pid]

    threads = [threading.Thread(target=add_and_remove, args=(pid,)) for pid in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 300
    assert not file.path.exists()


def test_lines_that_are_no_process_are_passed_over_and_said_once(tmp_path):
    said = []
    file = PidFile(tmp_path / "a.pid", "taskmanager", said.append)
    with file.locked() as processes:
        processes.append(this_process(2))
    file.path.write_bytes(b"junk\n-1\n0\n\n\xff\xfe\n" + file.path.read_bytes() + b"12 34\n" + b"9" * 40 + b"\n")
    identities = tmp_path / "a.pid.processes"
    identities.write_bytes(b"\0\nx y z\n" + identities.read_bytes() + b"1\n")
    for _ in range(2):
        assert [(process.pid, process.number, process.is_alive) for process in file.read()] == [(os.getpid(), 2, True)]
    assert len(said) == 10
    assert all(str(tmp_path) in line and "passing over" in line for line in said)


def test_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.pid"
    path.write_text(f"{os.getpid()}\n")
    if os.geteuid() == 0:
        os.chown(path, 54321, 54321)
    else:
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(NotPrivateError, match=r"belongs to another user.*DREY_PID_DIR"):
        PidFile(path, "taskmanager").read()
    with pytest.raises(NotPrivateError, match="belongs to another user"), PidFile(path, "taskmanager").locked():
        pass
    assert path.read_text() == f"{os.getpid()}\n"


def test_identities_of_another_user_or_behind_a_link_are_refused(tmp_path):
    path = tmp_path / "a.pid"
    path.write_text(f"{os.getpid()}\n")
    (tmp_path / "a.pid.processes").symlink_to(tmp_path / "target")
    for _ in range(2):
        with pytest.raises(NotPrivateError, match="symbolic link"):
            PidFile(path, "taskmanager").read()
        (tmp_path / "target").write_text("precious\n")
    with pytest.raises(NotPrivateError, match="symbolic link"), PidFile(path, "taskmanager").locked():
        pass
    assert (tmp_path / "target").read_text() == "precious\n"


def test_a_link_is_not_followed_and_its_target_not_made(tmp_path):
    (tmp_path / "a.pid").symlink_to(tmp_path / "target")
    with pytest.raises(NotPrivateError, match="symbolic link"), PidFile(tmp_path / "a.pid", "taskmanager").locked():
        pass
    assert not (tmp_path / "target").exists()


def test_a_file_that_others_can_write_is_refused(tmp_path):
    path = tmp_path / "a.pid"
    path.write_text(f"{os.getpid()}\n")
    path.chmod(0o666)
    with pytest.raises(NotPrivateError, match="can be written by others"):
        PidFile(path, "taskmanager").read()


def test_stop_goes_on_with_the_other_daemons(tmp_path, capfd):
    (tmp_path / "flink-me-taskmanager.pid").symlink_to(tmp_path / "target")
    places = Places(tmp_path, tmp_path, tmp_path, "me", "here")
    child = subprocess.Popen(["sleep", "600"])
    with PidFile(places.pid_file("jobmanager"), "jobmanager").locked() as processes:
        processes.append(DaemonProcess(child.pid, 0, process_identity(child.pid)))
    assert stop_daemons(places, "taskmanager", all_of_them=True) == 1
    assert "no taskmanager daemon is stopped" in capfd.readouterr().err
    assert stop_daemons(places, "jobmanager", all_of_them=True) == 0
    assert child.wait() == -signal.SIGTERM


def test_a_full_disk_keeps_what_the_file_says_and_is_told(tmp_path, monkeypatch):
    told = []
    file = PidFile(tmp_path / "a.pid", "taskmanager", told.append)
    with file.locked() as processes:
        processes.append(this_process(1))

    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr("engine.entrypoint.pid_file.os.pwrite", refuse)
        with file.locked() as processes:
            processes.append(DaemonProcess(7, 2, "another/1"))
    assert file.read() == [this_process(1)]
    assert len(told) == 1 and os.strerror(errno.ENOSPC) in told[0] and told[0].endswith(f"{os.getpid()} 7")
