"""Trials of a leader's end: ``python -m tests.chaos.leader_trials FOLDER --trials 100 --session 2 [--supervised] ...``.

    each trial   a job is submitted; its leader is killed (or stopped past its session, and continued) at a fault point
                 or at a random moment; the attached client ends with 0, the output is the oracle's row for row, no
                 attempt was begun twice while its TaskManager lives, and nothing is kept of the job

One line of JSON a trial goes to ``--record``; those that are there already are not run again, so a run that was
interrupted goes on where it was. Each trial's random numbers follow from the seed and its number alone.
"""

import argparse
import collections
import json
import os
import random
import re
import signal
import statistics
import sys
import time
from pathlib import Path

import psutil

from tests.chaos.guarded_cluster import SUCCESSOR_POINTS, GuardedCluster
from tests.chaos.workload import JOB, RATE, expected_rows, rows_of, write_data
from tests.ha.quorum import Quorum

#: seconds of the job's life in which random moments lie
MOMENT_MAX_S = 3.5
_END_S = 180.0


class Trials:
    """Trials on one cluster, which lives through all of them."""

    def __init__(self, cluster, data, expected, folder, rate, action="kill"):
        self.cluster, self.data, self.expected = cluster, data, expected
        self.folder, self.rate, self.action = Path(folder), rate, action

    def run(self, number, seed):
        """Run one trial and return its record; AssertionError when a promise is broken."""
        random_ = random.Random(f"{seed}/{number}")
        point = random_.choice([None, *self.cluster.points])
        # A successor goes on with a job only when that has not ended.
        moment_s = random_.uniform(0, MOMENT_MAX_S / (2 if point in SUCCESSOR_POINTS else 1))
        target = self.folder / f"out-{number}"
        cluster = self.cluster
        epoch = cluster.leaders.now.epoch
        if point is not None:
            cluster.arm(point)
        job = cluster.submit(JOB, self.data, target, self.rate)
        job_id = job.job_id()
        if point is None or point in SUCCESSOR_POINTS:
            time.sleep(moment_s)
            process, epoch, hit_s = cluster.kill_leader(self._signal if point is None else signal.SIGKILL)
        if point is not None:
            cluster.wait_until(lambda: cluster.is_fired(point), point, _END_S)
            process = psutil.Process(cluster.fired_pid(point)) if self.action == "stop" else None
            hit_s = cluster.fired_s(point)
        heard_s, leader = cluster.leaders.after(epoch, _END_S)
        code = job.wait(_END_S)
        context = f"trial {number}, seed {seed}, {point or f'{moment_s:.2f} s'}\n{job.stdout}\n{job.stderr}"
        if code != 0 or rows_of(target) != self.expected:
            raise AssertionError(f"code {code}, {len(rows_of(target))} rows; {context}\n{cluster.log_tails(60)}")
        if self.action == "stop":
            os.kill(process.pid, signal.SIGCONT)
        again = {place: count for place, count in self._begun(job_id).items() if count > 1}
        assert not again, f"begun again: {again}; {context}"
        cluster.disarm()
        cluster.restore_job_managers()
        assert rows_of(target) == self.expected, f"the output changed after its end; {context}"
        left = sorted(path.name for path in self.folder.glob(".out-*"))
        assert not left, f"staging is left: {left}; {context}"
        cluster.wait_until(lambda: not cluster.state_left(), f"nothing kept of jobs: {cluster.state_left()}")
        return {
            "number": number,
            "seed": seed,
            "point": point or "random",
            "moment_s": round(moment_s, 3),
            # Of a successor's end it is not known whether anybody had heard of it.
            "takeover_s": None if point in SUCCESSOR_POINTS else round(heard_s - hit_s, 4),
            "epoch": leader.epoch,
        }

    @property
    def _signal(self):
        return signal.SIGKILL if self.action == "kill" else signal.SIGSTOP

    def _begun(self, job_id):
        """Return how many attempts of each subtask TaskManagers have begun, by what they log.

        One that never began may be followed by another: a slot whose offer was not answered is given back.
        """
        line = re.compile(rf"attempt (v\d+-\d+)-\d+-\w+ of job {job_id}, begins")
        logs = (self.cluster.folder / "log").glob("*taskmanager*.log*")
        begun = collections.Counter(place for log in logs for place in line.findall(log.read_text(errors="replace")))
        assert begun, "TaskManagers log nothing of the job"
        return begun


def run_trials(trials, count, seed, record=None):
    """Run those of ``count`` trials that are not recorded yet; return all records."""
    done = {}
    if record is not None and record.exists():
        done = {
            each["number"]: each for each in map(json.loads, record.read_text().splitlines()) if each["seed"] == seed
        }
    for number in range(count):
        if number in done:
            continue
        done[number] = trials.run(number, seed)
        if record is not None:
            with record.open("a") as file:
                file.write(json.dumps(done[number]) + "\n")
        print(json.dumps(done[number]), flush=True)
    return [done[number] for number in range(count)]


def summary(records):
    """Return one line about the times between the leader's end and the next one's record."""
    times_s = [record["takeover_s"] for record in records if record["takeover_s"] is not None]
    return (
        f"{len(records)} trials: takeover median {statistics.median(times_s):.3f} s, "
        f"maximum {max(times_s):.3f} s, minimum {min(times_s):.3f} s"
    )


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--session", type=int, default=2, help="session time-out in seconds")
    parser.add_argument("--supervised", action="store_true")
    parser.add_argument("--action", choices=["kill", "stop"], default="kill")
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args(words)
    options.folder.mkdir(parents=True)
    data = options.folder / "data"
    data.mkdir()
    write_data(data)
    (options.folder / "quorum").mkdir()
    quorum = Quorum(options.folder / "quorum", 3)
    quorum.start()
    try:
        with GuardedCluster(
            options.folder / "cluster",
            quorum,
            session_s=options.session,
            is_supervised=options.supervised,
            action=options.action,
        ) as cluster:
            trials = Trials(cluster, data, expected_rows(data), options.folder, options.rate, options.action)
            print(summary(run_trials(trials, options.trials, options.seed, options.record)))
    finally:
        quorum.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
