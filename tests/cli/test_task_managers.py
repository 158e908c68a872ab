"""What ``taskmanager list``, ``drain`` and ``stop`` print, and which TaskManager they take."""

import json
from argparse import Namespace
from itertools import chain, repeat

import pytest

from engine.cli import task_managers
from engine.cli.task_managers import drain_task_manager, list_task_managers, stop_task_manager
from engine.errors import ConfigurationError, EngineError

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
        self.ids, self.left = {"aa11": "RUNNING", "aa22": "DRAINING"}, []

    def document(self, path):
        if path == "/taskmanagers":
            return {"taskmanagers": [{"id": each} for each in self.ids], "left": self.left}
        key = path.rpartition("/")[2]
        slots = {"slotsNumber": 4, "freeSlots": 1, "version": "0.2.0", "host": "east\x1b[2J"}
        metrics = METRICS if key == "aa11" else {}
        return {"id": key, "state": self.ids[key], "metrics": metrics, **slots}

    def change(self, target):
        self.changes.append(target)
        self.left.append(target.partition("?")[0].rpartition("/")[2])
        self.ids.pop(self.left[-1])


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


class Leaving(Client):
    """One whose details cannot be had; it has left by then, or has not."""

    def __init__(self, *, has_left):
        super().__init__()
        self._has_left = has_left

    def document(self, path):
        if path == "/taskmanagers/aa22":
            if self._has_left:
                del self.ids["aa22"]
            raise EngineError("no TaskManager of that id is registered")
        return super().document(path)


def test_one_that_leaves_while_all_are_listed_is_left_out(capsys):
    assert list_task_managers(options(), Leaving(has_left=True)) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ID", "aa11"]
    with pytest.raises(EngineError, match="no TaskManager of that id"):
        list_task_managers(options(), Leaving(has_left=False))


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


class Answers(Client):
    """What leaders say one after the other of the TaskManager aa11; then the last answer again."""

    def __init__(self, *answers):
        super().__init__()
        self._answers, self.asked = chain([(True, False)], answers, repeat(answers[-1])), -1

    def document(self, path):
        self.asked += 1
        known, left = next(self._answers)
        return {"taskmanagers": [{"id": "aa11"}] * known, "left": ["aa11"] * left}

    def change(self, target):
        self.changes.append(target)


def drained(client, capsys):
    asked = Namespace(json=True, taskmanager_id="aa11", wait=True)
    assert drain_task_manager(asked, client) == 0
    return json.loads(capsys.readouterr().out)["state"]


def test_one_that_a_new_leader_does_not_know_yet_is_waited_for(capsys, monkeypatch):
    monkeypatch.setattr(task_managers, "_LOOK_S", 0.0)
    client = Answers((True, False), (False, False), (True, False), (False, False), (False, True))
    assert drained(client, capsys) == "GONE"
    assert client.asked == 5


def test_one_that_is_lost_is_waited_for_as_long_as_it_could_come_back(capsys, monkeypatch):
    monkeypatch.setattr(task_managers, "_LOOK_S", 0.0)
    monkeypatch.setattr(task_managers, "_UNHEARD_S", 0.05)
    assert drained(Answers((True, False), (False, False)), capsys) == "LOST"
