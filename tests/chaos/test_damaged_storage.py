"""What is stored of jobs is damaged, while nobody leads or somebody does: whoever is hit says so, the others go on."""

import shutil

import pytest
from kazoo.client import KazooClient
from kazoo.security import CREATOR_ALL_ACL

from tests.chaos.conftest import JOB, RATE, rows_of
from tests.chaos.guarded_cluster import GuardedCluster
from tests.ha.quorum import needs_quorum

pytestmark = needs_quorum


def put_rubbish(settings, name):
    """Make a node among the handles that no leader has made."""
    client = KazooClient(settings.hosts, auth_data=[("digest", f"drey:{settings.key(b'digest').hex()}")])
    client.start()
    try:
        client.create(f"{settings.jobs_folder}/{name}", b"rubbish", acl=CREATOR_ALL_ACL)
    finally:
        client.stop()
        client.close()


def test_a_flipped_byte_and_a_node_of_others_cost_one_job(tmp_path, quorum, data, expected):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=4) as cluster:
        good = cluster.submit(JOB, data, tmp_path / "good", RATE)
        bad = cluster.submit(JOB, data, tmp_path / "bad", RATE)
        good.job_id()
        path = next((cluster.storage / "default" / "jobs" / bad.job_id()).glob("graph-*"))
        cluster.kill_leader()
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        put_rubbish(cluster.zookeeper_settings(), "f" * 32)
        assert good.wait() == 0, good.stderr
        assert rows_of(tmp_path / "good") == expected
        assert bad.wait() == 1
        assert f"{path} is damaged" in bad.stderr
        assert sorted(path.name for path in tmp_path.iterdir() if "bad" in path.name) == []
        cluster.wait_until(lambda: cluster.state_left() == ["f" * 32], "the remains of both jobs")
        listed = cluster.run("ha", "gc")
        assert listed.returncode == 0
        assert "foreign" in listed.stdout
        assert len(listed.stdout.splitlines()) == 2


def is_all_given_back(cluster):
    overview = cluster.get("/overview")
    return overview["slots-available"] == overview["slots-total"] and cluster.state_left() == []


@pytest.mark.parametrize("what", ["jobs", "."])
def test_what_is_removed_while_a_leader_leads_is_nothing_to_jobs(tmp_path, quorum, data, expected, what):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=4) as cluster:
        before = cluster.submit(JOB, data, tmp_path / "before", RATE)
        cluster.await_state(before.job_id(), "RUNNING")
        epoch = cluster.leaders.now.epoch
        shutil.rmtree(cluster.storage / "default" / what)
        after = cluster.submit(JOB, data, tmp_path / "after", RATE)
        for job, name in ((before, "before"), (after, "after")):
            assert job.wait() == 0, job.stderr
            assert rows_of(tmp_path / name) == expected
        cluster.wait_until(lambda: is_all_given_back(cluster), "slots and files")
        assert cluster.leaders.now.epoch == epoch


@pytest.mark.parametrize("what", ["jobs", "."])
def test_what_is_removed_with_its_leader_ends_the_job_with_a_reason_and_nothing_is_kept(tmp_path, quorum, data, what):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=4) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE // 8)
        cluster.await_state(job.job_id(), "RUNNING")
        cluster.kill_leader()  # which would store it again
        shutil.rmtree(cluster.storage / "default" / what)
        assert job.wait() == 1
        assert ("is missing" if what == "jobs" else "is it mounted, or was it removed?") in job.stderr
        cluster.wait_until(lambda: is_all_given_back(cluster), "slots and files")
        assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []
