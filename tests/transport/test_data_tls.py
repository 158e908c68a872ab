"""The data plane within mutual TLS: the same rows, and everybody refused who should be, clearly and in time."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import PartitionConnectionError
from engine.exchange.page_reader import gate_batches
from engine.exchange.partition_manager import ResultPartitionManager
from engine.rpc.credentials import Credentials
from engine.rpc.tls import Tls
from engine.transport import connection_manager, data_server
from engine.transport.data_plane import DataPlane, DataPlaneSettings
from engine.transport.handshake import Greeting
from tests.exchange.world import BLOCKING, PIPELINED, descriptor, partition_id
from tests.rpc.served import until
from tests.rpc.test_tls import contexts
from tests.transport.far_process import SCHEMA, batch_of
from tests.transport.remote_world import RemoteWorld
from tests.transport.test_remote_channels import BATCHES, produce, read_all, rows_of
from tests.transport.test_remote_channels import SCHEMA as WIDE_SCHEMA
from tests.transport.test_remote_faults import FlippingProxy, gate_at, reason_of_the_end

SECRET = Credentials(b"s" * 32)


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Any]:
    worlds: list[RemoteWorld] = []

    def make(near: Tls | None, far: Tls | None, with_unix: bool = False, **options: Any) -> RemoteWorld:
        worlds.append(
            RemoteWorld(tmp_path, with_unix, near_options={"tls": near}, tls=far, credentials=SECRET, **options)
        )
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.mark.parametrize("segment_size", [512, 4096, 64 << 10, 512 << 10])
def test_rows_come_whole_whatever_the_size_of_buffers_and_tls_records(
    make_world: Any, own: Path, segment_size: int
) -> None:
    tls = contexts(own)
    world = make_world(tls, tls, segment_size=segment_size)
    for number, (kind, result_type) in enumerate(
        (("HASH", PIPELINED), ("HASH", BLOCKING), ("FORWARD", PIPELINED), ("BROADCAST", BLOCKING))
    ):
        count = 1 if kind == "FORWARD" else 2
        described = descriptor(count, kind, ["k"] if kind == "HASH" else [], result_type, partition_id(number))
        produce(world.far, world.far.partition(described))
        got = [read_all(world.near, world.gate([described.id], index)) for index in range(count)]
        world.join()
        copies = count if kind == "BROADCAST" else 1
        expected = [row for row in rows_of(BATCHES) for _ in range(copies)]
        assert rows_of(batch for one in got for batch in one) == expected


@pytest.mark.parametrize("is_sealed", [False, True])
def test_what_travels_is_sealed(make_world: Any, own: Path, is_sealed: bool) -> None:
    tls = contexts(own) if is_sealed else None
    world = make_world(tls, tls)
    produce(world.far, world.far.partition(descriptor(1, "GLOBAL")), [batch_of(0)])
    address = world.far_plane.server.address
    proxy = FlippingProxy(address.host, address.port, -1, False)
    gate = gate_at(world, proxy.address)
    assert sum(batch.num_rows for batch in gate_batches(gate, SCHEMA)) == batch_of(0).num_rows
    gate.close()
    proxy.close()
    world.join()
    for text in (b"row 17", b"DREY"):
        assert (text in proxy.seen) != is_sealed


def test_on_one_host_the_unix_socket_is_plain(make_world: Any, own: Path) -> None:
    world = make_world(None, contexts(own), with_unix=True)
    partition = world.far.partition(descriptor(1, "GLOBAL"))
    produce(world.far, partition)
    got = read_all(world.near, world.gate([partition.id]))
    world.join()
    assert len(rows_of(got)) == 5005
    assert got[0].schema == WIDE_SCHEMA


READERS = {
    "foreign": "refuses the certificate of this process",
    "expired": "refuses the certificate of this process",
    "none": "refuses the certificate of this process",
    "plain": "the other side speaks TLS",
}
WRITERS = {
    "foreign": "does not trust the other side's certificate: .*certificate",
    "expired": "does not trust the other side's certificate: certificate has expired",
    "elsewhere": "does not trust the other side's certificate: .*not valid for",
    "plain": "closed the connection during the TLS handshake",
}
COMPLAINTS = {
    "foreign": "does not trust the other side's certificate",
    "expired": "does not trust the other side's certificate: certificate has expired",
    "none": "shows no certificate",
    "plain": "does not speak TLS",
}


def tls_of(name: str, own: Path, foreign: Path) -> Tls | None:
    good = contexts(own)
    if name == "plain":
        return None
    if name == "none":
        return Tls(good.server, ssl.create_default_context(cafile=own / "ca.pem"))
    return contexts(foreign, authority=own) if name == "foreign" else contexts(own, name)


def refused(world: RemoteWorld, caplog: pytest.LogCaptureFixture, match: str) -> str:
    """Have the reader refused or refuse; returns the one line that the writer logs."""
    partition = world.far.partition(descriptor(1, "GLOBAL"))
    gate = gate_at(world, str(world.far_plane.server.address))
    with caplog.at_level(logging.WARNING, "engine.transport.data_server"):
        with pytest.raises(PartitionConnectionError, match=match) as caught:
            gate.next()
        until(lambda: world.far_plane.server.connection_count == 0, "the end of the connection")
    gate.close()
    partition.release()
    assert str(world.far_plane.server.address.port) in str(caught.value)
    assert "\n" not in str(caught.value)
    (record,) = caplog.records
    assert not world.far_plane.server._servers
    return record.getMessage()


@pytest.mark.parametrize("reader", READERS)
def test_a_writer_refuses_a_reader_without_a_good_certificate(
    make_world: Any, own: Path, foreign: Path, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(tls_of(reader, own, foreign), contexts(own))
    line = refused(world, caplog, READERS[reader])
    assert "a data connection from 127.0.0.1:" in line
    assert COMPLAINTS[reader] in line


@pytest.mark.parametrize("writer", WRITERS)
def test_a_reader_refuses_a_writer_of_another_authority_or_name_or_past_its_date(
    make_world: Any, own: Path, foreign: Path, writer: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(contexts(own), tls_of(writer, own, foreign))
    line = refused(world, caplog, WRITERS[writer])
    assert "refuses the certificate of this process" in line or "greeting cannot be read" in line


def test_a_certificate_alone_is_not_the_secret(make_world: Any, own: Path, caplog: pytest.LogCaptureFixture) -> None:
    tls = contexts(own)
    world = make_world(tls, tls)
    world.near_plane.connections._greeting = Greeting("test", Credentials(b"t" * 32))
    assert "closed the connection" in refused(world, caplog, "another cluster secret")


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01\x02\x00", b"\x16\x03\x01"])
def test_a_reader_that_never_ends_its_hello_is_let_go_in_time(
    make_world: Any, own: Path, hello: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(data_server, "HANDSHAKE_S", 0.3)
    world = make_world(contexts(own), contexts(own))
    address = world.far_plane.server.address
    with (
        caplog.at_level(logging.WARNING, "engine.transport.data_server"),
        socket.create_connection((address.host, address.port), timeout=60) as slow,
    ):
        slow.sendall(hello)
        assert slow.recv(1) == b""
        until(lambda: len(caplog.records) == 1, "the log line")
    assert "did not greet within 0.3 s" in caplog.records[0].getMessage()


def test_a_reader_that_sends_its_hello_byte_by_byte_has_one_deadline_for_all(
    make_world: Any, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_server, "HANDSHAKE_S", 0.5)
    world = make_world(contexts(own), contexts(own))
    address = world.far_plane.server.address
    with socket.create_connection((address.host, address.port)) as slow:
        slow.settimeout(0.1)
        slow.sendall(b"\x16\x03\x01\x40\x00")
        assert bytes_taken(slow) < 600, "a minute of bytes, each well in time"


def bytes_taken(connection: socket.socket) -> int:
    """Send a byte whenever nothing comes for a time; return how many there were when the other side closed."""
    count = 0
    with contextlib.suppress(ConnectionError):  # whoever closes with bytes unread resets
        while True:
            try:
                if not connection.recv(1):
                    break
            except TimeoutError:
                connection.sendall(b"\x01")
                count += 1
    return count


def test_a_writer_that_says_nothing_is_an_error_in_time(
    make_world: Any, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_manager, "HANDSHAKE_S", 0.3)
    world = make_world(contexts(own), None)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gate = gate_at(world, f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(PartitionConnectionError, match=r"did not greet within 0\.3 s"):
            gate.next()
        gate.close()


@pytest.mark.thorough
@pytest.mark.parametrize("towards_reader", [True, False])
@pytest.mark.parametrize("flip_at", [5, 100, 900, 1500, 2600, 5000, 40_000])
def test_a_flipped_bit_within_tls_is_an_error_and_never_a_wrong_row(
    make_world: Any, own: Path, flip_at: int, towards_reader: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_server, "MESSAGE_S", 0.5)  # a record that became longer does not end
    tls = contexts(own)
    world = make_world(tls, tls)
    reason_of_the_end(world, lambda host, port: FlippingProxy(host, port, flip_at, towards_reader))


def test_mutual_tls_lets_a_server_start_off_loopback_without_a_secret(own: Path) -> None:
    plane = DataPlane(ResultPartitionManager(), DataPlaneSettings(bind_host="0.0.0.0", tls=contexts(own)))
    plane.start()
    plane.close()
