"""A cluster is backed up while it runs a job, lost with all that it has stored, and restored: the job goes on."""

import json
import shutil

import pytest

from tests.chaos.cluster import PATIENT, ChaosCluster
from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import needs_quorum

pytestmark = pytest.mark.processes


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_data(folder)
    return folder


def backed_up(cluster, file, data, out, *, is_alone):
    """Begin a job, back the cluster up meanwhile, and kill all of its processes; return the job's id."""
    job = cluster.submit(JOB, data, out, RATE // 4, options=("-d",))
    job_id = job.job_id()
    assert job.wait() == 0
    cluster.await_state(job_id, "RUNNING")
    done = cluster.run("ha", "backup", str(file), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobs"] == 1
    if is_alone:  # several are waited for: one that was stopped leads until its session ends
        refused = cluster.run("ha", "restore", str(file))
        assert refused.returncode == 1 and "a JobManager leads: stop the cluster" in refused.stderr
    cluster.kill_all()
    return job_id


def test_one_job_manager(tmp_path, data):
    out, file = tmp_path / "out", tmp_path / "a.backup"
    storage = tmp_path / "storage"
    with ChaosCluster(
        tmp_path / "cluster", task_managers=1, **PATIENT, **{"high-availability.storageDir": storage}
    ) as cluster:
        job_id = backed_up(cluster, file, data, out, is_alone=True)
        shutil.rmtree(storage)
        done = cluster.run("ha", "restore", str(file))
        assert done.returncode == 0 and "1 job that had not ended" in done.stdout, done.stderr
        cluster.start()
        state = cluster.await_state(job_id, "FINISHED", "FAILED")
        assert state == "FINISHED", cluster.get(f"/jobs/{job_id}/exceptions")["root-exception"]
        assert rows_of(out) == expected_rows(data)


@needs_quorum
def test_job_managers_of_a_quorum_under_another_name(tmp_path, data, small_quorum):
    out, file = tmp_path / "out", tmp_path / "a.backup"
    with GuardedCluster(
        tmp_path / "cluster", small_quorum, job_managers=2, task_managers=1, points=(), **PATIENT
    ) as cluster:
        job_id = backed_up(cluster, file, data, out, is_alone=False)
        shutil.rmtree(cluster.storage)
        config = cluster.folder / "conf" / "config.yaml"
        config.write_text(config.read_text() + "high-availability.cluster-id: restored\n")
        done = cluster.run("ha", "restore", str(file))
        assert done.returncode == 0 and "1 job that had not ended" in done.stdout, done.stderr
        cluster.start()
        state = cluster.await_state(job_id, "FINISHED", "FAILED")
        assert state == "FINISHED", cluster.get(f"/jobs/{job_id}/exceptions")["root-exception"]
        assert rows_of(out) == expected_rows(data)
