"""Lines of ``conf/masters``: hosts and ports, over both families."""

import pytest

from engine.entrypoint.places import find_places
from engine.entrypoint.scripts import _masters
from engine.errors import ConfigurationError


@pytest.fixture
def masters(tmp_path, monkeypatch):
    monkeypatch.setenv("DREY_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("DREY_PID_DIR", str(tmp_path))

    def read(line):
        (tmp_path / "masters").write_text(f"{line}  # a host\n")
        return _masters(find_places(), ["-Dhigh-availability.type=ZOOKEEPER"])

    return read


@pytest.mark.parametrize(
    ("line", "host", "words"),
    [
        ("jm-1", "jm-1", ["jm-1"]),
        ("jm-1:8081", "jm-1", ["jm-1", "8081"]),
        ("10.0.0.1:8081", "10.0.0.1", ["10.0.0.1", "8081"]),
        ("fd00::1", "fd00::1", ["fd00::1"]),
        ("[fd00::1]", "fd00::1", ["fd00::1"]),
        ("[fd00::1]:8081", "fd00::1", ["fd00::1", "8081"]),
        ("[::1]:8081", "::1", ["::1", "8081"]),
    ],
)
def test_a_line_is_a_host_and_what_its_script_is_told(masters, line, host, words):
    assert masters(line) == [(host, words)]


@pytest.mark.parametrize("line", ["jm-1:http", "jm-1:", "[fd00::1]:x", "jm:1:2"])
def test_a_line_that_is_neither_is_named(masters, line):
    with pytest.raises(ConfigurationError, match="is no host or host:port") as raised:
        masters(line)
    assert repr(line) in str(raised.value)
