"""Publication into a prefix of a store: whatever the last request before a crash, its content is old or new, whole."""

import json

import msgspec
import pytest

from engine.commit import store_publication
from engine.commit.decision import DecidedText, Decision
from engine.commit.output_target import OutputTakenError
from engine.commit.publish import publish
from engine.commit.staging import OWNER_FILE, StagingOwner, this_process
from engine.commit.store_target import StoreTarget
from engine.commit.targets import target_of_path
from engine.errors import JobExecutionError, PlanError
from engine.formats.output_check import check_outputs
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage import file_systems
from engine.storage.store_folder import STATE_NAME, FolderState, encode_state
from tests.storage.memory import CrashError, MemoryStore

JOB, OTHER = JobId("a" * 32), JobId("b" * 32)
OUTPUT = "memory://bucket/in/out"
OLD = {"k=1/part-old.csv": b"old 1", "k=2/part-old.csv": b"old 2"}
MODES = {
    "new": SinkSpec("csv", OUTPUT),
    "overwrite": SinkSpec("csv", OUTPUT, overwrite=True),
    "append": SinkSpec("csv", OUTPUT, mode="append", partition_by=("k",)),
    "overwrite_partitions": SinkSpec("csv", OUTPUT, mode="overwrite_partitions", partition_by=("k",)),
}
#: process of another start than any that runs here
DEAD = msgspec.structs.replace(this_process(), started_s=1.0)


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, found))
    # Requests in their order, so that a crash is where it is said to be.
    monkeypatch.setattr(store_publication, "_AT_ONCE", 1)
    return found


def begin(store, mode):
    """Put what is there before."""
    if mode != "new":
        for name, content in OLD.items():
            store.put(f"{OUTPUT}/{name}", content)
        store.put(f"{OUTPUT}/_SUCCESS", b"")


def prepared(store, mode, job_id=JOB, owner=None):
    """Return the decision of a job that has staged two files in one partition."""
    target, spec = StoreTarget(), MODES[mode]
    staging = target.staging(target.resolved(spec), job_id)
    target.prepare(spec, staging, job_id, "")
    if owner is not None:
        store.put(f"{staging.path}/{OWNER_FILE}", msgspec.json.encode(owner))
    folder = "" if mode == "new" else "k=2"
    staged = []
    for subtask in range(2):
        name = f"0-{subtask:05d}-nonce.csv"
        store.put(f"{staging.path}/{name}", b"new %d of %s" % (subtask, str(job_id)[:1].encode()))
        staged.append(StagedFile(0, subtask, name, 1, 5, "", folder))
    store.put(f"{staging.path}/0-00000-failed.csv", b"of an attempt that failed")
    output = target.decided(spec, 0, staging, staged, job_id)
    return Decision(job_id, 1, (msgspec.structs.replace(output, texts=(DecidedText("_note.json", "n"),)),))


def new_content(mode, job_id=JOB):
    folder = "" if mode == "new" else "k=2/"
    letter = str(job_id)[:1].encode()
    added = {f"{folder}part-{number:05d}-{job_id}.csv": b"new %d of %s" % (number, letter) for number in range(2)}
    kept = {"append": OLD, "overwrite_partitions": {"k=1/part-old.csv": b"old 1"}}.get(mode, {})
    return {**kept, **added}


def all_names(store):
    return sorted(path.removeprefix("memory://bucket/in/") for path in store.files)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
def test_a_crash_at_any_request_leaves_old_or_new_and_the_next_leader_completes_it(store, mode, is_done):
    old = {} if mode == "new" else OLD
    for crash_at in range(100):
        store.__init__()
        begin(store, mode)
        decision = prepared(store, mode)
        store.requests, store.crash_at, store.is_done = 0, crash_at, is_done
        try:
            publish(decision)
        except CrashError:
            assert store.visible(OUTPUT) in (old, new_content(mode)), crash_at
            store.crash_at = -1
            assert publish(decision) == publish(decision)
            has_crashed = True
        else:
            has_crashed = False
        assert store.visible(OUTPUT) == new_content(mode), crash_at
        own = [f"out/{name}" for name in (*new_content(mode), STATE_NAME, "_SUCCESS", "_note.json")]
        assert all_names(store) == sorted(own), crash_at
        if not has_crashed:
            assert crash_at > 8
            return
    pytest.fail("publication does not end")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("by", ["next job", "gc"])
