"""Uploads that a killed process has begun: found and aborted, by requests that are signed as S3 wants them."""

import logging
import signal
import subprocess
import sys
import textwrap
import urllib.error

import pytest

from engine.commit.staging import OWNER_FILE
from engine.commit.store_target import StoreTarget
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage import store_uploads
from engine.storage.file_systems import file_system_of
from engine.storage.store_client import place_of, use_store_settings
from engine.storage.store_output import PART_BYTES
from engine.storage.store_uploads import Bucket, abort_uploads, signed_headers
from tests.storage.moto_server import KEYS
from tests.storage.store_proxy import Proxy
from tests.storage.test_store_writing import uploads_of

JOB = JobId("a" * 32)


def begin(path):
    """Begin an upload as a process does that is killed; return what keeps it from being aborted."""
    output = file_system_of(path).create(path)
    view = memoryview(bytes(2 * PART_BYTES + 1))
    while view:
        view = view[output.write(view) :]
    return output


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ("lifecycle=", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_requests_are_signed_as_the_examples_of_the_service_are(query, signature):
    key_id, secret = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    bucket = Bucket("https://examplebucket.s3.amazonaws.com", "", "us-east-1", key_id, secret, "")
    found = signed_headers(bucket, "GET", "/", query, "20130524T000000Z")
    assert found["Authorization"].endswith(f"Signature={signature}")
    assert secret not in repr(bucket)


def test_uploads_below_a_prefix_are_aborted_and_no_others(store, monkeypatch):
    outputs = [begin(f"s3://data/{key}") for key in ("up/a & b/ä+1.csv", "up/c", "upper/d")]
    try:
        assert uploads_of(store) == 3
        assert abort_uploads("s3://data/up") == 2 and uploads_of(store) == 1
        assert abort_uploads("s3://data/up") == 0
        with pytest.raises(OSError):
            outputs[0].close()
        assert file_system_of("s3://data").find("s3://data/up/a & b/ä+1.csv") is None
    finally:
        for output in outputs:
            output.abort()
    assert uploads_of(store) == 0


@pytest.mark.parametrize("fault", ["busy", "refused", "cut", "lost"])
def test_a_store_that_fails_for_the_moment_is_asked_again(store, server, monkeypatch, fault):
    monkeypatch.setattr(store_uploads, "_PAUSE_S", 0.01)
    output, proxy = begin("s3://data/faults/a"), Proxy(server.endpoint)
    texts = {key: str(value).lower() if value is True else value for key, value in server.settings.items()}
    proxy.fault = lambda number, method, path: fault if number % 2 == 0 else None
    try:
        with proxy.running():
            use_store_settings({**texts, "storage.s3.endpoint": proxy.endpoint})
            assert abort_uploads("s3://data/faults") == 1
        assert uploads_of(store) == 0
    finally:
        output.abort()


def test_without_a_key_or_a_right_nothing_is_done_and_nothing_fails(store, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    assert abort_uploads("gs://bucket/up") == abort_uploads("az://container/up") == 0
    settings = {"storage.s3.region": "us-east-1", "storage.s3.anonymous": "true"}
    use_store_settings(settings)
    assert abort_uploads("s3://data/up") == 0 and caplog.records == []
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_access_key"])
    use_store_settings({"storage.s3.region": "us-east-1"})
    assert store_uploads._bucket_of(place_of("s3://data/up")).origin == "https://s3.us-east-1.amazonaws.com"

    def refuse(request, **_):
        raise urllib.error.HTTPError(request.full_url, 403, "Forbidden", {}, None)

    monkeypatch.setattr(store_uploads.urllib.request, "urlopen", refuse)
    assert abort_uploads("s3://data/up") == 0
    (record,) = caplog.records
    assert "cannot be removed: GET of s3://data: status 403" in record.getMessage()
    assert KEYS["secret_access_key"] not in caplog.text


KILLED = """
    import sys, time
    from engine.commit.store_target import StoreTarget
    from engine.graph.source_spec import SinkSpec
    from engine.ids import JobId
    from engine.storage.store_client import use_store_settings
    from tests.storage.test_store_uploads import begin

    use_store_settings({settings})
    target, spec, job = StoreTarget(), SinkSpec("csv", "s3://data/killed/out"), JobId("a" * 32)
    staging = target.staging(target.resolved(spec), job)
    target.prepare(spec, staging, job, "")
    output = begin(staging.path + "/part.csv")
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["next job", "gc"])
def test_parts_of_a_killed_process_are_removed_by_the_next_job_and_by_gc(store, by):
    settings = {key: str(value).lower() if value is True else value for key, value in store.settings.items()}
    program = textwrap.dedent(KILLED).format(settings=settings)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    target, output = StoreTarget(), StoreTarget().resolved(SinkSpec("csv", "s3://data/killed/out"))
    (found,) = target.leftovers(output)
    assert uploads_of(store) == 1 and found[0] == JOB
    assert [name for name, _, _ in file_system_of(output).below(found[1].path)] == [OWNER_FILE]
    if by == "gc":
        target.abort(found[1], JOB)
    else:
        target.sweep(output, "", lambda job_id: False)
    assert uploads_of(store) == 0 and list(target.leftovers(output)) == []
