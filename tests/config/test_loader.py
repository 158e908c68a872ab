"""Settings: layers, types, origins, and errors that say what to do."""

import re
from pathlib import Path

import pytest

from engine.config.command_line import CommandLine, given_once, install_command_line
from engine.config.config_file import read_config_file
from engine.config.loader import configuration_from_texts, load_configuration, variable_name
from engine.config.network_options import ALLOWED_HOSTS, REST_ADDRESS, TASK_MANAGER_HOST
from engine.config.options import (
    BUFFER_TIMEOUT,
    MANAGED_SIZE,
    PARALLELISM_DEFAULT,
    SEGMENT_SIZE,
    all_options,
    find_option,
)
from engine.errors import ConfigurationError


@pytest.fixture(autouse=True)
def own_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path))
    yield
    install_command_line(CommandLine())


def test_each_layer_beats_the_one_below(tmp_path, monkeypatch):
    assert load_configuration().get(PARALLELISM_DEFAULT) is None
    (tmp_path / "config.yaml").write_text("parallelism:\n  default: 2\n")
    assert load_configuration().get(PARALLELISM_DEFAULT) == 2
    monkeypatch.setenv("DREY_PARALLELISM_DEFAULT", "3")
    assert load_configuration().get(PARALLELISM_DEFAULT) == 3
    install_command_line(CommandLine({"parallelism.default": "4"}))
    assert load_configuration().get(PARALLELISM_DEFAULT) == 4
    configuration = load_configuration({"parallelism.default": 5})
    assert configuration.get(PARALLELISM_DEFAULT) == 5
    assert configuration.origin("parallelism.default") == "script"


def test_nested_and_dotted_keys_are_equal_and_a_key_set_twice_is_refused(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("taskmanager:\n  memory:\n    managed.size: 16mb\n")
    assert read_config_file(path) == {"taskmanager.memory.managed.size": "16mb"}
    path.write_text("taskmanager.memory.managed.size: 1mb\ntaskmanager:\n  memory.managed.size: 16mb\n")
    with pytest.raises(ConfigurationError, match="set twice"):
        read_config_file(path)
    path.write_text(
        "taskmanager.host: a\ntaskmanager:\n  memory.managed.size: 16mb\n  memory:\n    segment-size: 4kb\n"
    )
    assert len(read_config_file(path)) == 3


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ("rest.port: 1\n# x\nrest.port: 2\n", "rest.port", "lines 1 and 3"),
        ("rest:\n  port: 1\n  port: 1\n", "rest.port", "lines 2 and 3"),
        ("rest.port:\nrest.port: 2\n", "rest.port", "lines 1 and 2"),
        ("rest:\n  port: 1\nparallelism.default: 2\nrest:\n  address: x\n", "rest:", "lines 1 and 4"),
        ("{rest.port: 1, rest.port: 2}\n", "rest.port", "line 1"),
    ],
)
def test_a_key_that_stands_twice_in_the_file_is_an_error_with_its_lines(tmp_path, text, key, lines):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=f"{key} is set twice, in {lines}"):
        load_configuration()


def test_a_key_that_a_script_sets_twice_is_an_error():
    with pytest.raises(ConfigurationError, match=r"rest\.port is set twice"):
        load_configuration({"rest.port": 1, "rest": {"port": 2}})


def test_an_unknown_key_suggests_the_nearest():
    with pytest.raises(ConfigurationError, match=r"did you mean parallelism\.default\?"):
        load_configuration({"paralelism.default": 2})


