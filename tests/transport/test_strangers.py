"""Strangers who hold connections to the data port open keep nobody out and get no thread."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.exchange.input_gate import NOTHING_YET
from engine.rpc.credentials import Credentials
from engine.transport import greeter
from engine.transport.data_address import DataAddress
from tests.exchange.world import descriptor
from tests.transport.remote_world import RemoteWorld

HELD_MAX = 8
WAIT_S = 30.0


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteWorld]:
    monkeypatch.setattr(greeter, "STRANGERS_MAX", HELD_MAX)
    made = RemoteWorld(tmp_path, with_unix=False, credentials=Credentials(b"s" * 32))
    yield made
    made.close()


def stranger(world: RemoteWorld, stack: contextlib.ExitStack) -> socket.socket:
    address = DataAddress.parse(world.far_plane.address)
    return stack.enter_context(socket.create_connection((address.host, address.port), WAIT_S))


def is_closed(connection: socket.socket, within_s: float) -> bool:
    connection.settimeout(within_s)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_a_real_peer_comes_in_past_strangers_who_get_no_threads(world: RemoteWorld) -> None:
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        strangers = [stranger(world, stack) for _ in range(5 * HELD_MAX)]
        assert is_closed(strangers[-HELD_MAX - 1], WAIT_S)
        assert threading.active_count() == before
        partition = world.far.partition(descriptor(1, "GLOBAL"))
        gate = world.gate([partition.id])
        assert gate.poll(0) is NOTHING_YET
        assert world.near_plane.connections.connection_count == 1
        gate.close()


def test_a_socket_that_somebody_removed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greeter, "RENEW_S", 0.01)
    world = RemoteWorld(tmp_path)
    path = Path(DataAddress.parse(world.far_plane.address).unix_path)
    shutil.rmtree(path.parent)
    deadline = time.monotonic() + WAIT_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    gate = world.gate([world.far.partition(descriptor(1, "GLOBAL")).id])
    assert gate.poll(0) is NOTHING_YET
    assert world.near_plane.connections.connection_count == 1
    gate.close()
    world.close()
    assert not path.parent.exists()


def test_the_strangers_who_were_there_first_go_first(world: RemoteWorld) -> None:
    with contextlib.ExitStack() as stack:
        strangers = [stranger(world, stack) for _ in range(HELD_MAX + 3)]
        assert all(is_closed(each, WAIT_S) for each in strangers[:3])
        assert not is_closed(strangers[3], 0.2)
        deadline = time.monotonic() + WAIT_S
        while world.far_plane.server.connection_count > HELD_MAX and time.monotonic() < deadline:
            time.sleep(0.01)
        assert world.far_plane.server.connection_count == HELD_MAX


def test_strangers_who_say_something_wrong_are_summed_up_in_few_lines(
    world: RemoteWorld, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(greeter, "_TELL_S", 1e9)
    with contextlib.ExitStack() as stack:
        for _ in range(3 * HELD_MAX):
            connection = stranger(world, stack)
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            assert is_closed(connection, WAIT_S)
    assert len([record for record in caplog.records if "was refused" in record.getMessage()]) == 1


def test_a_rare_warning_counts_what_it_passes_over(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = greeter.RareWarning(logging.getLogger("x"))
    for _ in range(3):
        rare.tell("refused")
    monkeypatch.setattr(greeter, "_TELL_S", 0.0)
    rare.tell("refused again")
    rare.close()
    assert [record.getMessage() for record in caplog.records] == [
        "refused",
        "refused again (and 2 more before it since the last such line)",
    ]
