"""All of TPC-DS while processes die, with everything beside the cluster that operators and tools run there.

    make chaos-everything         half an hour on two cores; SEED=n repeats one schedule

A history server, a server of Flight SQL whose clients ask on, Prometheus, a receiver of OpenLineage's events and of
the webhook. Each query meets a fault: a TaskManager, a leader or a server of the quorum that is killed.
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
from tests.ha.quorum import free_port, needs_quorum
from tests.rpc.test_webhook import Receiver
from tests.tpcds import queries as tpcds

__all__ = ["source"]  # a fixture

FAULTS = (kill_task_manager, kill_leader, take_another_server_away)
#: queries of TPC-DS, by name; QUERIES=3,42 takes some
NAMES = [f"tpcds-{name}" for name in os.environ.get("QUERIES", ",".join(tpcds.QUERIES)).split(",")]


@contextmanager
def serving(cluster, table):
    """Serve a table over Flight SQL, with the cluster behind; yield the address."""
    words = ["serve", "--flight-sql", "0", "--table", table, "--no-token", "-t", "cluster"]
    server = subprocess.Popen(
        [sys.executable, "-m", "engine.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=cluster.environment,
        text=True,
    )
    try:
        readable, _, _ = select.select([server.stdout], [], [], 60)
        line = server.stdout.readline() if readable else ""
        assert line.startswith("Flight SQL at "), line
        yield line.split()[3]
        assert server.poll() is None, "the server of Flight SQL has ended"
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


class Asking(threading.Thread):
    """A tool that asks over Flight SQL, query after query, and compares each answer."""

    def __init__(self, uri, query, expected):
        super().__init__()
        self._uri, self._query, self._expected = uri, query, expected
        self._is_over = threading.Event()
        self.right, self.wrong, self.failures = 0, [], []

    def run(self):
        import adbc_driver_flightsql.dbapi as dbapi

        while not self._is_over.wait(1.0):
            try:
                with dbapi.connect(self._uri, autocommit=True) as connected, connected.cursor() as cursor:
                    cursor.execute(self._query)
                    rows = cursor.fetchall()
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
    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        url = receiver.url.partition("/hook")[0]
        (tmp_path / "lineage.yml").write_text(f"transport: {{type: http, url: '{url}'}}\n")
        monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "lineage.yml"))
        settings = settings_of(receiver)
        cluster = GuardedCluster(tmp_path / "cluster", quorum, task_managers=3, session_s=6, points=(), **settings)
        stack.enter_context(cluster)
        cluster.script("historyserver", "start")
        stack.callback(cluster.script, "historyserver", "stop")
        (tmp_path / "prometheus").mkdir()
        addresses = [f"localhost:{port}" for port in (*cluster.ports, int(settings["historyserver.web.port"]))]
        prometheus = Prometheus(tmp_path / "prometheus", {"drey": addresses}, "groups: []\n")
        stack.callback(prometheus.close)
        count = pq.read_metadata(sales).num_rows
        asking = Asking(
            stack.enter_context(serving(cluster, f"sales={sales}")), "SELECT count(*) FROM sales", [(count,)]
        )
        asking.start()
        stack.callback(asking.stop)
        each_meets(cluster, tmp_path, source, seed, lambda *where: next(faults)(*where), NAMES)  # noqa: PLW0108  another one each time
        asking.stop()
        print(f"{len(NAMES)} queries; Flight SQL: {asking.right} right, {len(asking.failures)} failed")
        assert asking.wrong == [] and asking.right > len(NAMES) // 3, asking.failures[-3:]
        check_what_was_told(cluster, receiver, prometheus, settings)


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
