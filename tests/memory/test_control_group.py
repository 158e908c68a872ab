"""The memory limit of a container, from the files of its control group."""

import os

import pytest

from engine.memory.control_group import anonymous_bytes, kill_count, limit_bytes, machine_bytes, resident_bytes

GIB = 1 << 30
PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def first(tmp_path):
    """A machine with the first version of control groups."""
    own = tmp_path / "cgroup"
    own.write_text("9:name=systemd:/x\n4:memory:/jobs/one\n3:cpu,cpuacct:/\n0::/\n")
    folder = tmp_path / "fs" / "memory" / "jobs" / "one"
    folder.mkdir(parents=True)
    (tmp_path / "fs" / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (folder / "memory.limit_in_bytes").write_text(f"{GIB}\n")
    (folder / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    return tmp_path / "fs", own


@pytest.fixture
def second(tmp_path):
    """A machine with the second version."""
    own = tmp_path / "cgroup"
    own.write_text("0::/a/b\n")
    folder = tmp_path / "fs" / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "memory.max").write_text("max\n")
    (folder.parent / "memory.max").write_text(f"{2 * GIB}\n")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n")
    return tmp_path / "fs", own


def test_the_limit_is_the_least_on_the_way_up(first):
    assert limit_bytes(*first) == GIB
    assert kill_count(*first) == 3


def test_the_second_version_says_max_where_there_is_none(second):
    assert limit_bytes(*second) == 2 * GIB
    assert kill_count(*second) == 1


def test_inside_a_container_the_files_of_the_group_lie_at_the_top(tmp_path):
    (tmp_path / "cgroup").write_text("4:memory:/docker/0123\n0::/../outside\n")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(str(GIB))
    assert limit_bytes(tmp_path, tmp_path / "cgroup") == GIB


def test_without_control_groups_there_is_no_limit(tmp_path):
    assert limit_bytes(tmp_path, tmp_path / "none") is None
    assert kill_count(tmp_path, tmp_path / "none") == 0
    assert machine_bytes(tmp_path, tmp_path / "none") == PHYSICAL


def test_memory_is_the_containers_or_the_machines_whichever_is_less(first):
    assert machine_bytes(*first) == min(GIB, PHYSICAL)
    (first[0] / "memory" / "jobs" / "one" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert machine_bytes(*first) == PHYSICAL


def test_what_the_process_holds_is_resident_memory_without_that_of_files(tmp_path):
    (tmp_path / "statm").write_text("90000 5000 2000 1 0 30000 0\n")
    assert anonymous_bytes(tmp_path / "statm") == 3000 * os.sysconf("SC_PAGE_SIZE")
    assert anonymous_bytes(tmp_path / "none") == 0
    assert resident_bytes(tmp_path / "statm") == 5000 * os.sysconf("SC_PAGE_SIZE")
    assert resident_bytes(tmp_path / "none") == 0
    before = anonymous_bytes()
    held = bytearray(b"x" * (64 << 20))
    assert anonymous_bytes() - before > len(held) // 2
