"""Machines of a network, each of which runs processes of the image; names are found in /etc/hosts.

    class Composed(Machines): ...       compose.py: the services of compose.yaml
    class Pods(Machines): ...           pods.py: the pods of Kubernetes' manifests

The server of ZooKeeper, whose image is not built here, runs from the jars of the environment that runs the tests.
"""

import os
import shutil
import signal
import subprocess
import time

from tests.chaos.tap_network import TapNetwork
from tests.deployment.image import end
from tests.tidy.imports import ROOT

WAIT_S = 120.0


class Machines:
    """``names``: of machines, each with the further names under which it is found."""

    def __init__(self, names, image, folder):
        self.image, self.folder = image, folder
        self.network = TapNetwork(list(names), 1)
        self.owner = tuple(map(int, image.user.split(":")))
        lines = ["127.0.0.1 localhost"]
        lines += [f"{self.network.address(name)} {' '.join([name, *others])}" for name, others in names.items()]
        (folder / "hosts").write_text("\n".join([*lines, ""]))
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End all processes and their network."""
        for name in tuple(self.processes):
            self.end(name)
        self.network.close()

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def keep(self, name, words, **arguments):
        """Begin a process whose output is in the log of its name."""
        with (self.folder / f"{name}.log").open("ab") as log:
            arguments |= {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
            self.processes[name] = subprocess.Popen(words, **arguments) if words else self.begin(name, **arguments)

    def end(self, name, number=signal.SIGTERM):
        """End a process."""
        process = self.processes.pop(name)
        if name == "zookeeper":
            process.kill()
            process.wait()
        else:
            end(process, number)

    def wait_until(self, condition, what, name):
        """Wait for something that the process of a name does; it must not end."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert self.processes[name].poll() is None, f"{name} has ended: {self.log(name)[-3000:]}"
            assert time.monotonic() < deadline, f"{what} of {name} did not come: {self.log(name)[-3000:]}"
            time.sleep(0.1)

    def start_zookeeper(self):
        """Start the server that the official image would be, on the machine "zookeeper", at the port that is usual."""
        home = self.folder / "zk"
        home.mkdir()
        (home / "zoo.cfg").write_text(
            f"tickTime=500\nsyncLimit=2\ninitLimit=20\ndataDir={home}\nclientPort=2181\nadmin.enableServer=false\n"
            f"clientPortAddress={self.network.address('zookeeper')}\n4lw.commands.whitelist=srvr,ruok,conf\n"
        )
        jars = next((ROOT / ".venv" / "lib").glob("python*/site-packages/pyspark/jars"))
        java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ['PATH']}")
        words = [java, "-cp", f"{jars}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", home / "zoo.cfg"]
        self.keep("zookeeper", [*self.network.command("zookeeper"), *words])
