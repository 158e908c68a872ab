"""GuardedCluster: a ChaosCluster whose JobManagers are guarded by a quorum of ZooKeeper, and a watch on who leads.

    with GuardedCluster(folder, quorum, job_managers=3, session_s=2, points=("sink.decided",)) as cluster:
        cluster.leaders.now                      LeaderInformation, or None; .seen: every one with its time
        cluster.arm("sink.decided")              the next process that comes there dies (or stops: action="stop")
        cluster.kill_leader(signal.SIGKILL)
        cluster.state_left()                     handles, files of jobs: what should be gone

Points are armed by taking their marker away, so one cluster serves many trials.
"""

import os
import queue
import signal
import time

import psutil

from engine.fault_points import POINTS
from engine.rpc.credentials import Credentials
from ha.services import create_ha_services
from ha.zookeeper_session import boot_time_s
from ha.zookeeper_settings import ZooKeeperSettings
from tests.chaos.cluster import WAIT_S, ChaosCluster
from tests.ha.quorum import free_port

#: points that a JobManager passes
LEADER_POINTS = tuple(point for point in POINTS if not point.startswith(("task.", "partition.")))
#: points that only a leader passes which goes on with jobs of another
SUCCESSOR_POINTS = frozenset({"job.reattaching", "job.reattached"})


class Leaders:
    """Who leads, and when that was heard. A LeaderRetrievalListener."""

    def __init__(self):
        self.seen = []
        self._news = queue.SimpleQueue()

    def notify_leader(self, information):
        self._news.put((boot_time_s(), information))

    def _take(self):
        while not self._news.empty():
            self.seen.append(self._news.get())

    @property
    def now(self):
        self._take()
        return self.seen[-1][1] if self.seen else None

    def after(self, epoch, timeout_s):
        """Wait for a leader of a later epoch; return when it was heard, and it."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self._take()
            for at_s, information in self.seen:
                if information is not None and information.epoch > epoch:
                    return at_s, information
            time.sleep(0.002)
        raise AssertionError(f"nobody leads after epoch {epoch} within {timeout_s} s: {self.seen[-3:]}")


class GuardedCluster(ChaosCluster):
    def __init__(
        self,
        folder,
        quorum,
        job_managers=3,
        task_managers=2,
        session_s=2,
        is_supervised=False,
        action="kill",
        points=LEADER_POINTS,
        **settings,
    ):
        self.quorum = quorum
        self.session_s = session_s
        self.markers = folder / "markers"
        self.storage = folder / "storage"
        self.points = points
        super().__init__(
            folder,
            task_managers,
            **{
                "high-availability.type": "ZOOKEEPER",
                "high-availability.zookeeper.quorum": quorum.hosts,
                "high-availability.zookeeper.client.session-timeout": f"{session_s} s",
                "high-availability.storageDir": str(self.storage),
                "jobmanager.supervisor.enabled": str(is_supervised).lower(),
                "debug.fault-point": ",".join(f"{point}:{action}:{self.markers / point}" for point in points),
            }
            | settings,
        )
        self.markers.mkdir()
        self.disarm()
        self.ports = [self.port, *(free_port() for _ in range(job_managers - 1))]
        (self.folder / "conf" / "masters").write_text("".join(f"localhost:{port}\n" for port in self.ports))
        self.leaders = Leaders()
        self._retrieval = None

    def __enter__(self):
        super().__enter__()
        self._retrieval = create_ha_services("ZOOKEEPER", zookeeper=self.zookeeper_settings()).retrieval()
        self._retrieval.start(self.leaders)
        self.leaders.after(0, WAIT_S)
        return self

    def __exit__(self, *error):
        if self._retrieval is not None:
            self._retrieval.close()
        super().__exit__(*error)

    def zookeeper_settings(self):
        credentials = Credentials.load(self.folder / "conf" / "cluster.secret")
        return ZooKeeperSettings(
            self.quorum.hosts, credentials.key(b"high-availability"), session_timeout_s=float(self.session_s)
        )

    def get(self, path):
        """Ask the JobManagers in turn: a standby forwards, a dead one is passed over."""
        failure = None
        for port in self.ports:
            self.port = port
            try:
                return super().get(path)
            except OSError as error:
                failure = error
        raise failure

    # ---- faults ----

    def disarm(self):
        for point in self.points:
            (self.markers / point).touch()

    def arm(self, point):
        (self.markers / point).unlink()

    def is_fired(self, point):
        """Whether a process came to an armed point and did as it was told."""
        marker = self.markers / point
        return marker.exists() and marker.read_text().endswith("\n")  # it is there a moment before its line

    def fired_pid(self, point):
        return int((self.markers / point).read_text().split()[1])

    def fired_s(self, point):
        """Return when that was, on the clock of ``boot_time_s``."""
        return boot_time_s() - (time.time() - (self.markers / point).stat().st_mtime)

    @property
    def leader_port(self):
        """Port of the JobManager that leads."""
        return int(self.leaders.now.address.rpartition(":")[2])

    def leader_process(self):
        """Return the process that leads."""
        return self.process_at(self.leader_port)

    def process_at(self, port):
        """Return the JobManager that listens at a port, or None."""
        for process in self.processes():
            try:
                listening = {each.laddr.port for each in process.net_connections("tcp") if each.status == "LISTEN"}
            except (psutil.Error, OSError):
                continue
            if port in listening:
                return process
        return None

    def kill_leader(self, number=signal.SIGKILL):
        """Signal the leader; return (process, epoch, when)."""
        epoch, process = self.leaders.now.epoch, self.leader_process()
        at_s = boot_time_s()
        os.kill(process.pid, number)
        return process, epoch, at_s

    def restore_job_managers(self):
        """Start the JobManagers that are gone and wait until all of them listen."""
        for port in self.ports:
            if self.process_at(port) is None and not self.is_restarted_by_supervisor(port):
                self.script("jobmanager", "start", "localhost", str(port))
        self.wait_until(lambda: all(self.process_at(port) for port in self.ports), "all JobManagers")

    def is_restarted_by_supervisor(self, port):
        return self.settings["jobmanager.supervisor.enabled"] == "true"

    # ---- what should be gone ----

    def state_left(self):
        """Return what is kept of jobs: handles in ZooKeeper, files in the storage folder."""
        services = create_ha_services("ZOOKEEPER", zookeeper=self.zookeeper_settings())
        retrieval = services.retrieval()
        retrieval.start(Leaders())
        try:
            handles = list(services.state_store().names())
        finally:
            retrieval.close()
        files = [
            str(path.relative_to(self.storage))
            for path in self.storage.rglob("*")
            if path.is_file() and "history" not in path.parts and path.name != "identity"
        ]
        return handles + sorted(files)
