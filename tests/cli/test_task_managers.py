"""What ``taskmanager list``, ``drain`` and ``stop`` print, and which TaskManager they take."""

import json
from argparse import Namespace

import pytest

from engine.cli.task_managers import drain_task_manager, list_task_managers, stop_task_manager
from engine.errors import ConfigurationError

METRICS = {
    "Status.Tasks.Running": 3.0,
    "Status.Process.Memory.Resident": 300_000_000,
    "Status.Disk.Used": 2_000_000,
    "Status.Disk.Free": 5_000_000_000,
}


class Client:
    """Two TaskManagers, one of which drains."""

    def __init__(self):
        self.changes = []
        self.ids = {"aa11": "RUNNING", "aa22": "DRAINING"}

    def document(self, path):
        if path == "/taskmanagers":
            return {"taskmanagers": [{"id": each} for each in self.ids]}
        key = path.rpartition("/")[2]
        slots = {"slotsNumber": 4, "freeSlots": 1, "version": "0.2.0", "host": "east\x1b[2J"}
        metrics = METRICS if key == "aa11" else {}
        return {"id": key, "state": self.ids[key], "metrics": metrics, **slots}

    def change(self, target):
        self.changes.append(target)
        self.ids.pop(target.partition("?")[0].rpartition("/")[2])


def options(**further):
    return Namespace(json=False, wait=False, **further)


def test_the_list_has_slots_tasks_memory_disk_version_and_state(capsys):
    assert list_task_managers(options(), Client()) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "STATE", "SLOTS", "TASKS", "MEMORY", "DISK", "VERSION", "HOST"]
    assert first.split()[:4] == ["aa11", "RUNNING", "3/4", "3"]
    assert "300.0 MB" in first and "2.0 MB, 5.0 GB free" in first and "0.2.0" in first
    assert "DRAINING" in second and " ? " in second
    assert "\x1b" not in first, "what a host says of itself moves no cursor"


def test_the_list_has_the_limit_where_there_is_one(capsys, monkeypatch):
    for folder in "ab":
        monkeypatch.setitem(METRICS, f"Status.Disk.Limit./{folder}", 10_000_000)
        monkeypatch.setitem(METRICS, f"Status.Disk.Counted./{folder}", 1_500_000)
    assert list_task_managers(options(), Client()) == 0
    assert "  3.0 MB of 20.0 MB  " in capsys.readouterr().out.splitlines()[1]


def test_an_id_is_as_long_as_it_must_be(capsys):
    client = Client()
    with pytest.raises(ConfigurationError, match="2 ids begin with it"):
        drain_task_manager(options(taskmanager_id="aa"), client)
    for unknown in ("bb", ""):
        with pytest.raises(ConfigurationError, match="taskmanager list"):
            drain_task_manager(options(taskmanager_id=unknown), client)
    assert client.changes == []
    assert drain_task_manager(options(taskmanager_id="aa2"), client) == 0
    assert client.changes == ["/taskmanagers/aa22?mode=drain"]
    assert "TaskManager aa22 drains" in capsys.readouterr().out


def test_stop_has_a_limit_and_says_when_it_is_gone(capsys):
    client = Client()
    asked = Namespace(json=True, taskmanager_id="aa11", timeout=2.5)
    assert stop_task_manager(asked, client) == 0
    assert client.changes == ["/taskmanagers/aa11?mode=stop&timeout=2.5"]
    assert json.loads(capsys.readouterr().out) == {"id": "aa11", "state": "GONE"}
