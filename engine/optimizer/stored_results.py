"""The memory that stored results take beside their rows, in plans of very many subtasks.

    crowding(optimized, process_bytes) ─► a text for the author of the plan, "" where there is nothing to say

Each producer notes for each consumer where its rows are and how many they are. With a thousand of both that is a
million notes, in no budget. The job runs, and its process is larger than it was told to be.

Held by: tests/optimizer/test_stored_results.py
"""

from __future__ import annotations

from typing import Final

from engine.graph.ship_strategy import SORTED_RUNS, ShipStrategy
from engine.optimizer.physical_plan import OptimizedPlan
from engine.shown_sizes import size_text

#: bytes for one consumer of one producer, as measured: place of the rows, their size, its part of buffers and file
NOTE_BYTES: Final = 60
#: part of a process that notes may take before it is told
_PART: Final = 8


def crowding(optimized: OptimizedPlan, process_bytes: int) -> str:
    """Return a warning for a plan whose stored results need much of a process for their notes, or ""."""
    most, text = process_bytes // _PART // NOTE_BYTES, ""
    largest = most
    for node in optimized.nodes:
        for channel in node.inputs:
            producer = optimized.nodes[channel.source]
            is_divided = channel.ship_strategy not in (ShipStrategy.FORWARD, ShipStrategy.BROADCAST)
            if channel.is_pipelined or not is_divided or channel.partitioner.kind == SORTED_RUNS:
                continue
            count = producer.parallelism * node.parallelism
            if count > largest:
                largest = count
                text = (
                    f"{producer.parallelism} subtasks of {producer.descriptor.name!r} store rows for "
                    f"{node.parallelism} of {node.descriptor.name!r}: to note where they are takes "
                    f"{size_text(count * NOTE_BYTES)} of a TaskManager that holds them all, beside the "
                    f"{size_text(process_bytes)} that it may have; lower the parallelism (-p, parallelism.default) "
                    f"to {int(most**0.5)}, or raise taskmanager.memory.process.size"
                )
    return text
