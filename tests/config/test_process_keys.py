"""Options of processes that a job sets are found, with the place where they are set."""

import pytest

from engine.config.command_line import CommandLine, install_command_line
from engine.config.loader import load_configuration
from engine.config.options import all_options
from engine.config.process_keys import PROCESS_KEYS, without_effect


@pytest.fixture
def command_line(monkeypatch, tmp_path):
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path))
    yield lambda **options: install_command_line(CommandLine({key.replace("__", "."): options[key] for key in options}))
    install_command_line(CommandLine())


def test_those_of_a_command_line_and_a_script_have_no_effect(command_line, tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("taskmanager.numberOfTaskSlots: 3\n")
    monkeypatch.setenv("DREY_JOBSTORE_MAX_CAPACITY", "5")
    command_line(heartbeat__timeout="1 h", parallelism__default="2")
    found = without_effect(load_configuration({"user.limit.slots": 4, "restart-strategy.type": "none"}))
    assert found == [("heartbeat.timeout", "command line"), ("user.limit.slots", "script")]


def test_each_beginning_is_that_of_an_option():
    keys = [option.key for option in all_options()]
    assert [begin for begin in PROCESS_KEYS if not any(key.startswith(begin) for key in keys)] == []
