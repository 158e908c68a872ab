"""Secrets of stores and databases, over all connectors: in no log, page, answer, plan or file, and in the memory of no
process that has no need of them. The processes that open a store have its secrets: that is what they are for.
"""

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.entrypoint.conftest import ROOT, until
from tests.postgresql_server import postgresql
from tests.process_memory import found_in_memory
from tests.storage.moto_server import REGION, running

for package in ("adbc_driver_postgresql", "deltalake", "pyiceberg"):
    pytest.importorskip(package)

#: Secrets of the program, and those of the configuration of the processes of the cluster.
OURS = {"secret": b"hush-5c1e-of-the-program", "token": b"hush-77aa-token", "password": b"hush-90bd-password"}
THEIRS = {"cluster": b"hush-4402-of-the-cluster"}


@pytest.fixture
def store():
    with running("data") as found:
        yield found


@pytest.fixture
def given(store):
    keys = {"access_key_id": "id", "secret_access_key": OURS["secret"].decode()}
    options = {"endpoint_url": store.endpoint, "region": REGION, "allow_http": True, **keys}
    options["session_token"] = OURS["token"].decode()
    with postgresql() as uri:
        database = uri.replace("tester@", f"tester:{OURS['password'].decode()}@")
        yield {"options": options, "database": database}


@contextlib.contextmanager
def program(folder, target, given, environment):
    """Run the program until its worker waits; have it, and the ids of the worker and of the process it is forked of."""
    command = [sys.executable, "-m", "tests.entrypoint.secretive", str(folder), target]
    with (folder / "said").open("wb") as said:
        started = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            started.stdin.write(json.dumps(given).encode() + b"\n")
            started.stdin.flush()
            worker = folder / "worker"
            until(lambda: started.poll() is not None or (worker.exists() and worker.read_text()), "the worker", 200)
            assert started.poll() is None, (folder / "said").read_text()[-3000:]
            yield started, [int(pid) for pid in worker.read_text().split()]
            (folder / "go").touch()
            assert started.wait(100) == 0, (folder / "said").read_text()[-3000:]
        finally:
            started.kill()
            started.wait()
            started.stdin.close()


def told_in_files(folders, secrets):
    """Return files with secrets."""
    paths = [path for folder in folders for path in Path(folder).rglob("*") if path.is_file()]
    assert paths
    return [(str(path), name) for path in paths for name, text in secrets.items() if text in path.read_bytes()]


@pytest.mark.integration
def test_of_an_embedded_job_only_its_own_process_has_them(tmp_path, given):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "DREY_LOG_DIR": str(tmp_path)}
    environment["DREY_STORAGE_S3_SECRET_ACCESS_KEY"] = THEIRS["cluster"].decode()
    with program(tmp_path, "local", given, environment) as (started, workers):
        assert found_in_memory(started.pid, OURS) == {*OURS}, "or the search finds nothing"
        for pid in workers:
            if pid != started.pid:
                assert found_in_memory(pid, {**OURS, **THEIRS}) == set()
        assert told_in_files([tmp_path], OURS) == []
    assert told_in_files([tmp_path], {**OURS, **THEIRS}) == []


def answers(port):
    """Yield all that a JobManager answers to GETs that need no secret, for each of its jobs."""

    def got(path):
        try:
            with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=60) as answer:
                # events do not end: the first has all that there is
                is_stream = answer.headers["Content-Type"].startswith("text/event-stream")
                return answer.readline() if is_stream else answer.read()
        except urllib.error.HTTPError as error:
            return error.read()
        except http.client.HTTPException:
            return b""

    jobs = [job["jid"] for job in json.loads(got("/jobs/overview"))["jobs"]]
    executors = [each["id"] for each in json.loads(got("/taskmanagers"))["taskmanagers"]]
    routes = [path for path, methods in json.loads(got("/openapi.json"))["paths"].items() if "get" in methods]
    assert jobs and executors and len(routes) > 30
    for route in routes:
        names = re.findall(r"\{(\w+)\}", route)
        for job in jobs if "job_id" in names else [""]:
            for executor in executors if re.search(r"taskmanagers/\{", route) else [""]:
                path = route.replace("{job_id}", job)
                path = re.sub(r"(taskmanagers/)\{\w+\}", rf"\g<1>{executor}", path)
                yield path, got(re.sub(r"\{\w+\}", "0", path))


@pytest.mark.processes
def test_of_a_job_on_a_cluster_each_process_has_its_own_at_most(installation, tmp_path, store, given):
    keys = {"storage.s3.secret-access-key": THEIRS["cluster"].decode(), "storage.s3.access-key-id": "id"}
    own = {key: text for key, text in store.settings.items() if key not in keys} | keys
    own = {key: str(text).lower() if text is True else text for key, text in own.items()}
    # The database is opened by the variable of each process.
    installation.environment["SHOP"] = given["database"]
    installation.configure(**own, **{"env.log.level": "DEBUG"})
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr + started.stdout
    folder = tmp_path / "program"
    folder.mkdir()
    daemons = [pid for name in ("jobmanager", "taskmanager") for pid in installation.pids(name)]
    assert len(daemons) >= 2
    of_stores = {name: OURS[name] for name in ("secret", "token")}
    environment = {**installation.environment}
    with program(folder, "cluster", {**given, "database": "env:SHOP"}, environment) as (client, workers):
        assert found_in_memory(client.pid, of_stores) == {*of_stores}
        for pid in [*daemons, *workers]:
            assert found_in_memory(pid, of_stores) == set()
        assert any(found_in_memory(pid, THEIRS) for pid in daemons), "or the search finds nothing"
        for pid in workers:
            if pid not in daemons:
                assert found_in_memory(pid, THEIRS) == set()
    secrets = {**OURS, **THEIRS}
    for path, answer in answers(installation.port):
        assert [name for name, text in secrets.items() if text in answer] == [], path
    assert installation.run("cluster", "stop").returncode == 0
    assert told_in_files([folder, installation.log, installation.pid, installation.tmp], secrets) == []
