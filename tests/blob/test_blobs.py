"""Blobs from a client through the JobManager's server to TaskManagers, over real sockets."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import shutil
import stat
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from engine.blob import blob_cache
from engine.blob.blob_cache import BlobCache, LostBlobError
from engine.blob.blob_server import BlobServer
from engine.blob.blob_store import BlobNameError, BlobStore, CorruptBlobError
from engine.blob.module_store import BlobModuleStore
from engine.clock import ManualClock
from engine.errors import DataError, DiskFullError, ResourceError
from engine.graph.job_graph import JobArtifact
from engine.ids import JobId
from engine.iomanager.disk_limit import DiskLimit
from engine.process_folder import FolderPrefix, ProcessFolder, sweep
from engine.rpc.credentials import AUTHORIZATION, Credentials
from tests.rpc.served import SECRET, Served

MAX_SIZE = 3_000_000


class BlobsServed(Served):
    def __init__(self, loop, folder) -> None:
        super().__init__(loop, Credentials(SECRET))
        self.store = BlobStore(folder / "server")
        self.clock = ManualClock()
        self.blobs = BlobServer(self.store, MAX_SIZE, self.clock)
        self.server.add_routes(self.blobs.routes)

    def put(self, job_id, content, key=None):
        return self.ask("PUT", f"/jobs/{job_id}/blobs/{key or key_of(content)}", content)


def key_of(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def running(tmp_path):
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    one = BlobsServed(loop, tmp_path)
    one.call(one.server.start())
    yield one
    one.call(one.server.stop())
    one.call(loop.shutdown_default_executor())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def cache(running, tmp_path):
    return BlobCache(BlobStore(tmp_path / "cache"), lambda: running.server.address, Credentials(SECRET), MAX_SIZE)


def files(store_folder):
    return sorted(path.relative_to(store_folder).as_posix() for path in store_folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [0, 1, 1_048_576, MAX_SIZE])
def test_what_is_brought_is_fetched_unchanged(running, cache, size):
    job_id, content = JobId.random(), os.urandom(size)
    assert running.put(job_id, content)[0] == 201
    assert running.put(job_id, content)[0] == 201  # again: the same
    path = cache.fetch(job_id, key_of(content))
    assert path.read_bytes() == content and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_blob_is_fetched_once_whoever_asks_and_then_without_the_server(running, cache):
    job_id, content = JobId.random(), os.urandom(500_000)
    running.put(job_id, content)
    asked = []
    original = cache._fetch_once
    cache._fetch_once = lambda *arguments: (asked.append(arguments), original(*arguments))[1]
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: cache.fetch(job_id, key_of(content)), range(32)))
    assert len(asked) == 1 and len(set(paths)) == 1
    running.call(running.server.stop())
    assert cache.fetch(job_id, key_of(content)).read_bytes() == content


def test_blobs_go_with_their_job_on_both_sides_and_no_other_job_sees_them(running, cache, tmp_path):
    first, second, content = JobId.random(), JobId.random(), b"modules"
    for job_id in (first, second):
        running.put(job_id, content)
        cache.fetch(job_id, key_of(content))
    running.call(running.blobs.remove_job(first))
    cache.release_job(first)
    assert files(tmp_path / "server") == files(tmp_path / "cache") == [f"{second}/{key_of(content)}"]
    running.put(second, b"of the second only")
    with pytest.raises(LostBlobError, match="has no blob") as raised:
        cache.fetch(first, key_of(b"of the second only"))
    assert not raised.value.retryable
    running.call(running.blobs.remove_job(JobId.random()))


def test_blobs_of_jobs_that_nobody_submitted_go_after_an_hour(running, tmp_path):
    known, unknown = JobId.random(), JobId.random()
    for job_id in (known, unknown):
        running.put(job_id, b"x")
    now_s = (tmp_path / "server" / unknown.value).stat().st_mtime
    running.clock.advance(now_s + 3500)
    running.call(running.blobs.remove_unused([known]))
    assert len(files(tmp_path / "server")) == 2
    running.clock.advance(200)
    running.call(running.blobs.remove_unused([known]))
    assert files(tmp_path / "server") == [f"{known}/{key_of(b'x')}"]


def test_content_that_is_not_that_of_its_key_is_refused_and_nothing_stays(running, tmp_path):
    job_id = JobId.random()
    status, body = running.put(job_id, b"content", key_of(b"other"))
    assert status == 400 and b"not the SHA-256" in body
    target = f"/jobs/{job_id}/blobs/{key_of(b'signed')}"
    header = running.credentials.sign("PUT", target, key_of(b"signed"))
    assert running.ask("PUT", target, b"forged", {AUTHORIZATION: header})[0] in (400, 401)
    assert running.put(job_id, bytes(MAX_SIZE + 1))[0] == 413
    assert files(tmp_path / "server") == []


def test_an_upload_that_breaks_off_leaves_nothing(running, tmp_path):
    target = f"/jobs/{JobId.random()}/blobs/{key_of(bytes(1000))}"
    header = running.credentials.sign("PUT", target, key_of(bytes(1000)))
    with running.connect() as connection:
        head = f"PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n{AUTHORIZATION}: {header}\r\n\r\n"
        connection.sendall(head.encode())
        connection.sendall(bytes(500))
    assert running.put(JobId.random(), b"good")[0] == 201
    running.call(running.server.stop())
    assert len(files(tmp_path / "server")) == 1


def test_nothing_is_brought_or_fetched_without_the_secret(running):
    job_id = JobId.random()
    running.put(job_id, b"x")
    target = f"/jobs/{job_id}/blobs/{key_of(b'x')}"
    assert running.ask("GET", target, signed=False)[0] == 401
    assert running.ask("PUT", target, b"x", signed=False)[0] == 401
    assert running.ask("GET", target, credentials=Credentials(b"another secret!!!"))[0] == 401
    assert running.ask("GET", target) == (200, b"x")


NAMES = [
    "..", ".", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%00b", "%00", "A" * 32, "0" * 31, "0" * 33,
    "%E2%80%AE", "..%5c..", "0" * 31 + "%0a", "0" * 32 + "%0a", "%30" * 31 + "g", "~", "con", "０" * 32, "",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_no_text_of_a_stranger_becomes_a_path(running, tmp_path, name):
    name = quote(name, safe="%.~")
    good = JobId.random().value
    key = key_of(b"x")
    for target in (f"/jobs/{name}/blobs/{key}", f"/jobs/{good}/blobs/{name * 2}", f"/jobs/{good}/blobs/{name}"):
        assert running.ask("PUT", target, b"x")[0] in (400, 404, 405)
        assert running.ask("GET", target)[0] in (400, 404, 405)
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", ["..", "a/b", "/etc", "0" * 31 + "/", "\0" * 32, "０" * 32, "0" * 32 + "\n"])
def test_the_store_takes_only_ids_and_keys(tmp_path, name):
    store = BlobStore(tmp_path)
    for call in (
        lambda: store.path(name, "0" * 64),
        lambda: store.path("0" * 32, name),
        lambda: store.writer(name, "0" * 64),
        lambda: store.remove_job(name),
    ):
        with pytest.raises(BlobNameError):
            call()


def test_content_that_was_changed_on_its_way_is_not_taken(running, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(blob_cache, "_PAUSES_S", (0.0,))
    job_id, content = JobId.random(), b"x" * 1000
    running.put(job_id, content)
    (tmp_path / "server" / job_id.value / key_of(content)).write_bytes(b"y" * 1000)
    with pytest.raises(ResourceError, match="another SHA-256"):
        cache.fetch(job_id, key_of(content))
    assert files(tmp_path / "cache") == []


def test_a_server_that_is_gone_is_asked_for_a_while_and_wherever_it_is_then(running, cache, monkeypatch):
    monkeypatch.setattr(blob_cache, "_PAUSES_S", (0.0, 0.0))
    job_id = JobId.random()
    running.put(job_id, b"x")
    addresses = iter(["", "127.0.0.1:1", running.server.address])
    cache._leader_address = lambda: next(addresses)
    assert cache.fetch(job_id, key_of(b"x")).read_bytes() == b"x"
    cache._leader_address = lambda: "127.0.0.1:1"
    with pytest.raises(ResourceError, match=r"cannot be fetched from 127\.0\.0\.1:1"):
        cache.fetch(job_id, key_of(b"y"))
    assert not cache._fetching


def test_folders_that_somebody_removes_are_made_again_and_what_was_in_them_is_not_asked_for_again(
    running, cache, tmp_path
):
    job_id, content = JobId.random(), b"modules"
    running.put(job_id, content)
    shutil.rmtree(tmp_path / "server")
    shutil.rmtree(tmp_path / "cache")
    running.call(running.blobs.remove_unused([]))
    with pytest.raises(LostBlobError, match=r"storageDir were removed.* Submit the job again"):
        cache.fetch(job_id, key_of(content))
    running.put(job_id, content)
    assert cache.fetch(job_id, key_of(content)).read_bytes() == content


def test_what_somebody_removed_is_made_again_and_fetched_again(running, tmp_path):
    own = ProcessFolder.create(tmp_path / "scratch", FolderPrefix.JOBS)
    store = BlobStore(own.path / "jobs", ensure_around=own.ensure)
    shutil.rmtree(tmp_path / "scratch")
    assert store.changes() == {}
    with store.writer("a" * 32, key_of(b"again")) as writer:
        writer.write(b"again")
        assert writer.commit().read_bytes() == b"again"
    assert sweep(tmp_path / "scratch", FolderPrefix.JOBS) == []
    own.close()


def test_a_store_sweeps_what_was_not_finished_long_ago(tmp_path):
    store = BlobStore(tmp_path)
    job_id, key = JobId.random().value, key_of(b"x")
    writer = store.writer(job_id, key)
    writer.write(b"x")
    os.close(writer._file)
    assert len(files(tmp_path)) == 1 and store.path(job_id, key) is None
    BlobStore(tmp_path)
    assert len(files(tmp_path)) == 1, "another process may be writing it"
    os.utime(tmp_path / files(tmp_path)[0], (0, 0))
    BlobStore(tmp_path)
    assert files(tmp_path) == []


def test_a_blob_that_comes_after_the_end_of_its_job_is_refused(tmp_path):
    store = BlobStore(tmp_path)
    job_id = JobId.random().value
    with store.writer(job_id, key_of(b"x")) as writer:
        writer.write(b"x")
        shutil.rmtree(tmp_path / job_id)
        with pytest.raises(ResourceError, match="after the end of its job"):
            writer.commit()
    with store.writer(job_id, key_of(b"x")) as writer:
        writer.write(b"y")
        with pytest.raises(CorruptBlobError):
            writer.commit()


def archive_of(**modules):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in modules.items():
            archive.writestr(f"{name}.py", text)
    return target.getvalue()


def test_modules_become_entries_of_a_search_path_made_once(running, cache):
    job_id, archive, module = JobId.random(), archive_of(one="A = 1", two="B = 2"), b"C = 3"
    for content in (archive, module):
        running.put(job_id, content)
    artifacts = [
        JobArtifact("modules.zip", key_of(archive), len(archive)),
        JobArtifact("three.py", key_of(module), len(module)),
        JobArtifact("four.py", key_of(module), len(module)),
    ]
    store = BlobModuleStore(cache)
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: store.search_path(job_id, artifacts), range(8)))
    assert len(paths) == 1
    (path,) = paths
    assert [sorted(os.listdir(entry)) for entry in path] == [["one.py", "two.py"], ["three.py"], ["four.py"]]  # noqa: PTH208
    store.release_job(job_id)
    assert not os.path.exists(path[0])  # noqa: PTH110


def test_files_of_jobs_take_of_the_limit_packed_and_unpacked_until_their_job_ends(running, tmp_path):
    limit = DiskLimit(tmp_path, 1_000_000)
    store = BlobStore(tmp_path / "cache")
    cache = BlobCache(store, lambda: running.server.address, Credentials(SECRET), MAX_SIZE, limit=limit)
    modules = BlobModuleStore(cache)
    first, second = JobId.random(), JobId.random()
    archive, module = archive_of(one="A = 1\n" * 30_000, two="B = 2"), b"C = 3\n" * 50_000
    for job_id in (first, second):
        running.put(job_id, archive)
        running.put(job_id, module)
    packed = JobArtifact("modules.zip", key_of(archive), len(archive))
    modules.search_path(first, [packed])
    unpacked_bytes = 180_000 + len("B = 2")
    assert limit.job_bytes() == {first.value: len(archive) + unpacked_bytes}
    modules.search_path(first, [packed, JobArtifact("three.py", key_of(module), len(module))])
    assert limit.used_bytes == len(archive) + unpacked_bytes + 2 * len(module)
    with pytest.raises(DiskFullError, match=r"no room for files that ship with job .*raise taskmanager\.disk\.limit"):
        modules.search_path(second, [JobArtifact("three.py", key_of(module), len(module))])
    assert limit.job_bytes().get(second.value, 0) in (0, len(module)), "what failed gives its bytes back"
    modules.release_job(first)
    modules.search_path(second, [JobArtifact("three.py", key_of(module), len(module))])
    assert limit.job_bytes() == {second.value: 2 * len(module)}
    modules.release_job(second)
    assert limit.used_bytes == 0


def test_an_archive_that_is_refused_gives_its_bytes_back(running, tmp_path):
    limit = DiskLimit(tmp_path, 1_000_000)
    store = BlobStore(tmp_path / "cache")
    cache = BlobCache(store, lambda: running.server.address, Credentials(SECRET), MAX_SIZE, limit=limit)
    job_id, archive = JobId.random(), b"no archive"
    running.put(job_id, archive)
    with pytest.raises(DataError, match="not a zip"):
        BlobModuleStore(cache).search_path(job_id, [JobArtifact("a.zip", key_of(archive), len(archive))])
    assert limit.used_bytes == len(archive), "the blob itself is here"


@pytest.mark.parametrize("name", ["../x.py", "a/b.py", "1.py", ".py", "a b.py", "x.py\n", "a.b.py"])
def test_a_module_of_a_strange_name_is_refused(running, cache, name):
    job_id = JobId.random()
    running.put(job_id, b"x")
    with pytest.raises(DataError, match=r"not the name of a module|not a zip"):
        BlobModuleStore(cache).search_path(job_id, [JobArtifact(name, key_of(b"x"), 1)])
