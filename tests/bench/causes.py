"""Ten jobs, each slow for a cause of its own: is it found with nothing but the page in view?

    python -m tests.bench.causes [--pages FOLDER] [--only NAME,...] [--scale 1.0]

    skew │ spilling │ slow function │ bad estimate │ slow disk │ slow store │ slots │ restarts │ tiny files │ cross join

Each job is real, and so is its cause: the disk is slowed by a control group of block devices, the store by a proxy that
lets each request wait, a TaskManager is killed by SIGKILL, another job has the slots. The page of each goes into the
folder, and a line says which cause the page names first. The exit code is 1 where that is another one.

The disk needs the right to make control groups of the first version, the store the package moto; where they are
missing, the line says so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from engine import Environment, col, lit, row_number, sum_
from engine.ids import JobId
from engine.profile.job_profile import JobProfile
from engine.profile.profile_page import profile_page
from tests.chaos.cluster import ChaosCluster, Job
from tests.profile.profiles import profile_of_run
from tests.storage.store_proxy import Proxy

ROOT = Path(__file__).parents[2]
_MB = 1 << 20
#: bytes a second of the slow disk, seconds of each request to the slow store
_DISK_RATE, _STORE_S = 4 * _MB, 0.6
#: rows that are made once and written several times
_ROWS = 500_000


class MissingError(Exception):
    """Something that a job needs is not on this machine."""


@dataclass(frozen=True)
class Place:
    """Where a job has its files, and how large it is."""

    folder: Path
    scale: float

    def rows(self, count: int) -> int:
        """Return a number of rows, or of files, at this scale."""
        return max(100, int(count * self.scale))

    def times(self, count: int) -> int:
        """Return how often rows are written at this scale."""
        return max(1, int(count * self.scale))


def environment(**settings: object) -> Environment:
    """Return an environment of four subtasks, or as settings say it."""
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return Environment(config={"parallelism.default": 4, "parallelism.max-per-processor": 4, **given})


def written(path: Path, rows: pa.Table, times: int) -> str:
    """Write rows several times into a file and return its path."""
    with pq.ParquetWriter(path, rows.schema) as writer:
        for _ in range(max(1, times)):
            writer.write_table(rows, 100_000)
    return str(path)


def skew(place: Place) -> JobProfile:
    """Five of six rows have one key, and rows of a key must be together to be numbered."""
    keys = pa.array(42 if number % 6 else number for number in range(_ROWS))
    totals = pa.array(f"v{number * 7_919 % 1_000_003}" for number in range(_ROWS))
    path = written(place.folder / "orders.parquet", pa.table({"customer": keys, "total": totals}), place.times(20))
    with environment() as env:
        numbered = row_number().over("customer", order_by="total")
        return profile_of_run(env.read_parquet(path).with_columns(place=numbered))


def spilling(place: Place) -> JobProfile:
    """A sort has a small part of the memory that it needs."""
    keys = pa.array(number * 7_919 % 1_000_003 for number in range(_ROWS))
    texts = pa.array(f"some text of row {number}" for number in range(_ROWS))
    path = written(place.folder / "facts.parquet", pa.table({"k": keys, "text": texts}), place.times(20))
    with environment(parallelism__default=2, taskmanager__memory__managed__size="32mb") as env:
        return profile_of_run(env.read_parquet(path).sort(["k", "text"]))


def slow_risk_score(row):
    """Return a row with a number that takes long to find."""
    total = 0
    for number in range(400):
        total += number * row.n % 7
    return {"n": row.n, "risk": total}


def slow_function(place: Place) -> JobProfile:
    """A function takes a twentieth of a millisecond for each row."""
    rows = pa.table({"n": list(range(place.rows(100_000)))})
    with environment() as env:
        data = env.from_arrow(rows).map(slow_risk_score, schema=pa.schema({"n": "int64", "risk": "int64"}))
        return profile_of_run(data.group_by("risk").agg(n=sum_("n")))


def bad_estimate(place: Place) -> JobProfile:
    """Four conditions are true of each sum, of which nothing is known before there are any."""
    rows = place.rows(4_000_000)
    numbers = pa.array(range(rows))
    path = written(place.folder / "events.parquet", pa.table(dict.fromkeys("nabcd", numbers)), 1)
    with environment() as env:
        sums = env.read_parquet(path).group_by("n").agg(**{name: sum_(name) for name in "abcd"})
        for name in "abcd":
            sums = sums.filter(col(name) % 10 < lit(10))
        return profile_of_run(sums.sort("d"))


def slow_disk(place: Place) -> JobProfile:
    """The disk gives four megabytes a second."""
    count = place.rows(2_000_000)
    path = place.folder / "large.parquet"
    pq.write_table(pa.table({"noise": _noise(count)}), path, compression="none")
    with slow_group(place.folder, _DISK_RATE) as group:
        return _in_child("slow disk", path, group)


def _noise(count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(os.urandom(8 * count))])


def reading(path: Path) -> JobProfile:
    """Read a file that is on the slow disk."""
    with environment() as env:
        return profile_of_run(env.read_parquet(str(path)).filter(col("noise") > 0).agg(s=sum_(col("noise") % 7)))


@contextlib.contextmanager
def slow_group(folder: Path, rate: int) -> Iterator[Path]:
    """Yield a control group whose processes read from the folder's device at a rate."""
    top = Path("/sys/fs/cgroup/blkio")
    group = top / f"drey-causes-{os.getpid()}"
    device = folder.stat().st_dev
    try:
        group.mkdir()
        (group / "blkio.throttle.read_bps_device").write_text(f"{os.major(device)}:{os.minor(device)} {rate}")
    except OSError as error:
        raise MissingError(f"no control group of block devices: {error}") from error
    try:
        yield group
    finally:
        group.rmdir()


