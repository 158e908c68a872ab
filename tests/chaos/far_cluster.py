"""FarCluster: a JobManager and TaskManagers on machines of a network that does what it is told.

FarCluster(folder, network, task_managers=2)      places of the network: "jm", "tm1", "tm2", ...
cluster.pid_of("tm1")      cluster.log_of("tm1")
"""

import subprocess
import sys
from pathlib import Path

import psutil

from engine.client.cluster_client import ClusterClient
from engine.network_address import address_text
from engine.rpc.credentials import Credentials
from tests.chaos.cluster import ChaosCluster, Job
from tests.chaos.proxy_network import ProxyNetwork
from tests.ha.quorum import free_port


def places(task_managers):
    return ["jm", *(f"tm{number}" for number in range(1, task_managers + 1))]


class FarCluster(ChaosCluster):
    def __init__(self, folder, network, task_managers=2, slots=2, **settings):
        self.network = network
        told = {"jobmanager.rpc.address": network.address("jm"), "cluster.registration.max-timeout": "1 s"}
        super().__init__(folder, task_managers, slots, **told, **settings)
        self._names = places(task_managers)
        # So long a name that no UNIX socket has room in it: rows go by TCP.
        self.temporary = self.folder / f"far-{'x' * 100}"
        self.temporary.mkdir()
        self.environment["TMPDIR"] = str(self.temporary)
        #: of each place, behind proxies
        self.rpc_ports, self.data_ports = {"jm": self.port}, {}

    @property
    def is_proxied(self):
        return isinstance(self.network, ProxyNetwork)

    def start(self):
        starts = [self._begin(name) for name in self._names]
        said = [start.communicate(timeout=120) for start in starts]
        assert not any(start.returncode for start in starts), f"{said}\n{self.log_tails()}"
        for name in self._names if self.is_proxied else ():
            self.network.know(name, self.pid_of(name))

    def _begin(self, name):
        daemon = "jobmanager" if name == "jm" else "taskmanager"
        settings = self._job_manager(name) if name == "jm" else self._task_manager(name)
        words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        return subprocess.Popen(
            [*self.network.command(name), sys.executable, "-m", "engine.entrypoint.scripts", daemon, "start", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _bind_host(self, name):
        return "127.0.0.1" if self.is_proxied else self.network.address(name)

    def _job_manager(self, name):
        if self.is_proxied:
            self.network.open(name, self.port)
        return {"jobmanager.bind-host": self._bind_host(name)}

    def _task_manager(self, name):
        settings = {"taskmanager.bind-host": self._bind_host(name), "taskmanager.host": self.network.address(name)}
        if self.is_proxied:
            ports = [free_port(), free_port()]
            for port in ports:
                self.network.open(name, port)
            self.rpc_ports[name], self.data_ports[name] = ports
            settings |= {"taskmanager.rpc.port": ports[0], "taskmanager.data.port": ports[1]}
        return settings

    def submit(self, script, *arguments, options=()):
        command = [sys.executable, "-m", "engine.cli.main", "job", "submit", "-t", "cluster", *options, str(script)]
        return Job([*self.network.command("jm"), *command, *map(str, arguments)], self.environment, self.folder)

    def get(self, path):
        credentials = Credentials.load(self.folder / "conf" / "cluster.secret")
        client = ClusterClient(address_text(self.network.address("jm"), self.port), credentials)
        with self.network.inside("jm"):
            try:
                return client.document(path)
            finally:
                client.close()

    def pid_of(self, name):
        """Return the pid of the process at a place."""
        if name == "jm":
            return self.pids("jobmanager")[0]
        said = f"taskmanager.host={self.network.address(name)}"
        return next(pid for pid in self.pids("taskmanager") if said in psutil.Process(pid).cmdline())

    def log_of(self, name):
        words = psutil.Process(self.pid_of(name)).cmdline()
        return Path(words[words.index("--log-file") + 1]).read_text(errors="replace")
