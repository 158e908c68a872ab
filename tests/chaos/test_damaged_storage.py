"""What is stored of one job is damaged while nobody leads: that job fails and says so, the others go on."""

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