def _in_child(kind: str, path: Path, group: Path) -> JobProfile:
    """Return the profile of a job that a process of its own runs in a control group."""
    words = [sys.executable, "-m", "tests.bench.causes", "--in-group", str(group), "--read", str(path)]
    done = subprocess.run(words, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    if not done.stdout:
        raise MissingError(done.stderr.decode())
    return msgspec.json.decode(done.stdout, type=JobProfile)


def _is_slowed(path: Path) -> bool:
    """Tell whether the control group of this process slows a file: some file systems have a cache of their own."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        started = time.monotonic()
        file.seek(path.stat().st_size // 2)
        size = len(file.read(_DISK_RATE // 2))
        is_slowed = time.monotonic() - started > size / _DISK_RATE / 2
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return is_slowed


def slow_store(place: Place) -> JobProfile:
    """Each request to the store waits."""
    try:
        from tests.storage.moto_server import running
    except ImportError as error:
        raise MissingError(str(error)) from error
    parts = place.folder / "parts"
    parts.mkdir()
    for number in range(place.times(16)):
        pq.write_table(pa.table({"n": list(range(20_000))}), parts / f"{number:03}.parquet")
    with running("data") as store:
        path, proxy = store.upload(parts, "parts"), Proxy(store.endpoint)
        texts = {key: str(value).lower() if value is True else value for key, value in store.settings.items()}
        with proxy.running(), environment(**{**texts, "storage.s3.endpoint": proxy.endpoint}) as env:
            proxy.fault = lambda *_: _STORE_S
            return profile_of_run(env.read_parquet(path).agg(s=sum_("n")))


def tiny_files(place: Place) -> JobProfile:
    """Thousands of files of a few lines."""
    folder = place.folder / "clicks"
    folder.mkdir()
    for number in range(place.rows(6000)):
        (folder / f"{number:05}.csv").write_text("a,b\n" + "".join(f"{n},{number}\n" for n in range(20)))
    with environment() as env:
        data = env.read_csv(str(folder), header=True, schema=pa.schema({"a": "int64", "b": "int64"}))
        return profile_of_run(data.group_by("a").agg(s=sum_("b")))


def cross_join(place: Place) -> JobProfile:
    """A join has a condition and no key."""
    count = int(12_000 * place.scale**0.5)
    with environment() as env:
        left = env.from_arrow(pa.table({"x": list(range(count))}))
        right = env.from_arrow(pa.table({"y": list(range(count))}))
        pairs = left.join(right, how="cross").filter((col("x") * col("y")) % 1000 == lit(1))
        return profile_of_run(pairs.agg(s=sum_("x")))


def slots(place: Place) -> JobProfile:
    """Another job has the slots of the cluster when this one is submitted."""
    with _cluster(place, 1) as cluster:
        first = cluster.submit(_script(place), "3", str(place.rows(400)), "20")
        cluster.await_state(first.job_id(), "RUNNING")
        second = cluster.submit(_script(place), "3", "10", "1")
        profile = _profile_at_end(cluster, second)
        assert first.wait() == 0, first.stderr
        return profile


def restarts(place: Place) -> JobProfile:
    """A TaskManager is killed when half of the work is done."""
    with _cluster(place, 2) as cluster:
        job = cluster.submit(_script(place), "4", str(place.rows(400)), "20")
        job_id = job.job_id()
        cluster.await_state(job_id, "RUNNING")
        time.sleep(5 * place.scale)
        cluster.kill(cluster.pids("taskmanager")[0])
        return _profile_at_end(cluster, job)


#: subtasks, rows, milliseconds that each takes
_SCRIPT = """
import sys, time
import pyarrow as pa
from engine import Environment

parallelism, rows, pause_ms = (int(word) for word in sys.argv[1:])

def wait(row):
    time.sleep(pause_ms / 1000)
    return {"n": row.n}

if __name__ == "__main__":
    with Environment(config={"parallelism.default": parallelism}) as env:
        data = env.from_arrow(pa.table({"n": list(range(rows * parallelism))})).rebalance()
        data.map(wait, schema=pa.schema({"n": "int64"})).write_csv(sys.argv[0] + f".{time.time_ns()}.out")
        env.execute()
"""


def _script(place: Place) -> Path:
    path = place.folder / "waits.py"
    path.write_text(_SCRIPT, encoding="utf-8")
    return path


def _cluster(place: Place, task_managers: int) -> ChaosCluster:
    return ChaosCluster(place.folder / "cluster", task_managers, **{"heartbeat.timeout": "5 s"})


def _profile_at_end(cluster: ChaosCluster, job: Job) -> JobProfile:
    assert job.wait() == 0, job.stderr
    with closing(cluster.client()) as client:
        return client.profile(JobId(job.job_id()))


JOBS: dict[str, Callable[[Place], JobProfile]] = {
    "skew": skew,
    "spilling": spilling,
    "slow function": slow_function,
    "bad estimate": bad_estimate,
    "slow disk": slow_disk,
    "slow store": slow_store,
    "slots": slots,
    "restarts": restarts,
    "tiny files": tiny_files,
    "cross join": cross_join,
}


def run(names: list[str], scale: float, pages: Path) -> list[str]:
    """Run jobs, write their pages, print what each page says; return the names of those with another cause."""
    pages.mkdir(parents=True, exist_ok=True)
    wrong = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="drey-causes-", dir=pages) as folder:
            try:
                profile = JOBS[name](Place(Path(folder), scale))
            except MissingError as missing:
                print(f"{name}: not run: {missing}")
                continue
        path = pages / f"{name.replace(' ', '-')}.html"
        path.write_text(profile_page(profile), encoding="utf-8")
        first = profile.causes[0]
        is_found = first.kind == name
        wrong += [] if is_found else [name]
        print(f"{name}: {'found' if is_found else 'NOT FOUND'}: {first.text}  [{path}]", flush=True)
        for other in profile.causes[1:]:
            print(f"    {other.kind} ({other.share:.0%}): {other.text}")
    return wrong


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=Path, default=Path(tempfile.gettempdir()) / "drey-causes")
    parser.add_argument("--only", default=",".join(JOBS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--in-group", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        reading(options.read)  # modules that are loaded at first use are not to come from the slow disk
        (options.in_group / "cgroup.procs").write_text(str(os.getpid()))
        if not _is_slowed(options.read):
            sys.stderr.write("the control group does not slow this file system")
            return 0
        sys.stdout.write(msgspec.json.encode(reading(options.read)).decode())
        return 0
    return 1 if run(options.only.split(","), options.scale, options.pages) else 0


if __name__ == "__main__":
    sys.exit(main())
