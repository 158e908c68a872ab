"""``python -m engine.entrypoint.jobmanager``: a JobManager's process.

    start   blob server, HTTP server (messages, REST, blobs), leader services ─ grant ─► components lead ─► ready
                                                                              └─ another one leads ─► ready, too
    stop    jobs that no leader can resume are cancelled; components (others are suspended), leader services, servers

It loads neither pyarrow nor any user's code. Source: Flink's ClusterEntrypoint.
Held by: tests/entrypoint/test_daemons.py
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from engine.blob.blob_server import BlobServer
from engine.client.elected_leader import zookeeper_settings
from engine.client.leader_answers import NOT_LEADING
from engine.clock import SystemClock
from engine.closing import close_all_async
from engine.config.loader import Configuration
from engine.config.network_options import (
    ALLOWED_HOSTS,
    JOB_MANAGER_ADDRESS,
    JOB_MANAGER_BIND_HOST,
    JOB_MANAGER_RPC_PORT,
    REST_ADDRESS,
    REST_PORT,
)
from engine.config.operating_options import GARBAGE_INTERVAL
from engine.config.options import BLOB_SIZE_MAX, HA_TYPE, HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT
from engine.dispatcher.dispatcher import DISPATCHER_ADDRESS, Dispatcher
from engine.dispatcher.end_notices import EndNotices
from engine.dispatcher.file_handles import FileHandles
from engine.dispatcher.garbage_timer import GarbageTimer
from engine.dispatcher.leading_components import LeadingComponents
from engine.entrypoint.audit_file import AuditFile, start_entry
from engine.entrypoint.daemon import DaemonContext, build_parser, run_daemon
from engine.entrypoint.leader_endpoint import LeaderEndpoint, listed_job_managers
from engine.entrypoint.leading_stores import leading_settings, leading_stores
from engine.entrypoint.process_contender import ProcessContender
from engine.entrypoint.process_watch import ProcessWatch, local_folders
from engine.entrypoint.servers import (
    ProcessServer,
    advertised_host,
    load_credentials,
    load_readers,
    load_webhook,
)
from engine.entrypoint.standalone_epoch import next_epoch
from engine.entrypoint.storage_places import blob_store, storage_places
from engine.errors import ResourceError
from engine.gateways.protocol import this_program
from engine.insight.log_folder import LogFolder
from engine.private_folder import scratch_folder
from engine.process_folder import FolderPrefix, ProcessFolder, sweep
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from engine.rest.forwarding import forwarded
from engine.rest.prometheus_routes import families_here
from engine.rest.route_roles import with_roles
from engine.rest.routes import rest_routes
from engine.rest.services import RestServices
from engine.rpc.audit import AuditEntry, audited
from engine.rpc.gateway import Gateway
from engine.rpc.health import NotReady
from engine.rpc.http_messages import Route
from engine.rpc.leadership import Leadership
from ha.interfaces import LeaderElection, LeaderRetrieval
from ha.services import HaServices, create_ha_services

_log = logging.getLogger("engine.entrypoint.jobmanager")  # not __main__

#: seconds in which jobs must be cancelled when the process stops; the daemon has 10
CANCEL_S = 5.0


class JobManager:
    """All components of a JobManager's process."""

    def __init__(self, context: DaemonContext) -> None:
        self._context = context
        self._configuration = context.configuration
        self._clock = SystemClock()
        self._leader = LeaderEndpoint()
        self._contender = ProcessContender(
            self._leader,
            lambda: self._server.address,
            self._make_components,
            lambda: context.readiness.ready(self._server.url),
            context.on_fatal,
            self._begin_leading,
        )
        self._ha: HaServices | None = None
        self._election: LeaderElection | None = None
        self._retrieval: LeaderRetrieval | None = None
        scratch = scratch_folder()
        sweep(scratch, FolderPrefix.JOBS)
        self._own_folder = ProcessFolder.create(scratch, FolderPrefix.JOBS)
        self._storage = storage_places(context.configuration, context.places, self._own_folder.path)
        # Several of them may wait for a slow disk, or for ZooKeeper.
        self._blocking_work = ThreadPoolExecutor(max_workers=16, thread_name_prefix="drey-blocking")
        bind_host = context.configuration.get(JOB_MANAGER_BIND_HOST)
        self._credentials = load_credentials(context.configuration, bind_host)
        self._server = ProcessServer(
            this_program("JobManager"),
            context.configuration,
            self._credentials,
            bind_host,
            context.configuration.get(REST_PORT),
            _names(context.configuration, bind_host),
            context.configuration.get(JOB_MANAGER_RPC_PORT),
            load_readers(context.configuration, bind_host),
        )
        self._server.health.why_not_ready = self._why_not_ready
        self._rpc = self._server.rpc
        blobs = blob_store(self._storage, self._own_folder)
        self._blobs = BlobServer(blobs, context.configuration.get(BLOB_SIZE_MAX), self._clock)
        self._audit = AuditFile(context.configuration, context.log_file)
        self._add_routes(with_roles(self._blobs.routes))
        shared = self._storage.folder if self._storage.is_durable else ""
        folders = local_folders(str(scratch), shared, self._storage.history, str(context.places.log))
        self._watch = ProcessWatch(context.configuration, folders)
        self._watch.meter.add(self._leader_metrics)
        services = RestServices(
            lambda: self._gateway(DISPATCHER_ADDRESS),
            lambda: self._gateway(RESOURCE_MANAGER_ADDRESS),
            context.configuration,
            self._clock,
            LogFolder(context.log_file),
            self._watch.meter,
            lambda address: self._rpc.connect(address, 0),
            self._other_job_managers,
            lambda: os.kill(os.getpid(), signal.SIGTERM),
        )
        self._watch.export("jobmanager", lambda: families_here(services))
        self._spans = self._watch.export_spans("jobmanager", services.ask_dispatcher)
        self._webhook = load_webhook(context.configuration, self._clock)
        self._add_routes(rest_routes(services))

    def _other_job_managers(self) -> tuple[str, ...]:
        listed = listed_job_managers(self._configuration, self._context.places)
        return tuple(address for address in listed if address != self._server.address)

    def _add_routes(self, routes: Iterable[Route]) -> None:
        """Add routes that the leader answers, and whose changes are recorded."""
        of_leader = forwarded(routes, self._contender.leader_elsewhere, self._server.forwarder)
        self._server.http.add_routes(audited(of_leader, self._audit.note))

    async def start(self) -> None:
        """Start the servers, then enter the election; ready when it leads."""
        _log.info(
            "starting HeartbeatServices: every %d ms, lost after %d ms",
            self._configuration.get(HEARTBEAT_INTERVAL),
            self._configuration.get(HEARTBEAT_TIMEOUT),
        )
        await self._server.start()
        self._audit.note(start_entry(self._configuration))
        self._watch.start()
        address = self._server.address
        _log.info("starting BlobServer and REST endpoint at %s", self._server.url)
        self._rpc.start(self._leader)
        kind = self._configuration.get(HA_TYPE)
        _log.info("starting HighAvailabilityServices: %s, at %s", kind, address)
        if kind == "ZOOKEEPER":
            services = create_ha_services(
                kind, zookeeper=zookeeper_settings(self._configuration, self._credentials, self._context.session_pipe)
            )
            self._retrieval = services.retrieval()
            self._retrieval.start(self._contender)
        else:
            epoch_file = self._context.places.pid_file("jobmanager").with_suffix(".epoch")
            services = create_ha_services(kind, address, next_epoch(epoch_file, self._clock))
        self._ha = services
        self._election = services.election()
        self._handles = services.state_store()
        if kind != "ZOOKEEPER" and self._storage.is_durable:
            handles = FileHandles(self._storage.handles, self._election.has_leadership)
            handles.hold()
            self._handles = handles
        self._contender.enter(self._election)

    async def stop(self, reason: str) -> None:
        """Stop everything in reverse; every step runs, the first error is raised."""
        self._contender.is_stopping = True
        self._audit.note(AuditEntry("stop", "done", reason=reason))
        # Another JobManager leads first; closing may wait for ZooKeeper.
        parts = [part for part in (self._election, self._retrieval) if part is not None]
        await close_all_async(
            [
                self._cancel_lost_jobs,  # while it leads: no other process may remove what is staged
                *(partial(asyncio.to_thread, part.close) for part in parts),
                self._contender.leave,
                *(() if self._webhook is None else (self._webhook.close,)),
                self._server.stop,
                self._watch.stop,
                self._blocking_work.shutdown,
                self._own_folder.close,
                self._audit.close,
            ]
        )

    async def _cancel_lost_jobs(self) -> None:
        """Cancel the jobs that no leader resumes, so that no staging of theirs stays."""
        components = self._contender.components
        dispatcher = None if components is None else components.dispatcher
        if dispatcher is not None and not self._storage.is_durable:
            await dispatcher.cancel_all(CANCEL_S)

    def _make_components(self, epoch: int) -> LeadingComponents:
        election = self._election
        assert election is not None, "an election has granted the epoch"
        leadership = Leadership(
            self._rpc,
            epoch,
            self._clock,
            self._blocking_work,
            lambda: election.has_leadership(epoch),
            self._context.on_fatal,
        )
        notices = EndNotices(self._webhook, None if self._spans is None else self._spans.ended)
        stores = leading_stores(self._configuration, self._storage, self._handles, leadership, self._blobs, notices)
        return LeadingComponents(leadership, leading_settings(self._configuration, self._rpc), stores)

    def _begin_leading(self, dispatcher: Dispatcher) -> None:
        """Begin what is done beside the jobs while this process leads."""
        dispatcher.spawn(self._blobs.sweep(lambda: dispatcher.running_job_ids), "blobs of no job")
        if self._storage.is_durable and self._handles is not None:
            interval_s = self._configuration.get(GARBAGE_INTERVAL) / 1000
            garbage = GarbageTimer(self._storage.folder, self._handles, interval_s, self._blocking_work, self._clock)
            dispatcher.spawn(garbage.run(), "garbage")

    def _leader_metrics(self) -> dict[str, float]:
        leader = self._contender.leader
        values = {
            "Status.Leader.Leads": float(self._contender.components is not None),
            "Status.Leader.Epoch": float(0 if leader is None else leader.epoch),
            "Status.Leader.Elections": float(self._contender.election_count),
        }
        health = None if self._ha is None else self._ha.session_health()
        if health is not None:
            values["Status.ZooKeeper.Connected"] = float(health.is_connected)
            values["Status.ZooKeeper.Alive"] = float(health.is_alive)
            values["Status.ZooKeeper.SessionsEnded"] = float(health.ended_count)
        return values

    def _why_not_ready(self) -> NotReady | None:
        """Return the reason for which neither this process nor one that it knows takes jobs."""
        if self._contender.is_stopping:
            return NotReady.STOPPING
        if self._contender.components is not None:
            return None
        health = None if self._ha is None else self._ha.session_health()
        is_cut_off = health is not None and not health.is_connected  # the leader that it knows may be none any more
        return NotReady.NO_LEADER if self._contender.leader is None or is_cut_off else None

    def _gateway(self, name: str) -> Gateway:
        """Return a leading component; raises ResourceError when none leads here."""
        if self._contender.components is None:
            leader = self._contender.leader
            who = f"{leader.address} does" if leader is not None else "none does at present"
            raise ResourceError(f"{NOT_LEADING}: {who}")
        return self._rpc.connect(self._rpc.address_of(name), self._contender.components.epoch)


def _names(configuration: Configuration, bind_host: str) -> list[str]:
    """Return the names under which a JobManager may be asked, first the one that others are told."""
    told = advertised_host(JOB_MANAGER_ADDRESS.key, configuration.get(JOB_MANAGER_ADDRESS), bind_host)
    return [told, *filter(None, [configuration.get(REST_ADDRESS)]), *configuration.get(ALLOWED_HOSTS)]


def main(words: Sequence[str] | None = None) -> int:
    """Run a JobManager to its end and return the exit code."""
    parser = build_parser("jobmanager")
    parser.add_argument("host", nargs="?", help="jobmanager.rpc.address")
    parser.add_argument("port", nargs="?", help="rest.port")
    arguments: argparse.Namespace = parser.parse_args(words)
    settings = [f"jobmanager.rpc.address={arguments.host}"] if arguments.host else []
    settings += [f"{REST_PORT.key}={arguments.port}"] if arguments.port else []
    return run_daemon("jobmanager", JobManager, arguments, settings)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Nothing is left to do; threads that hang in a system call must not keep the process.
    os._exit(code)