def test_an_unknown_variable_suggests_the_nearest(monkeypatch):
    monkeypatch.setenv("DREY_PARALELISM_DEFAULT", "3")
    with pytest.raises(ConfigurationError, match=r"did you mean DREY_PARALLELISM_DEFAULT\?"):
        load_configuration()


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("parallelism.default", "two", "'two' is not of type int"),
        ("parallelism.default", 0, "less than 1"),
        ("execution.mode", "FAST", "not one of PIPELINED"),
        ("taskmanager.memory.managed.size", "16 apples", "apples"),
        ("execution.buffer-timeout", "soon", "not a duration"),
        ("execution.buffer-timeout", "-2", "not a duration"),
        ("heartbeat.interval", "-1", "not a duration"),
        ("debug.force-spill", "perhaps", "neither true nor false"),
        ("taskmanager.host", "tm-1:8081", "without a port"),
        ("taskmanager.host", "tm 1", "is no host"),
        ("rest.address", "http://jm", "is no host"),
        ("web.allowed-hosts", "a,b:1", "without a port"),
    ],
)
def test_a_value_that_does_not_fit_names_key_origin_and_reason(key, value, text):
    with pytest.raises(ConfigurationError, match=text) as caught:
        load_configuration({key: value})
    assert str(caught.value).startswith(f"{key} (script)")


def test_values_are_typed_and_travel_as_text(monkeypatch):
    monkeypatch.delenv("DREY_PARALLELISM_MAX_PER_PROCESSOR")
    configuration = load_configuration({"taskmanager.memory.managed.size": "16mb", "debug.force-spill": True})
    assert configuration.get(MANAGED_SIZE) == 16 << 20
    assert configuration.get(SEGMENT_SIZE) == 32768
    assert configuration.get(BUFFER_TIMEOUT) == 100
    copy = configuration_from_texts(configuration.as_texts())
    assert copy.as_texts() == {"taskmanager.memory.managed.size": "16mb", "debug.force-spill": "true"}


def test_hosts_may_have_the_brackets_that_addresses_have(monkeypatch):
    texts = {"taskmanager.host": "[fd00::1]", "web.allowed-hosts": " jm.example, [::1],", "rest.address": " jm "}
    configuration = load_configuration(texts)
    assert configuration.get(TASK_MANAGER_HOST) == "fd00::1" and configuration.get(REST_ADDRESS) == "jm"
    assert configuration.get(ALLOWED_HOSTS) == ("jm.example", "::1")


def test_every_option_is_described_in_the_shipped_file_with_its_own_variable():
    shipped = (Path(__file__).parents[2] / "conf" / "config.yaml").read_text()
    names = {variable_name(option.key) for option in all_options()}
    assert len(names) == len(all_options())
    for option in all_options():
        assert f"{option.key}:" in shipped, option.key
        assert option.description.endswith(".")
        if option.default is not None:
            option.parse(option.default, "default")


def test_a_process_is_not_lost_before_its_first_heartbeat():
    with pytest.raises(ConfigurationError) as caught:
        load_configuration({"heartbeat.timeout": "5 s"})
    said = r"heartbeat\.interval \(10 s, default\) must be less than heartbeat\.timeout \(5 s, script\)"
    assert re.match(said, str(caught.value))
    load_configuration({"heartbeat.timeout": "5 s", "heartbeat.interval": "1 s"})


def test_settings_that_are_no_dict_are_refused():
    with pytest.raises(ConfigurationError, match="expected a dict"):
        load_configuration([("parallelism.default", 2)])


def test_the_shipped_file_names_options_only_with_values_that_fit_and_their_defaults():
    lines = (Path(__file__).parents[2] / "conf" / "config.yaml").read_text().splitlines()
    documented = [match for line in lines if (match := re.match(r"#? ?([\w.-]+\.[\w.-]+): *([^#]*?) *(?:#.*)?$", line))]
    assert sorted(match[1] for match in documented) == [option.key for option in all_options()], "each key once"
    for match in documented:
        option = find_option(match[1])
        assert option is not None, match[0]
        value = option.parse(match[2], "shipped file")
        if option.default:
            assert value == option.parse(option.default, "default"), match[0]


def test_a_key_has_one_value_on_the_command_line():
    assert given_once([("a", "1"), ("b", "2"), ("a", "1")]) == {"a": "1", "b": "2"}
    with pytest.raises(ConfigurationError, match="-D a is given twice, as '1' and as '2': leave one"):
        given_once([("a", "1"), ("a", "2")])
