"""Who waits for a connection: together when it fails, no longer than wanted."""

import socket
import threading
import time

import pytest

from engine.errors import PartitionConnectionError, TaskCancelledError
from engine.transport import connection_manager
from engine.transport.connection_manager import ConnectionManager
from engine.transport.data_plane import DataPlane, DataPlaneSettings
from engine.transport.handshake import Greeting
from tests.exchange.world import World

WAIT_S = 60.0


@pytest.fixture
def silent():
    """Return the address of somebody who takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def manager(monkeypatch):
    monkeypatch.setattr(connection_manager, "HANDSHAKE_S", 1.0)
    made = ConnectionManager(Greeting("cluster"))
    yield made
    made.close()
    deadline = time.monotonic() + WAIT_S
    while any(thread.name.startswith("data-open-") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_those_who_wait_for_the_same_silent_machine_fail_together(manager, silent):
    failures = []

    def acquire():
        try:
            manager.acquire(silent)
        except PartitionConnectionError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=acquire) for _ in range(40)]
    began_s = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 40
    assert len(set(failures)) == 1
    assert time.monotonic() - began_s < 30  # one after the other they take forty seconds at least


def test_who_is_cancelled_waits_no_longer(manager, silent, monkeypatch):
    monkeypatch.setattr(connection_manager, "HANDSHAKE_S", WAIT_S)
    cancelled = threading.Event()
    outcome = []

    def acquire():
        try:
            manager.acquire(silent, cancelled.is_set)
        except TaskCancelledError:
            outcome.append(any(thread.name.startswith("data-open-") for thread in threading.enumerate()))

    thread = threading.Thread(target=acquire)
    thread.start()
    cancelled.set()
    thread.join()
    assert outcome == [True], "it waited until the machine was given up"
    assert manager.connection_count == 0


def test_a_machine_that_was_given_up_is_asked_again_by_the_next(manager, silent):
    for _ in range(2):
        with pytest.raises(PartitionConnectionError, match="no data connection"):
            manager.acquire(silent)


def test_the_server_ends_too_when_the_connections_cannot(tmp_path, monkeypatch):
    def refuse(_manager):
        raise OSError("the connections do not end")

    world = World(tmp_path)
    plane = DataPlane(world.manager, DataPlaneSettings("test"))
    plane.start()
    monkeypatch.setattr(ConnectionManager, "close", refuse)
    with pytest.raises(OSError, match="the connections do not end"):
        plane.close()
    monkeypatch.undo()
    assert not any(thread.name.startswith("data-") for thread in threading.enumerate())
    plane.close()
    world.close()


def test_a_server_closes_what_is_left_when_a_part_of_it_fails(tmp_path, monkeypatch):
    def refuse():
        raise OSError("no room for a log line")

    world = World(tmp_path)
    plane = DataPlane(world.manager, DataPlaneSettings("test", bind_host="127.0.0.1", with_unix=False))
    plane.start()
    port = int(plane.address.rpartition(":")[2])
    monkeypatch.setattr(plane.server._refused, "close", refuse)
    with pytest.raises(OSError, match="no room for a log line"):
        plane.close()
    monkeypatch.undo()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), WAIT_S)
    plane.close()
    world.close()
