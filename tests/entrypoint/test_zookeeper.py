"""ZooKeeper servers from PySpark's jars: checked, started, ready, stopped."""

import subprocess

import pytest

from engine.entrypoint import zookeeper
from engine.entrypoint.zookeeper_config import read_quorum
from engine.errors import ConfigurationError
from tests.ha.quorum import ROOT, Quorum, needs_quorum, until

pytestmark = pytest.mark.processes


@pytest.fixture
def quorum(tmp_path):
    made = Quorum(tmp_path, 3)
    yield made
    made.stop()


@needs_quorum
def test_three_servers_are_a_quorum_when_the_script_returns_and_gone_when_it_stopped_them(quorum):
    said = quorum.start()
    assert said.count("Started zookeeper ") == 3
    assert sorted(quorum.mode(number) for number in quorum.servers) == ["follower", "follower", "leader"]
    assert len(quorum.pids()) == 3
    done = quorum.run("zookeeper", "start", "2")
    assert done.returncode == 1
    assert "is taken: another ZooKeeper server?" in done.stderr
    assert len(quorum.pids()) == 3
    quorum.kill(2)
    said = quorum.start()
    assert (said.count("is already running on"), said.count("Started zookeeper ")) == (2, 1)
    assert sorted(quorum.mode(number) for number in quorum.servers) == ["follower", "follower", "leader"]
    assert quorum.stop().count("Stopping zookeeper daemon") == 3
    assert quorum.pids() == []
    assert not any(quorum.mode(number) for number in quorum.servers)


@needs_quorum
def test_one_server_of_three_starts_alone_and_serves_when_another_one_came(quorum):
    assert quorum.run("zookeeper", "start", "1").returncode == 0
    assert quorum.mode(1) == ""
    assert quorum.run("zookeeper", "start", "3").returncode == 0
    until(lambda: quorum.mode(1) and quorum.mode(3), "a quorum of two")
    done = quorum.run("zookeeper", "start", "4")
    assert (done.returncode, "has no server.4" in done.stderr) == (1, True)


def test_without_java_one_line_says_what_is_missing(quorum):
    quorum.environment |= {"PATH": str(quorum.folder), "JAVA_HOME": str(quorum.folder)}
    done = quorum.run("zookeeper", "start", "1")
    assert done.returncode == 1
    assert "ZooKeeper needs Java 17 or 21: set JAVA_HOME" in done.stderr


def configured(folder, text):
    path = folder / "zoo.cfg"
    path.write_text(text)
    return read_quorum(path)


@needs_quorum
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_classes_are_recorded_on_a_machine_of_either_family(tmp_path, monkeypatch, host):
    monkeypatch.setattr(zookeeper, "_LOOPBACKS", ("192.0.2.1", host))
    archive = tmp_path / "classes.jsa"
    zookeeper._record_classes(zookeeper._find_java(), zookeeper._class_path(), archive, tmp_path)
    assert archive.stat().st_size > 1 << 20


def test_without_servers_there_is_one_on_this_machine(tmp_path):
    quorum = read_quorum(tmp_path / "zoo.cfg")
    assert quorum.servers == {1: "localhost:2888:3888"}
    assert quorum.client_address(1) == ("127.0.0.1", 2181)
    quorum.check(6000)


@pytest.mark.parametrize(
    ("host", "place", "own"),
    [("0.0.0.0", "0.0.0.0:2181", "127.0.0.1"), ("::", "[::]:2181", "::1"), ("[fd00::4]", "[fd00::4]:2181", "fd00::4")],
)
def test_people_are_told_where_it_listens_and_it_is_asked_on_its_own_machine(tmp_path, host, place, own):
    quorum = configured(tmp_path, f"clientPortAddress={host}\n")
    assert quorum.place(1) == place
    assert quorum.client_address(1) == (own, 2181)


def test_the_shipped_file_names_one_server_and_fits_the_default_session():
    quorum = read_quorum(ROOT / "conf" / "zoo.cfg")
    assert list(quorum.servers) == [1]
    quorum.check(6000)


def test_servers_of_one_machine_have_ports_and_folders_of_their_own(tmp_path):
    quorum = configured(
        tmp_path, "clientPort=7000\nserver.1=a:1:2\nserver.2=b:1:2\nserver.5=a:3:4\nserver.7=[::1]:1:2\n"
    )
    assert [quorum.client_port(number) for number in (1, 2, 5, 7)] == [7000, 7000, 7001, 7000]
    assert [quorum.host(number) for number in (1, 2, 5, 7)] == ["a", "b", "a", "::1"]
    assert quorum.folder(1) != quorum.folder(5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tickTime=2000\n", "tickTime x syncLimit is 4000 ms, more than half"),
        ("maxSessionTimeout=5000\n", "sessions last from 1000 to 5000 ms"),
        ("tickTime=100\n", "sessions last from 200 to 2000 ms"),
        ("tickTime=often\n", "tickTime=often is not a whole number"),
        ("server.1=here\n", "write server.1=host:port:port"),
        ("tickTime 500\n", "write key=value"),
    ],
)
def test_a_file_that_would_lose_sessions_is_refused(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message):
        configured(tmp_path, text).check(6000)


def test_the_scripts_say_how_they_are_called():
    for name, words in (
        ("zookeeper.sh", ["start"]),
        ("start-zookeeper-quorum.sh", ["x"]),
        ("stop-zookeeper-quorum.sh", ["x"]),
    ):
        done = subprocess.run([ROOT / "bin" / name, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(f"Usage: {name}")
