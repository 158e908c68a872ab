"""A store that is busy, ends connections and loses answers: what is written and published is right all the same."""

import random
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.commit.decision import Decision
from engine.commit.publish import publish
from engine.commit.store_target import StoreTarget
from engine.csv.options import CsvOptions
from engine.csv.source import csv_source
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.parquet.source import parquet_source
from engine.storage import store_client
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import use_store_settings
from engine.storage.store_folder import STATE_NAME
from engine.storage.store_output import PART_BYTES
from tests.files.test_native_files import rows_of
from tests.storage.store_proxy import Proxy

pytestmark = pytest.mark.thorough


@pytest.fixture
def proxy(server):
    found = Proxy(server.endpoint)
    texts = {key: str(value).lower() if value is True else value for key, value in server.settings.items()}
    with found.running():
        use_store_settings({**texts, "storage.s3.endpoint": found.endpoint})
        yield found
        use_store_settings({})


def published(job):
    """Stage, decide and publish two files of a job; return what is there then."""
    target, spec, job_id = StoreTarget(), SinkSpec("csv", "s3://data/faulty/out", mode="append"), JobId(job * 32)
    staging = target.staging(target.resolved(spec), job_id)
    target.prepare(spec, staging, job_id, "")
    files = file_system_of(staging.path)
    staged = []
    for subtask in range(2):
        with files.create(f"{staging.path}/{subtask}.csv") as output:
            output.write(f"{job} {subtask}".encode())
        staged.append(StagedFile(0, subtask, f"{subtask}.csv", 1, 3))
    publish(Decision(job_id, 1, (target.decided(spec, 0, staging, staged, job_id),)))
    return {name: files.read(f"s3://data/faulty/out/{name}") for name, _, _ in files.below("s3://data/faulty/out")}


def names_of(*jobs):
    return {f"part-{number:05d}-{job * 32}.csv": f"{job} {number}".encode() for job in jobs for number in range(2)}


@pytest.mark.parametrize("kind", ["busy", "refused", "lost", "cut", 0.01])
def test_faults_of_one_kind_at_every_third_request_change_nothing(server, proxy, kind):
    file_system_of("s3://data").delete_tree("s3://data/faulty")
    published("a")
    proxy.fault = lambda number, method, path: kind if number % 3 == 0 else None
    found = published("b")
    assert {name: found[name] for name in found if name[0] != "_"} == names_of("a", "b")
    assert {name for name in found if name[0] == "_"} == {STATE_NAME, "_SUCCESS"}
    proxy.fault = lambda number, method, path: None
    assert list(file_system_of("s3://data").below("s3://data/faulty/.drey-staging")) == []


@pytest.mark.parametrize("seed", range(6))
def test_faults_of_all_kinds_at_random_change_nothing(server, proxy, seed):
    file_system_of("s3://data").delete_tree("s3://data/faulty")
    published("a")
    chance = random.Random(seed)
    faults = ["busy", "refused", "lost", "cut", 0.02]
    proxy.fault = lambda number, method, path: chance.choice(faults) if chance.random() < 0.35 else None
    found = published("b")
    assert {name: found[name] for name in found if name[0] != "_"} == names_of("a", "b")


def test_an_upload_of_parts_survives_a_store_that_is_busy_and_loses_answers(server, proxy):
    content = random.Random(1).randbytes(2 * PART_BYTES + 5)
    proxy.fault = lambda number, method, path: (None, "busy", None, "lost")[number % 4]
    files = file_system_of("s3://data")
    with files.create("s3://data/parts") as output:
        view = memoryview(content)
        while view:
            view = view[output.write(view) :]
    assert files.read("s3://data/parts") == content


@pytest.mark.parametrize("seed", range(4))
def test_files_are_read_whole_under_faults_of_all_kinds(server, proxy, seed):
    table = pa.table({"n": range(200_000), "s": [f"text {index % 997}" for index in range(200_000)]})
    content = pa.BufferOutputStream()
    pq.write_table(table, content, row_group_size=20_000)
    path = server.put("faulty/read/a.parquet", content.getvalue().to_pybytes())
    text = server.put("faulty/read/a.csv", b"n\n" + b"".join(b"%d\n" % number for number in range(400_000)))
    chance = random.Random(seed)
    faults = ["busy", "refused", "lost", "cut", 0.02]
    proxy.fault = lambda number, method, path: chance.choice(faults) if chance.random() < 0.3 else None
    assert rows_of(parquet_source(path)[0]) == table.to_pylist()
    rows = rows_of(csv_source(text, options=CsvOptions(header=True), parallelism=1)[0])
    assert [row["n"] for row in rows] == list(range(400_000))
    assert sorted(file_system_of(path).matching("s3://data/faulty/read/*")) == [text, path]


def test_a_read_that_is_cut_every_time_ends_with_an_error_in_bounded_requests(server, proxy):
    path = server.put("faulty/cut", bytes(300_000))
    proxy.fault = lambda number, method, path: "cut" if method == "GET" else None
    with pytest.raises(OSError, match=r"cannot be reached|breaks off") as caught:
        file_system_of(path).read(path)
    assert caught.value.filename == path
    assert len(proxy.requests) <= 8 * store_client._TRIES


def test_a_store_that_stays_busy_is_told_with_its_request(server, proxy, monkeypatch):
    monkeypatch.setitem(store_client._RETRIES, "max_retries", 1)
    monkeypatch.setitem(store_client._RETRIES, "retry_timeout", timedelta(seconds=2))
    store_client._clients.clear()
    proxy.fault = lambda number, method, path: "busy"
    with pytest.raises(OSError, match=r"SlowDown, request REQ-503.*") as caught:
        file_system_of("s3://data").read_version("s3://data/x")
    assert caught.value.filename == "s3://data/x"
    assert len(proxy.requests) == 2, "one, and one repetition"
    store_client._clients.clear()
