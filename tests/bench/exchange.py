"""Row pages between two processes against the bare socket, in one run: ``python -m tests.bench.exchange``.

Pages of 32 KiB go from this process to a child that recycles them at once: first by sendall and recv_into alone, then
through partition, credits, frames, checksums and gate, on one and on four channels, plain and within TLS, in turns.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from engine.exchange.buffer_pool import NetworkBufferPool
from engine.exchange.input_gate import InputGate
from engine.exchange.partition_manager import ResultPartitionManager
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from engine.rpc.tls import Tls, make_tls
from engine.transport.data_plane import DataPlane, DataPlaneSettings
from tests.exchange.world import World, descriptor, partition_id

PAGE = 32768
PAGES = int(os.environ.get("PAGES", "40000"))
ROUNDS = 3
CERTIFICATES = Path(__file__).parents[2] / "bin" / "make-certificates.sh"


class Measured(NamedTuple):
    """One run, or the best of several: GB/s, and seconds of processor time of both processes for a GB."""

    rate: float = 0.0
    cpu_s: float = float("inf")

    def best(self, other: Measured) -> Measured:
        """Return the better of both numbers."""
        return Measured(max(self.rate, other.rate), min(self.cpu_s, other.cpu_s))


class Stopwatch:
    """Wall and processor time from here to the end of a child process."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._cpu_began = time.process_time()

    def stop(self, child: int) -> Measured:
        """Wait for the child and return what the pages took."""
        _, _, usage = os.wait4(child, 0)
        gigabytes = PAGE * PAGES / 1e9
        cpu_s = time.process_time() - self._cpu_began + usage.ru_utime + usage.ru_stime
        return Measured(gigabytes / (time.perf_counter() - self._began), cpu_s / gigabytes)


def in_child(work: Callable[[], None]) -> int:
    """Run work in a forked child; returns its process id."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def bare_rate(family: socket.AddressFamily) -> Measured:
    """Return the rate of a socket that carries the same pages."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(family) as listener:
        listener.bind(("127.0.0.1", 0) if family == socket.AF_INET else f"{folder}/socket")
        listener.listen()

        def receive() -> None:
            with socket.socket(family) as reader:
                reader.connect(listener.getsockname())
                page = memoryview(bytearray(PAGE))
                for _ in range(PAGES):
                    reader.recv_into(page, PAGE, socket.MSG_WAITALL)
                reader.send(b"!")

        child = in_child(receive)
        writer, _ = listener.accept()
        page = bytes(PAGE)
        stopwatch = Stopwatch()
        with writer:
            for _ in range(PAGES):
                writer.sendall(page)
            writer.recv(1)
        return stopwatch.stop(child)


def exchange_rate(way: int, channel_count: int, tls: Tls | None = None) -> Measured:
    """Return the rate of partitions that are read over the UNIX socket (way 0) or TCP (way 1)."""
    settings = DataPlaneSettings("bench", tls=tls)
    address_in, address_out = os.pipe()

    def receive() -> None:
        os.close(address_out)
        address = os.read(address_in, 4096).decode().split("|")[way]
        plane = DataPlane(ResultPartitionManager(), settings)
        channels = tuple(
            InputChannelDescriptor(partition_id(number), PartitionLocation.REMOTE, 0, address)
            for number in range(channel_count)
        )
        pool = NetworkBufferPool(256, PAGE)
        gate = InputGate(
            channels,
            ResultPartitionManager(),
            reads=plane.reads(pool, channel_count, None),
        )
        while (page := gate.next()) is not None:
            page.recycle()
        gate.close()

    child = in_child(receive)
    os.close(address_in)
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), 256, PAGE)
        plane = DataPlane(world.manager, settings)
        plane.start()
        partitions = [
            world.partition(descriptor(1, "GLOBAL", identity=partition_id(number))) for number in range(channel_count)
        ]
        content = bytes(PAGE)
        for partition in partitions:  # every page of the pools is warm
            buffers = [partition.request_buffer() for _ in range(partition.pool.maximum // 2)]
            for buffer in buffers:
                buffer.fill(content)
                buffer.recycle()
        os.write(address_out, plane.address.encode())
        os.close(address_out)
        stopwatch = Stopwatch()
        for number in range(PAGES):
            partition = partitions[number % channel_count]
            buffer = partition.request_buffer()
            buffer.fill(content)
            partition.add(buffer, 0)
        for partition in partitions:
            partition.finish()
        measured = stopwatch.stop(child)
        plane.close()
        world.close()
    return measured


def made_tls(folder: str) -> Tls:
    """Return contexts with certificates of their own."""
    subprocess.run([CERTIFICATES, folder], check=True, capture_output=True)
    return make_tls(*(Path(folder) / name for name in ("cluster.pem", "cluster.key", "ca.pem")))


def main() -> None:
    """Print the table: the best of some rounds, each way once in every round."""
    with tempfile.TemporaryDirectory() as folder:
        tls = made_tls(f"{folder}/tls")
        ways = (("UNIX", 0, socket.AF_UNIX, None), ("TCP", 1, socket.AF_INET, None), ("TLS", 1, socket.AF_INET, tls))
        for channel_count in (1, 4):
            bare, rates = dict.fromkeys(ways, Measured()), dict.fromkeys(ways, Measured())
            for _ in range(ROUNDS):
                for way in ways:
                    bare[way] = bare[way].best(bare_rate(way[2]))
                    rates[way] = rates[way].best(exchange_rate(way[1], channel_count, way[3]))
            for way in ways:
                own, socket_alone, tcp = rates[way], bare[way], rates[ways[1]]
                sys.stdout.write(
                    f"{way[0]:4} {channel_count} channels: {own.rate:.2f} GB/s, {own.cpu_s:.2f} CPU s/GB; bare socket "
                    f"{socket_alone.rate:.2f}, {socket_alone.cpu_s:.2f}; rate to the bare socket's "
                    f"{own.rate / socket_alone.rate:.2f}, to TCP's {own.rate / tcp.rate:.2f}\n"
                )


if __name__ == "__main__":
    main()
