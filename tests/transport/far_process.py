"""A TaskManager's exchange in a process of its own: python -m tests.transport.far_process FOLDER KIND (rows | endless).

Prints its data address, produces one partition of two subpartitions, and ends when its standard input does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from engine.errors import PartitionReleasedError, TaskCancelledError
from engine.transport.data_plane import DataPlane, DataPlaneSettings
from tests.exchange.world import PIPELINED, World, descriptor

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
BATCHES = 50
ROWS = 200


def batch_of(number: int) -> pa.RecordBatch:
    keys = range(number * ROWS, (number + 1) * ROWS)
    return pa.record_batch({"k": list(keys), "s": [f"row {key}" for key in keys]}, schema=SCHEMA)


def main(folder: str, kind: str, amount: str) -> None:
    world = World(Path(folder))
    plane = DataPlane(world.manager, DataPlaneSettings("test"))
    plane.start()
    described = descriptor(2, kind, ["k"] if kind == "HASH" else [], PIPELINED)
    writer = world.writer(world.partition(described), SCHEMA)

    def produce() -> None:
        try:
            number = 0
            while amount == "endless" or number < BATCHES:
                writer.emit(batch_of(number))
                number += 1
            writer.finish()
        except (PartitionReleasedError, TaskCancelledError):
            pass
        finally:
            writer.close()

    world.run(produce)
    sys.stdout.write(plane.address + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    plane.close()
    world.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
