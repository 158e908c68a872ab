"""What a TaskExecutor lends to all its tasks: memory, disk, network, functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.operators.shared_builds import SharedBuilds

if TYPE_CHECKING:
    from engine.clock import Clock
    from engine.exchange.buffer_pool import NetworkBufferPool
    from engine.exchange.output_flusher import OutputFlusher
    from engine.exchange.partition_folders import PartitionFolders
    from engine.exchange.partition_manager import ResultPartitionManager
    from engine.functions.function_runner import FunctionRunner
    from engine.ids import ResourceId
    from engine.iomanager.io_manager import IOManager
    from engine.memory.manager import MemoryManager


@dataclass(frozen=True)
class TaskServices:
    """Shared by all tasks of one TaskExecutor; each is safe to use from any task thread."""

    resource_id: ResourceId
    clock: Clock
    memory_manager: MemoryManager
    io_manager: IOManager
    network_pool: NetworkBufferPool
    partition_manager: ResultPartitionManager
    partition_folders: PartitionFolders
    output_flusher: OutputFlusher
    function_runner: FunctionRunner
    shared_builds: SharedBuilds = field(default_factory=SharedBuilds)
