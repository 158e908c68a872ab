"""All of TPC-DS while processes die, with everything beside the cluster that operators and tools run there.

    make chaos-everything         half an hour on two cores; SEED=n repeats one schedule

A history server, a server of Flight SQL whose clients ask on, Prometheus, a receiver of OpenLineage's events and of
the webhook. All of it speaks TLS, jobs are of a user with a token, changes are recorded, disks and jobs have limits,
and the leader looks for garbage all the time. Each query meets a fault: a TaskManager, a leader or a server of the
quorum that is killed, or the session of the leader that ends.
"""

import collections
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pyarrow.parquet as pq
import pytest

from tests.chaos.conftest import IS_FULL
from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.test_sql_queries import (
    each_meets,
    kill_leader,
    kill_task_manager,
    source,
    take_another_server_away,
)
from tests.entrypoint.monitoring import Prometheus, needs_prometheus
from tests.ha.quorum import free_port, needs_quorum, started_quorum
from tests.rpc.test_tls import contexts, made
from tests.rpc.test_webhook import Receiver
from tests.tpcds import queries as tpcds

__all__ = ["source"]  # a fixture

#: settings under which no query fails, and that are all looked at
LIMITS = {
    "taskmanager.disk.limit": "256mb",
    "job.limit.wall-time": "15 min",
    "job.limit.slots": "100",
    "job.limit.disk": "512mb",
    "user.limit.running-jobs": "4",
    "high-availability.gc.interval": "2 s",
}
USER = "ada"
#: within half of which servers of the quorum, of which there are two, must answer each other on a busy machine
SESSION_S = 8
#: seconds in which each query ends, also where other work on this machine leaves nothing to it for minutes
QUERY_S = 800
#: queries of TPC-DS, by name; QUERIES=3,42 takes some
NAMES = [f"tpcds-{name}" for name in os.environ.get("QUERIES", ",".join(tpcds.QUERIES)).split(",")]


@pytest.fixture
def quorum(tmp_path):
    """Three servers for sessions that last longer than those of other tests."""
    with started_quorum(tmp_path / "quorum", 3, SESSION_S) as made:
        yield made


class EverythingCluster(GuardedCluster):
    """Within TLS; jobs are submitted with the token of a user."""

    def __init__(self, folder, quorum, **settings):
        secured = dict(line.split(": ", 1) for line in made(folder.parent / "tls").splitlines())
        # two servers of three may need long for an election on a busy machine
        settings["high-availability.zookeeper.client.connection-timeout"] = f"{QUERY_S} s"
        settings["client.timeout"] = f"{QUERY_S} s"
        super().__init__(folder, quorum, task_managers=3, session_s=SESSION_S, points=(), **LIMITS | secured | settings)
        self.authority = folder.parent / "tls" / "ca.pem"
        self.tls = contexts(folder.parent / "tls").client
        self.token = json.loads(self.run("token", "add", USER, "--role", "submit", "--json").stdout)["token"]
        with open(folder / "conf" / "ada.token", "w", opener=lambda *where: os.open(*where, 0o600)) as file:
            file.write(self.token)

    def submit(self, script, *arguments, options=(), folder=None):
        """Submit as the user."""
        return super().submit(script, *arguments, options=("-D", "security.token-file=ada.token"), folder=folder)

    def audited(self):
        """Return what the records of changes of all JobManagers have."""
        files = (self.folder / "log").glob("*-audit.log*")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def end_session(cluster, _seed):
    """Stop the leader for longer than its session lasts."""
    leader = cluster.wait_until(cluster.leader_process, "a leader that listens")
    epoch = cluster.leaders.now.epoch
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        cluster.leaders.after(epoch, QUERY_S)
    finally:
        os.kill(leader.pid, signal.SIGCONT)


FAULTS = (kill_task_manager, kill_leader, take_another_server_away, end_session)


@contextmanager
def serving(cluster, table):
    """Serve a table over Flight SQL, with the cluster behind; yield the address."""
    words = ["serve", "--flight-sql", "0", "--table", table, "-t", "cluster"]
    with (cluster.folder / "log" / "serve.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "engine.cli.main", *words],
            stdout=subprocess.PIPE,
            stderr=log,
            env=cluster.environment,
            text=True,
        )
    try:
        readable, _, _ = select.select([server.stdout], [], [], 60)
        line = server.stdout.readline() if readable else ""
        assert line.startswith("Flight SQL at "), line + cluster.log_tails()
        yield line.split()[3]
        assert server.poll() is None, "the server of Flight SQL has ended"
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


class Asking(threading.Thread):
    """A tool that asks over Flight SQL, query after query, and compares each answer."""

    def __init__(self, uri, options, query, expected):
        super().__init__()
        self._uri, self._options, self._query, self._expected = uri, options, query, expected
        self._is_over = threading.Event()
        self.right, self.wrong, self.failures = 0, [], []

    def run(self):
        import adbc_driver_flightsql.dbapi as dbapi

        while not self._is_over.wait(1.0):
            try:
                with dbapi.connect(self._uri, self._options, autocommit=True) as connected:
                    rows = connected.execute(self._query).fetchall()
            except dbapi.Error as error:
                self.failures.append(str(error))
                continue
            if rows == self._expected:
                self.right += 1
            else:
                self.wrong.append(rows)

    def stop(self):
        self._is_over.set()
        self.join()


