"""What each connector does in each place where jobs run: it works, or is refused by a text that says where it does."""

import json
import os
import subprocess
import sys

import pytest

from tests.entrypoint.conftest import ROOT
from tests.postgresql_server import postgresql
from tests.storage.moto_server import running

for package in ("adbc_driver_postgresql", "adbc_driver_sqlite", "deltalake", "pyiceberg", "duckdb"):
    pytest.importorskip(package)

ELSEWHERE = "on local or cluster"
WORKS = ""
#: the words of each error, "" where a connector works
TABLE = {
    #                      embedded, cluster, spark
    "parquet on a store": (WORKS, WORKS, ELSEWHERE),
    "delta": (WORKS, WORKS, WORKS),
    "delta merge": (WORKS, WORKS, ELSEWHERE),
    "iceberg": (WORKS, WORKS, ELSEWHERE),
    "iceberg merge": (WORKS, WORKS, ELSEWHERE),
    "postgresql": (WORKS, WORKS, WORKS),
    "sqlite": (WORKS, WORKS, WORKS),
    "another driver": (WORKS, WORKS, WORKS),
}


@pytest.fixture
def given():
    with postgresql() as uri, running("bucket") as store:
        yield {"postgresql": uri, "settings": store.settings}


def check(done, place):
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert list(told) == list(TABLE)
    for name, text in told.items():
        words = TABLE[name][place]
        assert bool(text) == bool(words), (name, text)
        assert words in text, (name, text)


def command(folder, target, given):
    return (sys.executable, "-m", "tests.entrypoint.connectors", str(folder), target, json.dumps(given))


@pytest.mark.integration
def test_embedded(tmp_path, given):
    done = subprocess.run(command(tmp_path, "local", given), cwd=ROOT, capture_output=True, text=True, check=False)
    check(done, 0)


@pytest.mark.processes
def test_on_a_cluster(installation, tmp_path, given):
    # Processes of a cluster have keys of their own.
    installation.configure(**given["settings"])
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr + started.stdout
    check(installation.run(command=command(tmp_path, "cluster", given)), 1)
    assert installation.run("cluster", "stop").returncode == 0


@pytest.mark.spark
def test_on_spark(tmp_path, given):
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command(tmp_path, "spark", given), cwd=ROOT, capture_output=True, text=True, check=False, env=environment
    )
    check(done, 2)
