"""Task services: what all tasks of a TaskExecutor share, memory, disk, network, functions.

Held by: tests/operators/test_batch_task.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from engine.operators.filter_registry import FilterRegistry
from engine.operators.shared_builds import SharedBuilds
from engine.operators.split_queues import SplitQueues

if TYPE_CHECKING:
    from engine.clock import Clock
    from engine.exchange.buffer_pool import NetworkBufferPool
    from engine.exchange.output_flusher import OutputFlusher
    from engine.exchange.partition_folders import PartitionFolders
    from engine.exchange.partition_manager import ResultPartitionManager
    from engine.functions.function_runner import FunctionRunner
    from engine.graph.job_graph import JobArtifact
    from engine.ids import JobId, ResourceId
    from engine.iomanager.io_manager import IOManager
    from engine.memory.manager import MemoryManager
    from engine.transport.data_plane import DataPlane


class ModuleStore(Protocol):
    """Modules that came with jobs, on this machine's disk."""

    def search_path(self, job_id: JobId, artifacts: Sequence[JobArtifact]) -> tuple[str, ...]:
        """Return an entry of a module search path for each artifact, fetching what is not here. Blocking."""
        ...

    def release_job(self, job_id: JobId) -> None:
        """Remove what came with a job. Blocking."""
        ...


class HelperThread(Protocol):
    """A thread that works for a task."""

    def start(self) -> None:
        """Begin."""
        ...

    def join(self) -> None:
        """Wait for the end."""
        ...


def _new_thread(work: Callable[[], None], name: str) -> HelperThread:
    return threading.Thread(target=work, name=name, daemon=True)


class TaskServices(msgspec.Struct, frozen=True):
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
    shared_builds: SharedBuilds = msgspec.field(default_factory=SharedBuilds)
    filter_registry: FilterRegistry = msgspec.field(default_factory=FilterRegistry)
    split_queues: SplitQueues = msgspec.field(default_factory=SplitQueues)
    #: function that returns a thread for work of a task, with a name
    new_thread: Callable[[Callable[[], None], str], HelperThread] = _new_thread
    #: None where there is one TaskExecutor only
    data_plane: DataPlane | None = None
    #: None where jobs bring no modules: the embedded cluster shares the script's own
    module_store: ModuleStore | None = None
