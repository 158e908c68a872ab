"""ProcessResources: what the tasks of one process use, built from the configuration and closed in reverse.

    pages          ── MemoryManager (one budget for all slots)
    disk           ── IOManager (spill files, files of BLOCKING results)
    network        ── NetworkBufferPool (sized from the jobs; grows while no task runs), ResultPartitionManager,
                      OutputFlusher; between TaskManagers a DataPlane
    functions      ── FunctionRunner (workers start with the first Python function)
    Arrow          ── its buffers come from jemalloc, which recycles them and gives back what is not used again within
                      500 ms; Arrow's own default keeps half as much again (ARROW_DEFAULT_MEMORY_POOL still wins)

The process size is the number a person sets (half of the machine's memory by default); the budgets of pages and network
buffers follow from it, or are set themselves (``engine.memory.process_memory``).

Environments of different settings have a cluster each, and each its pages. What the others only keep warm goes back to
the operating system when one begins to work, so that they take the memory of one as long as they work in turns.

Held by: tests/integration/test_way_of_a_task.py
Held by: tests/minicluster/test_memory_of_clusters.py
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.clock import Clock
from engine.closing import close_all
from engine.config.loader import Configuration
from engine.config.options import FOLDER_LIMIT
from engine.exchange.buffer_pool import NetworkBufferPool
from engine.exchange.output_flusher import OutputFlusher
from engine.exchange.partition_folders import PartitionFolders
from engine.exchange.partition_manager import ResultPartitionManager
from engine.functions.function_runner import FunctionRunner
from engine.functions.worker_user import configured_worker_user
from engine.gateways.memory_use import MemoryInUse
from engine.graph.deployment import TaskDeploymentDescriptor
from engine.ids import ExecutionAttemptId, JobId, ResourceId, ResultPartitionId
from engine.insight.disk_watch import DISK_COUNTED, DISK_LIMIT
from engine.iomanager.disk_use import disk_bytes
from engine.iomanager.io_manager import IOManager
from engine.iomanager.spill_directory import SpillDirectory, spill_directories
from engine.machine_limits import raise_descriptor_limit
from engine.memory.blocks import block_bytes, keep_spare_blocks
from engine.memory.budget import process_budget
from engine.memory.control_group import anonymous_bytes, machine_bytes, resident_bytes
from engine.memory.heap import choose_arrow_pool
from engine.memory.manager import MemoryManager
from engine.memory.process_memory import ProcessMemory, process_bytes_for, process_memory, room_bytes, too_large_text
from engine.memory.worker_budget import WorkerBudget
from engine.operators.batch_task import BatchTask
from engine.operators.task_services import ModuleStore, TaskServices
from engine.taskexecutor.task import Invokable
from engine.taskexecutor.task_threads import TaskThreads

if TYPE_CHECKING:
    from engine.transport.data_plane import DataPlaneSettings

_log = logging.getLogger(__name__)

_managers_lock = threading.Lock()
#: memory managers by process, since a fork has its parent's: one of each configuration whose cluster is open; guarded
#: by: _managers_lock
_managers: weakref.WeakKeyDictionary[MemoryManager, int] = weakref.WeakKeyDictionary()


def configured_sizes(configuration: Configuration, slot_count: int) -> ProcessMemory:
    """Return the sizes that the configuration and this machine, or its container, give."""
    return process_memory(configuration, slot_count, _room_bytes())


@functools.cache
def _room_bytes() -> int:
    """Return the memory that there is for the engine in this process: asked once, where each job is planned with it."""
    return room_bytes(machine_bytes(), anonymous_bytes())


class ProcessResources:
    """Memory, disk, network and functions of one process."""

    def __init__(
        self,
        resource_id: ResourceId,
        configuration: Configuration,
        slot_count: int,
        clock: Clock,
        new_module_store: Callable[[SpillDirectory], ModuleStore] | None = None,
        data_plane: DataPlaneSettings | None = None,
    ) -> None:
        raise_descriptor_limit()
        self.sizes = configured_sizes(configuration, slot_count)
        choose_arrow_pool()
        keep_spare_blocks(self.sizes.spare_block_bytes)
        for kind, limit_bytes in self.sizes.limits.items():
            process_budget.set_limit(kind, limit_bytes)
        _log.info("memory of this process:\n%s", self.sizes.table())
        too_large = too_large_text(configuration, machine_bytes())
        if too_large is not None:
            _log.warning("%s", too_large)
        memory_manager = MemoryManager(self.sizes.managed_bytes + self.sizes.spare_bytes, self.sizes.page_bytes)
        with _managers_lock:
            _managers[memory_manager] = os.getpid()
        io_manager = IOManager(
            spill_directories(configuration), limit_bytes=configuration.get(FOLDER_LIMIT), memory_manager=memory_manager
        )
        partition_manager = ResultPartitionManager()
        plane = None
        if data_plane is not None:
            # One process alone has none, and needs no sockets and no TLS.
            from engine.transport.data_plane import DataPlane

            plane = DataPlane(partition_manager, data_plane)
        self._helpers = TaskThreads()
        self._services = TaskServices(
            resource_id=resource_id,
            clock=clock,
            memory_manager=memory_manager,
            io_manager=io_manager,
            partition_folders=PartitionFolders(io_manager.folders, io_manager.ensure_folders, io_manager.limits),
            network_pool=NetworkBufferPool(self.sizes.network_segments, self.sizes.page_bytes),
            partition_manager=partition_manager,
            output_flusher=OutputFlusher(),
            function_runner=FunctionRunner(
                WorkerBudget(self.sizes.workers_bytes, self.sizes.spare_bytes, memory_manager),
                self.sizes.process_bytes,
                partial(process_bytes_for, configuration, slot_count, _room_bytes()),
                configured_worker_user(configuration),
                io_manager.first_directory.limit,
            ),
            module_store=None if new_module_store is None else new_module_store(io_manager.first_directory),
            new_thread=self._helpers.thread,
            data_plane=plane,
        )
        if plane is not None:
            plane.start()

    @property
    def data_address(self) -> str:
        """The address at which other TaskManagers read (TaskExecutorSettings.data_address); "" when none do."""
        return "" if self._services.data_plane is None else self._services.data_plane.address

    def disk_bytes(self) -> tuple[int, int]:
        """Return the bytes that spilled rows, stored results and files of jobs take, and those free on their disks."""
        return disk_bytes(self._services.io_manager.folders)

    @property
    def services(self) -> TaskServices:
        """The services of a task that starts now."""
        return self._services

    def prepare(self) -> None:
        """Make ready for jobs after a rest: other clusters of this process give back what they only keep warm."""
        with _managers_lock:
            found = [manager for manager, pid in _managers.items() if pid == os.getpid()]
        others = [manager for manager in found if manager is not self._services.memory_manager]
        for manager in others:
            manager.give_back_free()

    def create_invokable(self, descriptor: TaskDeploymentDescriptor) -> Invokable:
        """Make the BatchTask of an attempt."""
        return BatchTask(descriptor, self._services)

    def held_partitions(self, attempts: Iterable[ExecutionAttemptId]) -> list[ResultPartitionId]:
        """Return the partitions of those attempts that are here."""
        wanted = set(attempts)
        return [held for held in self._services.partition_manager.partition_ids if held.producer in wanted]

    def release_partition(self, partition: ResultPartitionId) -> None:
        """Drop one result partition; unknown ones are ignored."""
        self._services.partition_manager.release(partition)

    def release_attempts(self, job_id: JobId, attempts: Iterable[ExecutionAttemptId]) -> None:
        """Drop all that attempts of an ended job left: partitions, workers."""
        for attempt in attempts:
            self._services.partition_manager.release_partitions_produced_by(attempt)
        self._services.function_runner.release_job(job_id.value)
        if self._services.module_store is not None:
            self._services.module_store.release_job(job_id)
        self._services.io_manager.release_job(job_id.value)

    def memory_in_use(self, resource_id: ResourceId) -> MemoryInUse:
        """Return the memory of this process now."""
        pages, network = self._services.memory_manager, self._services.network_pool
        return MemoryInUse(
            resource_id,
            resident_bytes(),
            pages.pages_used * pages.page_size,
            pa.total_allocated_bytes() + block_bytes(),
            network.in_use * network.segment_size,
        )

    def metrics(self) -> dict[str, float]:
        """Return the memory in use by kind, and bytes spilled by operators that are at work, for metrics."""
        services = self._services
        pages, network = services.memory_manager, services.network_pool
        return {
            "Status.Memory.Managed.Used": float(pages.pages_used * pages.page_size),
            "Status.Memory.Managed.Total": float(pages.pages_total * pages.page_size),
            "Status.Memory.Network.Used": float(network.in_use * network.segment_size),
            "Status.Memory.Network.Total": float(network.segment_count * network.segment_size),
            "Status.Memory.Arrow.Used": float(pa.total_allocated_bytes() + block_bytes()),
            "Status.Spill.Held": float(services.io_manager.spilled_bytes),
            **{
                f"{name}{Path(limit.folder).parent}": float(value)
                for limit in services.io_manager.limits
                if limit.size_bytes
                for name, value in ((DISK_LIMIT, limit.size_bytes), (DISK_COUNTED, limit.used_bytes))
            },
        }

    def close(self) -> None:
        """Close everything; runs every step and raises the first error."""
        services = self._services
        leaks = services.memory_manager.leak_report()
        for leak in leaks:
            _log.error("managed memory: %s", leak)
        steps = (
            services.function_runner.close,
            self._helpers.close,
            *(() if services.data_plane is None else (services.data_plane.close,)),
            services.partition_manager.close,
            services.output_flusher.close,
            services.network_pool.close,
            services.io_manager.close,
            services.memory_manager.close,
        )
        close_all(steps)
