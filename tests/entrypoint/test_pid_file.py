"""Pid files: one pid a line, and an identity beside it that no other process can have."""

import os
import subprocess
import sys
import threading

from engine.entrypoint.pid_file import DaemonProcess, PidFile, process_identity
from tests.entrypoint.conftest import until


def this_process(number=0):
    return DaemonProcess(os.getpid(), number, process_identity(os.getpid()))


def test_the_file_has_one_bare_pid_a_line_and_goes_with_the_last(tmp_path):
    file = PidFile(tmp_path / "pid" / "flink-me-x.pid")
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


def test_a_line_without_identity_is_alive_when_its_pid_is(tmp_path):
    (tmp_path / "a.pid").write_text(f"{os.getpid()}\n")
    (process,) = PidFile(tmp_path / "a.pid").read()
    assert process.identity == ""
    assert process.is_alive


def test_a_process_that_ended_is_dead_before_its_parent_asks():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = DaemonProcess(child.pid, 0, process_identity(child.pid))
    assert process.is_alive
    child.stdin.close()
    until(lambda: not process.is_alive)
    child.wait()


def test_who_reads_while_others_write_sees_lines_as_a_whole(tmp_path):
    file = PidFile(tmp_path / "a.pid")
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
    file = PidFile(tmp_path / "a.pid")
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
