"""Row pages between two processes against the bare socket, in one run: ``python -m tests.bench.exchange``.

Pages of 32 KiB go from this process to a child that recycles them at once: first by sendall and recv_into alone, then
through partition, credits, frames, checksums and gate, on one and on four channels.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine.exchange.buffer_pool import NetworkBufferPool
from engine.exchange.data_plane import DataPlane, DataPlaneSettings
from engine.exchange.input_gate import InputGate
from engine.exchange.partition_manager import ResultPartitionManager
from engine.graph.deployment import InputChannelDescriptor, InputGateDescriptor, PartitionLocation
from tests.exchange.world import NO_SCHEMA, PIPELINED, World, descriptor, partition_id

PAGE = 32768
PAGES = 40_000


def in_child(work: Callable[[], None]) -> int:
    """Run work in a forked child; returns its process id."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def bare_rate(family: socket.AddressFamily) -> float:
    """Return GB/s of a socket that carries the same pages."""
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
        began = time.perf_counter()
        with writer:
            for _ in range(PAGES):
                writer.sendall(page)
            writer.recv(1)
        taken = time.perf_counter() - began
        os.waitpid(child, 0)
    return PAGE * PAGES / taken / 1e9


def exchange_rate(way: int, channel_count: int) -> float:
    """Return GB/s of partitions that are read over the UNIX socket (way 0) or TCP (way 1)."""
    address_in, address_out = os.pipe()

    def receive() -> None:
        os.close(address_out)
        address = os.read(address_in, 4096).decode().split("|")[way]
        plane = DataPlane(ResultPartitionManager(), DataPlaneSettings("bench"))
        channels = tuple(
            InputChannelDescriptor(partition_id(number), PartitionLocation.REMOTE, 0, address)
            for number in range(channel_count)
        )
        pool = NetworkBufferPool(256, PAGE)
        gate = InputGate(
            InputGateDescriptor(0, NO_SCHEMA, PIPELINED, channels),
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
        plane = DataPlane(world.manager, DataPlaneSettings("bench"))
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
        began = time.perf_counter()
        for number in range(PAGES):
            partition = partitions[number % channel_count]
            buffer = partition.request_buffer()
            buffer.fill(content)
            partition.add(buffer, 0)
        for partition in partitions:
            partition.finish()
        os.waitpid(child, 0)
        taken = time.perf_counter() - began
        plane.close()
        world.close()
    return PAGE * PAGES / taken / 1e9


def main() -> None:
    """Print the table."""
    for way, (name, family) in enumerate((("UNIX", socket.AF_UNIX), ("TCP", socket.AF_INET))):
        bare = max(bare_rate(family) for _ in range(3))
        for channel_count in (1, 4):
            rate = max(exchange_rate(way, channel_count) for _ in range(3))
            sys.stdout.write(
                f"{name:4} {channel_count} channels: {rate:.2f} GB/s, bare socket {bare:.2f}, ratio {rate / bare:.2f}\n"
            )


if __name__ == "__main__":
    main()
