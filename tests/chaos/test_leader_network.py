"""The leader is cut from ZooKeeper, from TaskManagers, or from both, one way and both ways, by seeded schedules."""

import signal

import pytest

from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of
from tests.chaos.far_guarded_cluster import PLACES, TASK_MANAGERS, FarGuardedCluster, far_quorum
from tests.chaos.tap_network import TapNetwork, reason_against
from tests.chaos.test_quorum_faults import check_promises
from tests.ha.quorum import needs_quorum

pytestmark = [needs_quorum, pytest.mark.timeout(600)]
WORKERS = [f"tm{number}" for number in range(1, TASK_MANAGERS + 1)]
#: who the leader is cut from, and which way: it hears nobody, nobody hears it, both
FROM = {"zookeeper": ["zk"], "task managers": WORKERS, "both": ["zk", *WORKERS]}
WAYS = ("deaf", "mute", "both ways")


@pytest.fixture
def network(seed):
    if reason := reason_against():
        pytest.skip(reason)
    made = TapNetwork(PLACES, seed.random())
    yield made
    made.heal()
    made.close()


@pytest.fixture
def quorum(tmp_path, network):
    folder = tmp_path / "quorum"
    folder.mkdir()
    made = far_quorum(folder, network)
    made.start()
    yield made
    made.stop()


def cut(network, leader, others, way):
    for other in others:
        if way != "mute":
            network.cut(other, leader, both=False)
        if way != "deaf":
            network.cut(leader, other, both=False)


@pytest.mark.parametrize("seed", range(1 if IS_SHORT else 18), indirect=True)
def test_the_leader_is_cut_off_for_a_while(tmp_path, network, quorum, data, expected, seed):
    with FarGuardedCluster(tmp_path / "cluster", network, quorum) as cluster:
        job = cluster.submit(JOB, data, tmp_path / "out", RATE / 2)
        cluster.await_state(job.job_id(), "RUNNING")
        for _ in range(2):
            whom, way, time_s = seed.choice(sorted(FROM)), seed.choice(WAYS), seed.choice([0.5, 2.5, 5.0])
            leader = cluster.leaders.now
            print(f"{leader.address} is cut from {whom}, {way}, for {time_s} s")
            cut(network, cluster.leader_place(), FROM[whom], way)
            signal.sigtimedwait([], time_s)
            network.heal()
            if "zk" in FROM[whom] and time_s > 4:
                cluster.leaders.after(leader.epoch, 60)
        assert network.counts["cut"] > 0
        assert job.wait(240) == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
        assert rows_of(tmp_path / "out") == expected
        assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == ["out"]
        cluster.wait_until(lambda: not cluster.state_left(), "nothing kept of the job")
    check_promises(quorum)
