"""A job between tables of PostgreSQL on a cluster whose JobManager is killed: its rows are added once, or not yet."""

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.chaos.cluster import ChaosCluster
from tests.chaos.conftest import IS_SHORT
from tests.databases.written import do, rows_of
from tests.postgresql_server import PASSWORD, postgresql

pytest.importorskip("adbc_driver_postgresql.dbapi")
JOB = Path(__file__).with_name("database_copy.py")
POINTS = ("job.prepared", "sink.deciding", "sink.decided", "sink.published", "job.recorded")
COPIED = "SELECT count(*), count(DISTINCT i), sum(twice)::bigint FROM copied"
WHOLE = [(5000, 5000, 25005000)]


@pytest.fixture(scope="module")
def server():
    with postgresql() as uri:
        do(
            uri,
            f"CREATE ROLE owner LOGIN PASSWORD '{PASSWORD}'",
            "GRANT CREATE ON SCHEMA public TO owner",
            "CREATE TABLE numbers AS SELECT i, 'text ' || i AS s FROM generate_series(1::bigint, 5000) AS i",
            "GRANT SELECT ON numbers TO owner",
        )
        yield uri


@pytest.mark.parametrize("point", POINTS[3:4] if IS_SHORT else POINTS)
def test_a_killed_job_manager_adds_the_rows_once(tmp_path, server, monkeypatch, point):
    do(server, "DROP TABLE IF EXISTS copied")
    monkeypatch.setenv("NUMBERS_URI", server.replace("tester@", f"owner:{quote(PASSWORD, safe='')}@"))
    marker = tmp_path / "marker"
    settings = {
        "high-availability.storageDir": tmp_path / "storage",
        "debug.fault-point": f"{point}:kill:{marker}",
    }
    with ChaosCluster(tmp_path / "cluster", **settings) as cluster:
        job = cluster.submit(JOB, "numbers", "copied", "env:NUMBERS_URI")
        cluster.wait_until(marker.exists, "the end of the JobManager")
        cluster.wait_until(lambda: not _is_alive(cluster), "its end")
        if rows_of(server, "SELECT to_regclass('copied')")[0][0]:
            assert rows_of(server, COPIED) == WHOLE
        cluster.script("jobmanager", "start")
        assert job.wait() == 0, job.stderr
        assert rows_of(server, COPIED) == WHOLE
        again = cluster.submit(JOB, "numbers", "copied", "env:NUMBERS_URI")
        assert again.wait() == 0, again.stderr
        assert rows_of(server, COPIED) == [(10000, 5000, 50010000)]
        told = [job.stdout, job.stderr, str(cluster.get(f"/jobs/{again.job_id()}"))]
    files = [path for folder in ("cluster/log", "storage") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    told += [path.read_bytes().decode("latin-1") for path in files]
    told += map(str, rows_of(server, "SELECT * FROM drey_jobs"))
    assert [text for text in told if PASSWORD in text or quote(PASSWORD, safe="") in text] == []
    assert rows_of(server, "SELECT count(*) FROM pg_tables WHERE tablename ~ '^drey_[0-9a-f]{16}_'") == [(0,)]


def _is_alive(cluster):
    return any(Path(f"/proc/{pid}/stat").exists() and "Z" not in _state(pid) for pid in cluster.pids("jobmanager"))


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
