"""Prometheus for tests: a server of a test's own, the rules of ``conf/prometheus``, and the names of all metrics."""

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from engine.gateways.messages import JobList
from engine.gateways.task_executors import TaskExecutorList
from engine.insight.cluster_events import ClusterEvents
from engine.rest.cluster_families import cluster_families, event_families, job_families
from engine.rest.process_families import PROCESS_ROWS, ProcessOf, process_families
from tests.entrypoint.conftest import ROOT, until
from tests.ha.quorum import free_port

RULES = ROOT / "conf" / "prometheus" / "drey.rules.yaml"
BOARD = ROOT / "conf" / "grafana" / "drey.json"

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="Prometheus is missing (apt-get install prometheus)",
)


def families():
    """Return all families of metrics that there are."""
    events = ClusterEvents()
    values = {f"{row.source}{'x' if row.label else ''}": 1.0 for row in PROCESS_ROWS}
    return (
        *cluster_families(JobList(()), TaskExecutorList(()), 0),
        *event_families(events.counts, events.durations),
        *job_families([]),
        *process_families([ProcessOf("p", "1", "1", values)]),
    )


def metric_names():
    """Return the names that a query can have."""
    ends = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
    return {f"{family.name}{end}" for family in families() for end in ends[family.type]}


def names_in(query):
    return set(re.findall(r"\bdrey_\w+", query))


class Prometheus:
    """A server in a folder that reads the targets twice a second; ``job_settings``: further words of each job."""

    def __init__(self, folder: Path, targets, rules: str, job_settings: str = "") -> None:
        self._folder, self._address = folder, f"localhost:{free_port()}"
        self.use(rules)
        jobs = "".join(
            f"  - {{job_name: {job}, {job_settings}static_configs: [{{targets: {json.dumps(addresses)}}}]}}\n"
            for job, addresses in targets.items()
        )
        (folder / "prometheus.yaml").write_text(
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 300ms}\n"
            f"rule_files: [rules.yaml]\nscrape_configs:\n{jobs}"
        )
        words = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["prometheus", *words, f"--web.listen-address={self._address}"], stdout=log, stderr=log
            )
        until(lambda: self.query("vector(1)"), "an answer of Prometheus")

    def use(self, rules: str) -> None:
        """Take other rules; a server that runs hears of them."""
        (self._folder / "rules.yaml").write_text(rules)
        if hasattr(self, "_process"):
            self._process.send_signal(signal.SIGHUP)

    def _asked(self, path):
        try:
            with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}", timeout=30) as answer:
                return json.loads(answer.read())["data"]
        except OSError:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            return {}

    def query(self, query):
        """Return the values of a query."""
        return [float(each["value"][1]) for each in self._asked_for(query)]

    def _asked_for(self, query):
        return self._asked(f"query?query={urllib.parse.quote(query)}").get("result", [])

    def firing(self):
        """Return the names of the alerts that fire."""
        alerts = self._asked("alerts").get("alerts", [])
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)
