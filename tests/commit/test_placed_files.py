"""A single file in a store, and on a server: whatever the last request before a crash, it is the old one or the new."""

import itertools

import msgspec
import pytest

from engine.commit.decision import Decision
from engine.commit.output_target import OutputTakenError
from engine.commit.publish import publish
from engine.commit.staging import OWNER_FILE, this_process
from engine.commit.targets import target_named, target_of_path
from engine.errors import JobExecutionError, PlanError
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage import file_systems
from engine.storage.file_systems import file_system_of
from engine.storage.fsspec_client import close_connections
from engine.storage.store_client import use_store_settings
from engine.storage.store_options import bucket_settings
from tests.storage.file_servers import serving
from tests.storage.memory import CrashError, MemoryStore

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)
OUTPUT = "memory://bucket/in/a.csv"


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, found))
    return found


def decided(output=OUTPUT, job_id=JOB, *, overwrite=False, count=1):
    """Return the staging and the decision of a job that has written its file."""
    spec = SinkSpec("csv", output, overwrite, is_single_file=True)
    target = target_of_path(output, is_single_file=True)
    target.check(spec, target.resolved(spec))
    staging = target.staging(target.resolved(spec), job_id)
    target.prepare(spec, staging, job_id, "")
    staged = []
    for number in range(count):
        with file_system_of(output).create(f"{staging.path}/0-{number}.csv") as file:
            file.write(f"new of {str(job_id)[0]}".encode())
        staged.append(StagedFile(0, 0, f"0-{number}.csv", 1, 3))
    return staging, Decision(job_id, 1, (target.decided(spec, 0, staging, staged, job_id),))


def content(store):
    return {path: text for path, (text, _) in store.files.items()}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_crash_at_any_request_leaves_old_or_new_and_is_completed_or_undone(store, overwrite, is_done, goes_on):
    old = {OUTPUT: b"old"} if overwrite else {}
    for stop in itertools.count():
        store.files.clear()
        for path, text in old.items():
            store.put(path, text)
        staging, decision = decided(overwrite=overwrite)
        store.requests, store.crash_at, store.is_done = 0, stop, is_done
        try:
            publish(decision)
            break
        except CrashError:
            found = {path: text for path, text in content(store).items() if ".drey-staging" not in path}
            assert found in (old, {OUTPUT: b"new of a"})
        store.crash_at = -1
        if goes_on:
            publish(decision)
            publish(decision)
        else:
            target_named("store_file").abort(staging, JOB)
        assert content(store) == ({OUTPUT: b"new of a"} if goes_on else found)
    assert stop > 2 and content(store) == {OUTPUT: b"new of a"}


def test_what_another_program_made_meanwhile_stays(store):
    staging, decision = decided()
    store.put(OUTPUT, b"theirs")
    with pytest.raises(OutputTakenError, match=r"in/a\.csv was created by another program while the job ran"):
        publish(decision)
    target_named("store_file").abort(staging, JOB)
    assert content(store) == {OUTPUT: b"theirs"}


@pytest.mark.parametrize("is_dead", [False, True])
def test_of_two_jobs_one_writes(store, is_dead):
    staging, first = decided()
    _, second = decided(job_id=OTHER)
    if is_dead:
        owner = msgspec.structs.replace(this_process(), started_s=1.0)
        store.put(f"{staging.path}/{OWNER_FILE}", msgspec.json.encode(owner))
    store.crash_at = store.requests  # behind the claim
    with pytest.raises(CrashError):
        publish(first)
    store.crash_at = -1
    if is_dead:
        publish(second)
        assert content(store) == {OUTPUT: b"new of b"}
        return
    with pytest.raises(OutputTakenError, match="is written by another job at this moment"):
        publish(second)
    publish(first)
    assert store.files[OUTPUT][0] == b"new of a"


def test_places_and_sizes_that_a_file_cannot_have_are_refused(store):
    store.put("memory://bucket/there.csv", b"old")
    store.put("memory://bucket/below/x/b.csv", b"old")
    for name, said in (
        ("there.csv", "already exists; pass overwrite=True"),
        ("below", r"has files below it, and single_file=True writes a file; name one, such as .*/below/data\.csv"),
    ):
        with pytest.raises(PlanError, match=said):
            decided(f"memory://bucket/{name}")
    with pytest.raises(PlanError, match="web servers are read and not written"):
        target_named("store").check(SinkSpec("csv", "https://host/a"), "https://host/a")
    with pytest.raises(JobExecutionError, match=r"a single file in a store has at most 4 GB; leave single_file=True"):
        decided(count=2)
    _, decision = decided(job_id=OTHER)
    store.files.clear()
    with pytest.raises(JobExecutionError, match=r"the staged file of the output .* is missing"):
        publish(decision)


@pytest.fixture(scope="module", params=["ftp", "sftp"])
def server(request, tmp_path_factory):
    with serving(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def test_a_file_on_a_server_is_made_and_replaced_and_nothing_is_left_beside_it(server):
    url, options = server
    use_store_settings(bucket_settings([url], options, "write_csv"))
    files, output = file_system_of(url), f"{url}/test/a.csv"
    try:
        for job_id in (JOB, OTHER):
            publish(decided(output, job_id, overwrite=job_id == OTHER)[1])
            assert files.read(output) == f"new of {str(job_id)[0]}".encode()
            assert [each.name for each in files.entries(f"{url}/test")] == ["a.csv"]
        with pytest.raises(PlanError, match="already exists; pass overwrite=True"):
            decided(output)
    finally:
        files.delete_tree(f"{url}/test")
        use_store_settings({})
        close_connections()
