"""``python -m engine.entrypoint.taskmanager``: a TaskManager's process.

    start   memory, disk, network, HTTP server, TaskExecutor ─► registers at the leader ─► ready
    stop    tasks are cancelled, the ResourceManager hears that this TaskManager leaves, everything is given back

Source: Flink's TaskManagerRunner.
Held by: tests/entrypoint/test_daemons.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psutil

from engine.blob.blob_cache import BlobCache
from engine.blob.blob_store import BlobStore
from engine.blob.module_store import BlobModuleStore
from engine.client.elected_leader import zookeeper_settings
from engine.clock import SystemClock
from engine.closing import close_all_async
from engine.config.loader import Configuration
from engine.config.network_options import (
    JOB_MANAGER_ADDRESS,
    JOB_MANAGER_RPC_PORT,
    REST_PORT,
    TASK_MANAGER_BIND_HOST,
    TASK_MANAGER_DATA_PORT,
    TASK_MANAGER_HOST,
    TASK_MANAGER_RPC_PORT,
)
from engine.config.options import (
    BLOB_SIZE_MAX,
    CANCELLATION_TIMEOUT,
    HA_QUORUM,
    HA_STORAGE_FOLDER,
    HA_TYPE,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    JOB_RECOVERY_JOB_MANAGER_TIMEOUT,
    REGISTRATION_LAST_PAUSE,
    REGISTRATION_TIMEOUT,
    SLOTS,
)
from engine.entrypoint.daemon import DaemonContext, build_parser, run_daemon
from engine.entrypoint.leader_endpoint import ElectedLeaderFinder, StandaloneLeaderFinder
from engine.entrypoint.process_watch import ProcessWatch, local_folders
from engine.entrypoint.servers import ProcessServer, advertised_host, free_port, known_readers, load_credentials
from engine.gateways.protocol import this_program
from engine.gateways.task_executors import TaskExecutorHardware
from engine.ids import ResourceId
from engine.insight.log_folder import LogFolder
from engine.insight.process_insight import ProcessInsight
from engine.iomanager.spill_directory import SpillDirectory, spill_directories
from engine.memory.process_memory import ProcessMemory
from engine.private_folder import scratch_folder
from engine.rest.prometheus_routes import process_metrics_route
from engine.rpc.health import NotReady
from engine.taskexecutor.registration import Leader, LeaderFinder, Registration, RegistrationSettings
from engine.taskexecutor.task_executor import TaskExecutor
from engine.taskexecutor.task_executor_settings import TaskExecutorSettings
from engine.taskexecutor.task_resources import ProcessResources
from engine.transport.data_plane import DataPlaneSettings
from ha.interfaces import LeaderRetrieval
from ha.services import create_ha_services
from ha.zookeeper_hosts import parse_hosts

_log = logging.getLogger("engine.entrypoint.taskmanager")  # not __main__

#: the pause after the first failed attempt to register; it doubles with each further one
_FIRST_PAUSE_S = 0.1


class TaskManager:
    """All components of a TaskManager's process."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        configuration = self._configuration = context.configuration
        self._clock = SystemClock()
        self._slot_count: int = configuration.get(SLOTS)
        self._resource_id = ResourceId.random()
        self._blocking_work = ThreadPoolExecutor(max_workers=4, thread_name_prefix="drey-blocking")
        bind_host = configuration.get(TASK_MANAGER_BIND_HOST)
        credentials = self._credentials = load_credentials(configuration, bind_host)
        self._program = this_program("TaskManager")
        #: host under which other processes reach this one
        self._host = advertised_host(
            TASK_MANAGER_HOST.key, configuration.get(TASK_MANAGER_HOST), bind_host, _leaders_place(configuration)
        )
        self._server = ProcessServer(
            self._program,
            configuration,
            credentials,
            bind_host,
            configuration.get(TASK_MANAGER_RPC_PORT),
            [self._host],
            readers=known_readers(configuration, bind_host),
        )
        self._server.health.why_not_ready = self._why_not_ready
        folders = local_folders(str(scratch_folder()), *spill_directories(configuration), str(context.places.log))
        self._watch = ProcessWatch(configuration, folders, self._own_files)
        process = f"taskmanager-{self._resource_id}"
        self._watch.export(process)
        self._server.http.add_routes([process_metrics_route(process, self._watch.meter)])
        #: host:port of the leading JobManager
        self._leader_address = ""
        self._is_stopping = False
        self._resources: ProcessResources | None = None
        self._task_executor: TaskExecutor | None = None
        self._registering: asyncio.Task[None] | None = None
        self._retrieval: LeaderRetrieval | None = None

    async def start(self) -> None:
        """Take memory and disk, listen, and begin to register."""
        configuration = self._configuration
        resources = self._resources = ProcessResources(
            self._resource_id, configuration, self._slot_count, self._clock, self._module_store, self._data_plane()
        )
        await self._server.start()
        task_executor = self._task_executor = TaskExecutor(
            self._resource_id,
            self._server.rpc,
            TaskExecutorSettings(
                slot_count=self._slot_count,
                pages=resources.sizes.pages,
                spare_pages=resources.sizes.spare_pages,
                heartbeat_interval_s=configuration.get(HEARTBEAT_INTERVAL) / 1000,
                heartbeat_timeout_s=configuration.get(HEARTBEAT_TIMEOUT) / 1000,
                cancellation_timeout_s=configuration.get(CANCELLATION_TIMEOUT) / 1000,
                data_address=resources.data_address,
                hardware=self._hardware(resources.sizes),
                reattach_timeout_s=self._reattach_timeout_s,
                program=self._program,
            ),
            resources,
            self._clock,
            self._blocking_work,
            self._context.on_fatal,
            lambda: os.kill(os.getpid(), signal.SIGTERM),
        )
        self._server.rpc.start(task_executor)
        task_executor.start()
        self._watch.meter.add(resources.metrics)
        self._watch.meter.add(task_executor.metrics)
        self._watch.start()
        self._insight = ProcessInsight(
            self._resource_id,
            LogFolder(self._context.log_file),
            self._blocking_work,
            task_executor.activities,
            self._watch.meter,
        )
        self._server.rpc.start(self._insight)
        _log.info("TaskManager %s listens at %s", self._resource_id, self._server.address)
        finder = self._leader_finder(lambda: registration.leader_changed())  # noqa: PLW0108 - not there yet
        registration = Registration(
            task_executor,
            finder,
            self._registration_settings(),
            self._clock,
            self._registered,
            self._context.readiness.waiting,
        )
        self._registering = task_executor.spawn(registration.run(), "registration")

    async def stop(self, reason: str) -> None:
        """Release everything in reverse; every step runs, the first error is raised."""
        self._is_stopping = True
        steps: list[Callable[[], Awaitable[None] | None]] = []
        if self._task_executor is not None:
            steps += self._leaving(self._task_executor, reason)
        steps += (self._server.stop, self._watch.stop, self._blocking_work.shutdown)
        if self._resources is not None:
            steps.append(partial(asyncio.to_thread, self._resources.close))
        await close_all_async(steps)

    def _leaving(self, task_executor: TaskExecutor, reason: str) -> Iterator[Callable[[], Awaitable[None] | None]]:
        """Report that the tasks here are lost, so that they restart elsewhere at once, then cancel them."""
        if self._registering is not None:
            self._registering.cancel()
        if self._retrieval is not None:
            yield partial(asyncio.to_thread, self._retrieval.close)
        yield partial(task_executor.disconnect, reason)
        for endpoint in (task_executor, self._insight):
            yield endpoint.stop
            yield partial(self._server.rpc.stop, endpoint)

    def _module_store(self, disk: SpillDirectory) -> BlobModuleStore:
        """Return the modules that come with jobs, beside spilled rows and counted as they are."""
        return BlobModuleStore(
            BlobCache(
                BlobStore(disk.folder / "jobs", ensure_around=disk.ensure),
                lambda: self._leader_address,
                self._credentials,
                self._configuration.get(BLOB_SIZE_MAX),
                self._server.tls.client if self._server.tls is not None else None,
                disk.limit,
            )
        )

    def _data_plane(self) -> DataPlaneSettings:
        configuration = self._configuration
        bind_host = configuration.get(TASK_MANAGER_BIND_HOST)
        return DataPlaneSettings(
            credentials=self._credentials,
            bind_host=bind_host,
            port=free_port(bind_host, configuration.get(TASK_MANAGER_DATA_PORT)),
            host=self._host,
            tls=self._server.tls,
            program=self._program,
        )

    @property
    def _reattach_timeout_s(self) -> float:
        """Seconds; 0 where jobs end with their JobManager."""
        configuration = self._configuration
        is_recovered = configuration.get(HA_TYPE) == "ZOOKEEPER" or configuration.get(HA_STORAGE_FOLDER) is not None
        return configuration.get(JOB_RECOVERY_JOB_MANAGER_TIMEOUT) / 1000 if is_recovered else 0.0

    def _hardware(self, sizes: ProcessMemory) -> TaskExecutorHardware:
        return TaskExecutorHardware(
            host=self._host,
            process_id=os.getpid(),
            cpu_cores=len(os.sched_getaffinity(0)),
            physical_memory=psutil.virtual_memory().total,
            managed_memory=sizes.managed_bytes,
            network_memory=sizes.network_bytes,
            page_bytes=sizes.page_bytes,
            spare_memory=sizes.spare_bytes,
        )

    def _why_not_ready(self) -> NotReady | None:
        """Return the reason for which no JobManager gives this process work."""
        if self._is_stopping:
            return NotReady.STOPPING
        if self._task_executor is None:
            return NotReady.STARTING
        return None if self._task_executor.is_registered else NotReady.NOT_REGISTERED

    def _own_files(self) -> tuple[int, int]:
        """Return the bytes free beside the files of this process, and those that they take. Thread: any."""
        resources = self._resources
        if resources is None:
            raise FileNotFoundError("no folder is there yet")
        used_bytes, free_bytes = resources.disk_bytes()
        return free_bytes, used_bytes

    def _registered(self, leader: Leader) -> None:
        self._leader_address = leader.resource_manager_address.rpartition("/")[0]
        slots = f"{self._slot_count} slot{'s' if self._slot_count > 1 else ''}"
        self._context.readiness.ready(f"{self._server.address} with {slots}")

    def _leader_finder(self, on_change: Callable[[], None]) -> LeaderFinder:
        configuration = self._configuration
        if configuration.get(HA_TYPE) == "ZOOKEEPER":
            settings = zookeeper_settings(configuration, self._credentials)
            self._retrieval = create_ha_services("ZOOKEEPER", zookeeper=settings).retrieval()
            finder = ElectedLeaderFinder(on_change, self._retrieval)
            self._retrieval.start(finder)
            return finder
        ports = configuration.get(JOB_MANAGER_RPC_PORT) or configuration.get(REST_PORT)
        return StandaloneLeaderFinder(self._server.rpc, configuration.get(JOB_MANAGER_ADDRESS), ports)

    def _registration_settings(self) -> RegistrationSettings:
        configuration = self._configuration
        return RegistrationSettings(
            first_pause_s=_FIRST_PAUSE_S,
            last_pause_s=configuration.get(REGISTRATION_LAST_PAUSE) / 1000,
            timeout_s=configuration.get(REGISTRATION_TIMEOUT) / 1000,
        )


def _leaders_place(configuration: Configuration) -> tuple[str, int]:
    """Return host and port of what a TaskManager must reach first: of several interfaces it tells the one in use."""
    if configuration.get(HA_TYPE) == "ZOOKEEPER":
        return parse_hosts(configuration.get(HA_QUORUM))[0]
    ports = configuration.get(JOB_MANAGER_RPC_PORT) or configuration.get(REST_PORT)
    return configuration.get(JOB_MANAGER_ADDRESS), ports[0]


def main(words: Sequence[str] | None = None) -> int:
    """Run a TaskManager to its end and return the exit code."""
    return run_daemon("taskmanager", TaskManager, build_parser("taskmanager").parse_args(words))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Nothing is left to do; a task's thread that never ends must not keep the process.
    os._exit(code)
