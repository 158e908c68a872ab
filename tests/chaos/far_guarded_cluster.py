"""FarGuardedCluster: JobManagers, TaskManagers, ZooKeeper and the client, each on a machine of a network of its own.

network = TapNetwork(PLACES, seed)      quorum = far_quorum(folder, network)
with FarGuardedCluster(folder, network, quorum) as cluster:
    network.cut(cluster.leader_place(), "zk", both=False)
"""

import subprocess
import sys

from engine.client.cluster_client import ClusterClient
from engine.network_address import address_text, split_address
from engine.rpc.credentials import Credentials
from tests.chaos.cluster import Job
from tests.chaos.guarded_cluster import GuardedCluster
from tests.ha.quorum import Quorum

JOB_MANAGERS, TASK_MANAGERS = 2, 2
PLACES = [
    "zk",
    "client",
    *(f"jm{number}" for number in range(1, JOB_MANAGERS + 1)),
    *(f"tm{number}" for number in range(1, TASK_MANAGERS + 1)),
]


def far_quorum(folder, network, servers=3):
    """Return servers on the machine "zk"."""
    quorum = Quorum(folder, servers)
    address = network.address("zk")
    with (folder / "conf" / "zoo.cfg").open("a") as file:
        file.write(f"clientPortAddress={address}\n")
    quorum.hosts = ",".join(address_text(address, quorum.port + number) for number in range(len(quorum.servers)))
    quorum.prefix = network.command("zk")
    return quorum


class FarGuardedCluster(GuardedCluster):
    def __init__(self, folder, network, quorum, session_s=2):
        self.network = network
        super().__init__(folder, quorum, JOB_MANAGERS, TASK_MANAGERS, session_s)

    def start(self):
        starts = [
            self._begin(f"jm{number}", "jobmanager", [self.network.address(f"jm{number}"), str(port)])
            for number, port in enumerate(self.ports, 1)
        ]
        for number in range(1, TASK_MANAGERS + 1):
            address = self.network.address(f"tm{number}")
            starts.append(self._begin(f"tm{number}", "taskmanager", ["-D", f"taskmanager.host={address}"]))
        said = [start.communicate(timeout=120) for start in starts]
        assert not any(start.returncode for start in starts), f"{said}\n{self.log_tails()}"

    def _begin(self, place, daemon, words):
        option = f"{daemon}.bind-host={self.network.address(place)}"
        return subprocess.Popen(
            [
                *self.network.command(place),
                *(sys.executable, "-m", "engine.entrypoint.scripts", daemon, "start", *words, "-D", option),
            ],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        with self.network.inside("client"):
            return super().__enter__()

    def submit(self, script, *arguments, options=()):
        command = [sys.executable, "-m", "engine.cli.main", "job", "submit", "-t", "cluster", *options, str(script)]
        words = [*self.network.command("client"), *command, *map(str, arguments)]
        return Job(words, self.environment, self.folder)

    def get(self, path):
        credentials = Credentials.load(self.folder / "conf" / "cluster.secret")
        failure = None
        for number, port in enumerate(self.ports, 1):
            client = ClusterClient(address_text(self.network.address(f"jm{number}"), port), credentials)
            with self.network.inside("client"):
                try:
                    return client.document(path)
                except OSError as error:
                    failure = error
                finally:
                    client.close()
        raise failure

    def leader_place(self):
        """Return the machine of the leader."""
        host, _ = split_address(self.leaders.now.address)
        return next(place for place in PLACES if self.network.address(place) == host)

    def state_left(self):
        with self.network.inside("client"):
            return super().state_left()