def test_what_a_killed_process_had_begun_is_undone_or_completed_and_nothing_is_left(store, mode, by):
    old, target = {} if mode == "new" else OLD, StoreTarget()
    seen = set()
    for crash_at in range(100):
        store.__init__()
        begin(store, mode)
        decision = prepared(store, mode, owner=DEAD)
        store.requests, store.crash_at = 0, crash_at
        try:
            publish(decision)
        except CrashError:
            pass
        else:
            assert seen == {"old", "new"}
            return
        store.crash_at = -1
        before = store.visible(OUTPUT)
        if by == "gc":
            for job_id, staging in target.leftovers(OUTPUT):
                target.abort(staging, job_id)
        else:
            target.sweep(OUTPUT, "", lambda job_id: False)
        assert store.visible(OUTPUT) == before, crash_at
        assert before in (old, new_content(mode)), crash_at
        seen.add("old" if before == old else "new")
        marks = {f"out/{name}" for name in (STATE_NAME, "_SUCCESS", "_note.json")}
        assert set(all_names(store)) - marks == {f"out/{name}" for name in before}, crash_at
        if mode == "new" and before == old:
            assert all_names(store) == [], crash_at
    pytest.fail("publication does not end")


@pytest.mark.parametrize("mode", ["overwrite", "append", "overwrite_partitions"])
def test_two_jobs_that_publish_at_once_come_one_after_the_other_at_any_request(store, monkeypatch, mode):
    monkeypatch.setattr(store_publication, "_LOOK_S", 0.0)
    monkeypatch.setattr(store_publication, "_PATIENCE_S", -1.0)
    outcomes = []
    for turn in range(60):
        store.__init__()
        begin(store, mode)
        first, second = prepared(store, mode, JOB), prepared(store, mode, OTHER)
        store.requests = 0

        def other(what, path, turn=turn, second=second):
            if store.requests == turn:
                store.before = lambda *_: None
                publish(second)

        store.before = other
        publish(first)
        store.before = lambda *_: None
        publish(second)
        content = store.visible(OUTPUT)
        if mode == "append":
            assert content == {**OLD, **new_content(mode, JOB), **new_content(mode, OTHER)}, turn
        else:
            assert content in (new_content(mode, JOB), new_content(mode, OTHER)), turn
        outcomes.append(content)
        if store.requests < turn:
            break
    assert len(outcomes) > 10


def test_a_publication_that_goes_on_is_waited_for_and_one_that_does_not_is_undone_in_the_end(store, monkeypatch):
    begin(store, "append")
    prepared(store, "append", OTHER)
    state = FolderState("adding", 1, str(OTHER), 0, ("k=2/part-x.csv",))
    store.put(f"{OUTPUT}/{STATE_NAME}", encode_state(state))
    looks = []
    monkeypatch.setattr(store_publication.time, "sleep", looks.append)
    monkeypatch.setattr(store_publication, "_PATIENCE_S", 0.05)
    publish(prepared(store, "append"))
    assert looks, "it is a process of this machine, and alive"
    assert store.visible(OUTPUT) == new_content("append")


def with_manifest(decision):
    """Return a decision whose text lists its files, as a manifest does."""
    (output,) = decision.outputs
    listed = msgspec.json.encode([file.part for file in output.files]).decode()
    texts = (DecidedText("_manifest.json", listed),)
    return msgspec.structs.replace(decision, outputs=(msgspec.structs.replace(output, texts=texts),))


def listed_by_manifest(store):
    """Return the content that the manifest lists; each file of it is there."""
    return {name: store.files[f"{OUTPUT}/{name}"][0] for name in json.loads(store.read(f"{OUTPUT}/_manifest.json"))}