def login(cluster):
    """Return what a client of Flight SQL needs to be let in."""
    return {
        "adbc.flight.sql.authorization_header": f"Bearer {cluster.token}",
        "adbc.flight.sql.client_option.tls_root_certs": cluster.authority.read_text(),
    }


def scraping(tls):
    """Return how Prometheus reads processes within TLS."""
    files = f"ca_file: {tls}/ca.pem, cert_file: {tls}/cluster.pem, key_file: {tls}/cluster.key"
    return f"scheme: https, tls_config: {{{files}}}, "


def settings_of(receiver):
    return {
        "jobmanager.webhook.url": receiver.url,
        "jobmanager.webhook.key-file": "hook.key",
        "lineage.enabled": "true",
        "historyserver.web.port": str(free_port()),
        "historyserver.archive.fs.refresh-interval": "1 s",
    }


@pytest.mark.skipif(not IS_FULL, reason="all of TPC-DS, with everything beside: CHAOS=full")
@needs_quorum
@needs_prometheus
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("seed", [0], indirect=True)
def test_every_query_is_right_with_everything_running_and_faults(tmp_path, quorum, source, seed, monkeypatch):
    pytest.importorskip("adbc_driver_flightsql")
    sales = source / "tpcds" / "store_sales.parquet"
    faults = itertools.cycle(FAULTS)

    def next_fault(*where):
        next(faults)(*where)

    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        url = receiver.url.partition("/hook")[0]
        (tmp_path / "lineage.yml").write_text(f"transport: {{type: http, url: '{url}'}}\n")
        monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "lineage.yml"))
        settings = settings_of(receiver)
        cluster = EverythingCluster(tmp_path / "cluster", quorum, **settings)
        stack.enter_context(cluster)
        cluster.script("historyserver", "start")
        stack.callback(cluster.script, "historyserver", "stop")
        (tmp_path / "prometheus").mkdir()
        addresses = [f"localhost:{port}" for port in (*cluster.ports, int(settings["historyserver.web.port"]))]
        scraped = scraping(tmp_path / "tls")
        prometheus = Prometheus(tmp_path / "prometheus", {"drey": addresses}, "groups: []\n", scraped)
        stack.callback(prometheus.close)
        count = pq.read_metadata(sales).num_rows
        uri = stack.enter_context(serving(cluster, f"sales={sales}"))
        asking = Asking(uri, login(cluster), "SELECT count(*) FROM sales", [(count,)])
        asking.start()
        stack.callback(asking.stop)
        each_meets(cluster, tmp_path, source, seed, next_fault, NAMES, query_s=QUERY_S)
        asking.stop()
        print(f"{len(NAMES)} queries; Flight SQL: {asking.right} right, {len(asking.failures)} failed")
        assert asking.wrong == [] and asking.right > len(NAMES) // 3, asking.failures[-3:]
        check_what_was_told(cluster, receiver, prometheus, settings)


def is_submission(entry):
    """Whether the record says that the user has submitted; that of a standby does not name the job."""
    told = [entry.get(key) for key in ("what", "outcome", "caller", "credential")]
    return told == ["submit", "done", USER, "user-token"] and "details" in entry


def check_what_was_told(cluster, receiver, prometheus, settings):
    """Everything beside the cluster knows of the end of each query."""
    jobs = {}

    def all_heard():
        for path, _, body in list(receiver.heard):
            if path.startswith("/hook"):
                told = json.loads(body)
                jobs.setdefault(told["id"], (told["name"], told["state"]))
        return {name for name, state in jobs.values() if state == "FINISHED"} >= set(NAMES)

    cluster.wait_until(all_heard, "the webhook's news of each query")
    lineage = collections.Counter(
        json.loads(body)["eventType"] for path, _, body in receiver.heard if path.startswith("/api/v1/lineage")
    )
    assert lineage["COMPLETE"] >= len(NAMES) and lineage["FAIL"] == 0, lineage
    submitted = {each["details"]["name"] for each in cluster.audited() if is_submission(each)}
    assert submitted == set(NAMES), submitted ^ set(NAMES)
    port, cluster.ports = cluster.ports, [int(settings["historyserver.web.port"])]
    try:
        cluster.wait_until(
            lambda: set(NAMES) <= {each["name"] for each in cluster.get("/jobs/overview")["jobs"]}, "the whole history"
        )
    finally:
        cluster.ports = port
    began_s = time.monotonic()
    cluster.wait_until(lambda: sum(prometheus.query("drey_leader")) == 1, "one leader, as Prometheus sees it")
    assert sum(prometheus.query("up")) == len(cluster.ports) + 1, time.monotonic() - began_s
