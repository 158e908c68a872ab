"""Blobs in an object store: whoever leads has them, whole and right, and they go with their job."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.blob.blob_store import CorruptBlobError
from engine.blob.stored_blobs import StoredBlobs
from engine.errors import ResourceError
from engine.ids import JobId
from engine.storage import file_systems
from tests.blob.test_blobs import key_of, running
from tests.storage.memory import MemoryStore

PREFIX = "memory://bucket/ha/blobs"
JOB = "a" * 32

__all__ = ["running"]


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, found))
    return found


@pytest.fixture
def blobs(store, tmp_path):
    """Return the blobs of the next process that leads."""
    return lambda name: StoredBlobs(PREFIX, store, tmp_path / name, lambda: None)


def put(blobs, content, key=None):
    with blobs.writer(JOB, key or key_of(content)) as writer:
        writer.write(content)
        return writer.commit()


def test_the_next_leader_has_what_was_brought_to_the_one_before(store, blobs):
    content, asked = os.urandom(3_000_000), []
    assert put(blobs("first"), content).read_bytes() == content
    assert list(store.files) == [f"{PREFIX}/{JOB}/{key_of(content)}"]
    second = blobs("second")
    stream = store.open_stream
    store.open_stream = lambda path, **named: (asked.append(path), stream(path, **named))[1]
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: second.path(JOB, key_of(content)), range(16)))
    assert [path.read_bytes() for path in paths] == [content] and len(asked) == 1
    assert second.path(JOB, "0" * 64) is None and second.path("b" * 32, key_of(content)) is None


def test_what_is_not_right_reaches_neither_the_store_nor_a_task(store, blobs, tmp_path):
    first = blobs("first")
    with pytest.raises(CorruptBlobError):
        put(first, b"another", key_of(b"content"))
    assert store.files == {}
    put(first, b"content")
    store.put(f"{PREFIX}/{JOB}/{key_of(b'content')}", b"damaged")
    with pytest.raises(CorruptBlobError):
        blobs("second").path(JOB, key_of(b"content"))
    assert [path for path in (tmp_path / "second").rglob("*") if path.is_file()] == []


def test_blobs_go_with_their_job_and_those_of_no_job_after_a_while(store, blobs):
    first = blobs("first")
    copy = put(first, b"content")
    assert list(blobs("second").changes()) == list(first.changes()) == [JobId(JOB)]
    blobs("second").remove_job(JOB)
    assert store.files == {} and copy.exists()
    assert first.path(JOB, key_of(b"content")) == copy, "its own copy, until it hears that the job has ended"
    first.remove_job(JOB)
    assert not copy.exists() and first.changes() == {}


def test_a_store_that_does_not_answer_is_told_and_its_client_may_try_again(store, blobs, running, monkeypatch):
    class Failing:
        def __init__(self, content):
            self.taken = 0

        def write(self, data):
            self.taken += 1
            raise OSError(5, "the store cannot be reached (503, request 7)")

        def abort(self):
            store.aborted = True

    served = blobs("served")
    running.blobs._store = served
    create, content = store.create, b"content"
    store.create = Failing
    status, answer = running.put(JOB, content)[:2]
    assert status == 500 and b"request 7" in bytes(answer) and store.aborted and store.files == {}
    store.create = create
    assert running.put(JOB, content)[0] == 201

    def refuse(path, **_):
        raise OSError(13, "access is denied (AccessDenied)")

    monkeypatch.setattr(store, "open_stream", refuse)
    running.blobs._store = blobs("next")
    assert running.ask("GET", f"/jobs/{JOB}/blobs/{hashlib.sha256(content).hexdigest()}")[0] == 503
    with pytest.raises(ResourceError, match=r"read from memory.*access is denied"):
        blobs("other").path(JOB, key_of(content))