@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
def test_a_manifest_lists_files_that_are_there_whatever_the_last_request(store, is_done):
    for crash_at in range(100):
        store.__init__()
        publish(with_manifest(prepared(store, "overwrite", OTHER)))
        old = listed_by_manifest(store)
        decision = with_manifest(prepared(store, "overwrite", JOB))
        store.requests, store.crash_at, store.is_done = 0, crash_at, is_done
        try:
            publish(decision)
        except CrashError:
            assert listed_by_manifest(store) in (old, new_content("overwrite")), crash_at
            store.crash_at = -1
            publish(decision)
            assert listed_by_manifest(store) == new_content("overwrite")
        else:
            assert crash_at > 8 and listed_by_manifest(store) == new_content("overwrite")
            return
    pytest.fail("publication does not end")


def test_a_former_leader_whose_requests_come_late_does_not_bring_an_old_manifest_back(store):
    for turn in range(100):
        store.__init__()
        begin(store, "overwrite")
        first, second = (with_manifest(prepared(store, "overwrite", job)) for job in (JOB, OTHER))
        reads = []

        def overtake(what, path, turn=turn, first=first, second=second, reads=reads):
            reads.append(path)
            if len(reads) == turn + 1:
                store.before = lambda *_: None
                publish(first)  # by the next leader
                publish(second)  # of a later job

        store.before = overtake
        publish(first)
        store.before = lambda *_: None
        if len(reads) <= turn:
            assert turn > 15
            return
        assert listed_by_manifest(store) == store.visible(OUTPUT) == new_content("overwrite", OTHER), turn
    pytest.fail("publication does not end")


def test_an_output_that_another_program_makes_meanwhile_is_left_alone(store):
    decision = prepared(store, "new")
    store.put(f"{OUTPUT}/part-other.csv", b"other")
    with pytest.raises(OutputTakenError, match="created by another program"):
        publish(decision)
    assert store.visible(OUTPUT) == {"part-other.csv": b"other"}


def test_a_staged_file_that_is_gone_is_told(store):
    decision = prepared(store, "new")
    store.delete(f"{decision.outputs[0].staging}/0-00000-nonce.csv")
    with pytest.raises(JobExecutionError, match="a staged file of the output"):
        publish(decision)


def test_what_is_there_is_an_error_unless_it_is_replaced_or_added_to(store):
    assert target_of_path(OUTPUT) is target_of_path("memory://other/x") and target_of_path(OUTPUT).name == "store"
    check_outputs([MODES["new"]])
    begin(store, "append")
    with pytest.raises(PlanError, match="already exists; pass overwrite=True"):
        check_outputs([MODES["new"]])
    for mode in ("overwrite", "append", "overwrite_partitions"):
        check_outputs([MODES[mode]])
    with pytest.raises(PlanError, match="is partitioned by k, and partition_by is nothing"):
        check_outputs([SinkSpec("csv", OUTPUT, mode="append")])
    with pytest.raises(PlanError, match="is a whole bucket"):
        check_outputs([SinkSpec("csv", "memory://bucket")])
    store.put("memory://bucket/object", b"")
    with pytest.raises(PlanError, match="is an object"):
        check_outputs([SinkSpec("csv", "memory://bucket/object", overwrite=True)])


def test_staging_is_swept_when_its_process_is_gone_and_by_its_own_cluster_alone(store):
    target = StoreTarget()
    for letter, owner in (
        ("1", DEAD),
        ("2", this_process()),
        ("3", msgspec.structs.replace(DEAD, cluster="mine")),
        ("4", msgspec.structs.replace(DEAD, cluster="another")),
        ("5", StagingOwner("another host", "boot", 1, 1.0)),
    ):
        prepared(store, "new", JobId(letter * 32), owner)
    target.sweep(OUTPUT, "", lambda job_id: False)
    assert sorted(str(job)[0] for job, _ in target.leftovers(OUTPUT)) == ["2", "3", "4", "5"]
    target.sweep(OUTPUT, "mine", lambda job_id: True)
    assert sorted(str(job)[0] for job, _ in target.leftovers(OUTPUT)) == ["2", "4", "5"]
