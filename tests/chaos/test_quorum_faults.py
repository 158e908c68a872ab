"""ZooKeeper itself fails under jobs and submissions: nothing is lost, nothing runs twice, nothing is deleted."""

import threading
import time

import pytest

from tests.chaos.cluster import PATIENT, ROOT
from tests.chaos.conftest import IS_SHORT, JOB, RATE, rows_of
from tests.chaos.guarded_cluster import GuardedCluster
from tests.ha.quorum import needs_quorum
from tests.ha.zookeeper_history import check_history, read_history

pytestmark = [needs_quorum, pytest.mark.timeout(1200)]
TINY_JOB = ROOT / "tests" / "chaos" / "count_rows.py"


def attempts_of(cluster, job_id):
    vertices = cluster.get(f"/jobs/{job_id}")["vertices"]
    details = [cluster.get(f"/jobs/{job_id}/vertices/{vertex['id']}") for vertex in vertices]
    return {subtask["attempt"] for vertex in details for subtask in vertex["subtasks"]}


def check_promises(quorum):
    """Hold what ZooKeeper logged against what was promised."""
    history = read_history(quorum.folder / "data")
    assert any(transaction.changes for transaction in history)
    assert check_history(history, "/drey/default") == []


def finish(cluster, job, target, expected):
    assert job.wait(240) == 0, f"{job.stdout}\n{job.stderr}\n{cluster.log_tails(40)}"
    assert rows_of(target) == expected
    assert attempts_of(cluster, job.job_id()) == {0}
    cluster.wait_until(lambda: not cluster.state_left(), "nothing kept of the job")


def leader_of(quorum):
    return next(number for number in quorum.servers if quorum.mode(number) == "leader")


@pytest.mark.parametrize("trial", range(1 if IS_SHORT else 10))
def test_the_leader_of_the_quorum_is_killed_and_no_job_manager_changes(tmp_path, quorum, data, expected, trial):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=20, **PATIENT) as cluster:
        epoch = cluster.leaders.now.epoch
        job = cluster.submit(JOB, data, tmp_path / "out", RATE)
        cluster.await_state(job.job_id(), "RUNNING")
        time.sleep(trial / 5)
        quorum.kill(leader_of(quorum))
        finish(cluster, job, tmp_path / "out", expected)
        assert cluster.leaders.now.epoch == epoch
    check_promises(quorum)


def test_the_whole_quorum_restarts_within_a_session_and_no_job_notices(tmp_path, quorum, data, expected):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=60, **PATIENT) as cluster:
        epoch = cluster.leaders.now.epoch
        job = cluster.submit(JOB, data, tmp_path / "out", RATE / 2)
        cluster.await_state(job.job_id(), "RUNNING")
        for number in quorum.servers:
            quorum.kill(number)
        time.sleep(1)
        quorum.start()
        finish(cluster, job, tmp_path / "out", expected)
        assert cluster.leaders.now.epoch == epoch
    check_promises(quorum)


@pytest.mark.skipif(IS_SHORT, reason="takes minutes")
def test_a_quorum_that_is_away_for_a_minute_is_waited_for(tmp_path, quorum, data, expected):
    with GuardedCluster(tmp_path / "cluster", quorum, session_s=4, **PATIENT) as cluster:
        epoch = cluster.leaders.now.epoch
        job = cluster.submit(JOB, data, tmp_path / "out", RATE / 10)
        job_id = job.job_id()
        cluster.await_state(job_id, "RUNNING")
        kept = cluster.state_left()
        for number in quorum.servers:
            quorum.kill(number)
        time.sleep(60)
        assert job.process.poll() is None, job.stderr
        quorum.start()
        began = time.monotonic()
        _, leader = cluster.leaders.after(epoch, 30)
        print(f"led again {time.monotonic() - began:.1f} s after the quorum was back, under epoch {leader.epoch}")
        assert set(kept) & set(cluster.state_left()), "what was kept of the job was deleted"
        finish(cluster, job, tmp_path / "out", expected)
    check_promises(quorum)


def test_servers_and_job_managers_restart_in_turn_under_submissions(tmp_path, quorum):
    count = 6 if IS_SHORT else 60
    failures, ids = [], []
    with GuardedCluster(tmp_path / "cluster", quorum, job_managers=3, session_s=4) as cluster:

        def submit_all(first):
            for number in range(first, count, 2):
                target = tmp_path / f"out-{number}"
                job = cluster.submit(TINY_JOB, target, 1000 + number)
                code = job.wait(240)
                rows = sum(int(row[1]) for row in rows_of(target)) if code == 0 else -1
                if code != 0 or rows != 1000 + number:
                    failures.append(f"job {number}: code {code}, {rows} rows\n{job.stdout}\n{job.stderr}")
                else:
                    ids.append(job.job_id())

        submitters = [threading.Thread(target=submit_all, args=(first,)) for first in range(2)]
        for thread in submitters:
            thread.start()
        rounds = 0
        while any(thread.is_alive() for thread in submitters):
            number = rounds % 3
            quorum.kill(1 + number)
            quorum.start()
            cluster.wait_until(lambda: sorted(map(quorum.mode, quorum.servers))[-1] == "leader", "a quorum")
            victim = cluster.process_at(cluster.ports[number])
            victim.terminate()
            cluster.wait_until(lambda victim=victim: not victim.is_running(), "the JobManager's end")
            cluster.restore_job_managers()
            rounds += 1
        for thread in submitters:
            thread.join()
        assert failures == []
        assert len(set(ids)) == count
        listed = [job["jid"] for job in cluster.get("/jobs/overview")["jobs"]]
        assert sorted(listed) == sorted(ids), "a job was lost, or there is one that nobody submitted"
        cluster.wait_until(lambda: not cluster.state_left(), "nothing kept of jobs")
        print(f"{rounds} restarts of a server and a JobManager under {count} submissions")
        assert rounds
    check_promises(quorum)
