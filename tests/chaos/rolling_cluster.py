"""RollingCluster: a guarded cluster whose processes are replaced one by one, as the page of upgrades says.

with RollingCluster(folder, quorum, build) as cluster:      everything is of that build
    cluster.roll_task_managers(other)      each: one of the other build is begun, then an old one is drained
    cluster.roll_job_managers(other)       the one that stands by, then the one that leads
    cluster.submitting = other             what submits jobs from now on
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request

from tests.chaos.cluster import PATIENT, Job
from tests.chaos.guarded_cluster import GuardedCluster

#: seconds in which a TaskManager is drained, whose stage of a job may take long on a busy machine
_DRAINED_S = 240.0


class RollingCluster(GuardedCluster):
    def __init__(self, folder, quorum, build, **settings):
        # one that leads leaves when it is stopped: no session need end, also where a busy machine gives it nothing
        patient = PATIENT | {"high-availability.zookeeper.client.connection-timeout": "60 s"}
        super().__init__(folder, quorum, job_managers=2, task_managers=2, session_s=30, points=(), **patient | settings)
        # sources are those of PYTHONPATH, wherever a process is started
        self.environment |= {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(build.folder)}
        self.submitting = build

    def start(self):
        """Start all processes, which may take longer on a busy machine than the script waits."""
        self.script("cluster", "start", check=False)
        self.wait_until(lambda: [self.version_at(port) for port in self.ports], "all JobManagers")

    def begin(self, build, *words):
        """Run a script of bin/ of a build; the caller waits for what it begins."""
        command = [sys.executable, "-m", "engine.entrypoint.scripts", *words]
        subprocess.run(command, env=self._of(build), capture_output=True, timeout=120, check=False)

    def command(self, build, *words):
        """Start ``flink-run`` of a build."""
        return Job([sys.executable, "-m", "engine.cli.main", *map(str, words)], self._of(build), self.folder)

    def job(self, parallelism, *words):
        """Start a job by ``flink-run`` of the build that submits."""
        return self.command(self.submitting, "job", "submit", "-t", "cluster", "-p", parallelism, *words)

    def _of(self, build):
        return {**self.environment, "PYTHONPATH": str(build.folder)}

    # ---- the steps ----

    def roll_task_managers(self, build):
        """Replace every TaskManager that is not of a build, one after the other."""
        for old in [key for key, each in self.listed().items() if each["version"] != build.version]:
            count = len(self.listed())
            self.begin(build, "taskmanager", "start")
            self.await_task_managers(count + 1)
            drain = self.command(build, "taskmanager", "drain", old, "--wait")
            assert drain.wait(_DRAINED_S) == 0, drain.stderr + self.log_tails()
            assert old not in self.listed()

    def roll_job_managers(self, build):
        """Replace the JobManager that stands by, then the one that leads."""
        leading = self.leader_port
        for port in sorted(self.ports, key=lambda port: port == leading):
            epoch, process = self.leaders.now.epoch, self.process_at(port)
            os.kill(process.pid, signal.SIGTERM)  # as ``jobmanager.sh stop`` does on a machine of its own
            process.wait(60)
            if port == leading:
                self.leaders.after(epoch, 60)
            self.begin(build, "jobmanager", "start", "localhost", str(port))
            self.await_job_manager(port, build)

    def await_job_manager(self, port, build):
        """Wait until a JobManager of that build answers, whether it leads or not."""
        self.wait_until(lambda: self.version_at(port) == build.version, f"a JobManager of {build.version}")

    # ---- what is seen ----

    def listed(self):
        """Return the TaskManagers by id."""
        found = self.wait_until(lambda: self.get("/taskmanagers")["taskmanagers"], "TaskManagers")
        return {each["id"]: each for each in found}

    def of_job_manager(self, port, path):
        """Return what one JobManager tells of its own process, whether it leads or not."""
        with urllib.request.urlopen(f"http://localhost:{port}/jobmanager/{path}", timeout=20) as answer:
            return json.load(answer)

    def version_at(self, port):
        """Return the version of a JobManager."""
        return self.of_job_manager(port, "environment")["version"]

    def refused(self):
        """Return the callers that the leader has refused: a TaskManager asks no other JobManager."""
        return self.of_job_manager(self.leader_port, "refusals")["refused"]

    def attempts_of(self, job_id):
        """Return, of each subtask, the number of its last attempt and the TaskManager that ran it."""
        found = []
        for vertex in self.get(f"/jobs/{job_id}")["vertices"]:
            subtasks = self.get(f"/jobs/{job_id}/vertices/{vertex['id']}")["subtasks"]
            found += [(each["attempt"], each["taskmanager-id"]) for each in subtasks]
        return found
