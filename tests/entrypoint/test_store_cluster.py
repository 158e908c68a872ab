"""A cluster whose JobManagers share an object store, and no file system: a job and its modules outlive the leader."""

import json
import os
import re

import pytest

from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import needs_quorum
from tests.storage.moto_server import KEYS, running
from tests.storage.store_proxy import Proxy

pytestmark = [needs_quorum, pytest.mark.processes]
PREFIX = "s3://drey-ha/state"


@pytest.fixture
def server():
    with running("drey-ha") as found:
        yield found


@pytest.mark.parametrize("fault", ["busy", None, 0.1] if os.environ.get("CHAOS") else ["busy"], ids=str)
def test_a_job_goes_on_when_the_leader_is_killed_and_no_secret_is_told(tmp_path, quorum, server, fault):
    data = tmp_path / "data"
    data.mkdir()
    write_data(data)
    (tmp_path / "brought.py").write_text("ANSWER = 42\n")
    proxy = Proxy(server.endpoint)
    proxy.fault = lambda number, method, path: fault if fault == 0.1 or number % 3 == 0 else None
    texts = {key: str(value).lower() if value is True else value for key, value in server.settings.items()}
    texts["storage.s3.endpoint"] = proxy.endpoint
    settings = {**texts, "high-availability.storageDir": PREFIX}
    use_store_settings(texts)
    files = file_system_of(PREFIX)
    try:
        with (
            proxy.running(),
            GuardedCluster(
                tmp_path / "cluster", quorum, job_managers=2, task_managers=1, points=(), **settings
            ) as cluster,
        ):
            job = cluster.submit(
                JOB, data, tmp_path / "out", RATE, options=("--py-files", str(tmp_path / "brought.py"))
            )
            cluster.await_state(job.job_id(), "RUNNING")
            stored = {name: files.read(f"{PREFIX}/{name}") for name, _, _ in files.below(PREFIX)}
            kinds = {re.sub(r"[0-9a-f]{8,}", "*", name) for name in stored}
            assert {"default/identity", "default/jobs/*/graph-*"} <= kinds
            assert any(re.fullmatch(r"default/jobs/\*/journal-\w+/00000", kind) for kind in kinds), kinds
            assert "default/blobs/*/*" in kinds, "modules that the job brings"
            _, epoch, _ = cluster.kill_leader()
            assert job.wait() == 0, job.stderr
            assert rows_of(tmp_path / "out") == expected_rows(data)
            assert cluster.leaders.now.epoch > epoch
            cluster.wait_until(lambda: kept(files) == ["default/identity"], f"nothing kept of the job: {kept(files)}")
            history = [files.read(f"{PREFIX}/{name}") for name, _, _ in files.below(PREFIX) if "/history/" in name]
            pages = [cluster.get(path) for path in ("/jobmanager/config", "/jobs", f"/jobs/{job.job_id()}")]
        told = json.dumps(pages).encode() + job.stdout.encode() + job.stderr.encode()
        logs = [path.read_bytes() for path in (tmp_path / "cluster").rglob("*.log*") if path.is_file()]
        assert logs and KEYS["secret_access_key"].encode() not in b"".join([told, *logs, *stored.values()])
        assert len(history) == 1 and KEYS["secret_access_key"].encode() not in history[0]
    finally:
        use_store_settings({})


def kept(files):
    return [name for name, _, _ in files.below(PREFIX) if "/history/" not in name]
