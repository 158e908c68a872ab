"""The leader dies, or hangs past its session, at any point of a job: the job goes on where it was."""

import os
from pathlib import Path

import pytest

from tests.chaos.conftest import IS_SHORT, RATE
from tests.chaos.guarded_cluster import GuardedCluster
from tests.chaos.leader_trials import Trials, run_trials, summary
from tests.ha.quorum import needs_quorum

pytestmark = [needs_quorum, pytest.mark.timeout(7200)]
TRIALS = {"short": 2, "full": 100}.get(os.environ.get("CHAOS", ""), 25)
SEED = int(os.environ.get("CHAOS_SEED", "1"))


def record_file(action, is_supervised, session_s):
    """Return where trials that have passed are written down, or None."""
    folder = os.environ.get("CHAOS_RECORDS")
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{action}-{'supervised' if is_supervised else 'alone'}-{session_s}.jsonl"


@pytest.mark.parametrize(
    ("action", "is_supervised", "session_s"),
    [("kill", True, 6), ("kill", False, 2), ("stop", False, 2)]
    if IS_SHORT
    else [("kill", True, 6), ("kill", True, 2), ("kill", False, 2), ("kill", False, 6), ("stop", False, 2)],
)
def test_a_job_goes_on_under_the_next_leader(tmp_path, quorum, data, expected, action, is_supervised, session_s):
    folder = tmp_path / "out"
    folder.mkdir()
    with GuardedCluster(
        tmp_path / "cluster", quorum, session_s=session_s, is_supervised=is_supervised, action=action
    ) as cluster:
        trials = Trials(cluster, data, expected, folder, RATE, action)
        records = run_trials(trials, TRIALS, SEED, record_file(action, is_supervised, session_s))
    print(f"{action}, session {session_s} s, {'supervised' if is_supervised else 'alone'}: {summary(records)}")
