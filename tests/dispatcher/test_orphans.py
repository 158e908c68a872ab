"""What nobody needs is found and can be removed; what somebody needs never is."""

import argparse
import asyncio
import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from engine.cli import ha_gc
from engine.clock import ManualClock
from engine.commit.staging import create_staging, this_process
from engine.commit.store_target import StoreTarget
from engine.dispatcher.garbage_timer import GarbageTimer
from engine.dispatcher.orphans import find_orphans, remove_orphan
from engine.entrypoint import stored_garbage
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage import file_systems
from tests.dispatcher.stored import World, decision_of, end_of
from tests.jobmaster.job_graphs import job_graph
from tests.storage.memory import MemoryStore


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "storage")


def kinds(world, *outputs):
    return sorted(
        (orphan.kind, orphan.job_id) for orphan in find_orphans(str(world.folder), world.handles, map(str, outputs))
    )


def writing(target):
    return job_graph([1], sinks={0: SinkSpec("csv", str(target))})


def blob_of(world, graph):
    folder = world.folder / "blobs" / graph.job_id.value
    folder.mkdir(parents=True)
    (folder / ("a" * 64)).write_bytes(b"x" * 10)


def forget(world, graph):
    """What a crash between two steps leaves: no handle."""
    world.handles.remove(world.handles.epoch, graph.job_id.value)


def test_nothing_that_a_handle_names_is_an_orphan_at_any_point_of_a_job(world, tmp_path):
    jobs, graph = world.leader(), writing(tmp_path / "out")
    assert kinds(world) == []
    jobs.put(graph)
    blob_of(world, graph)
    assert kinds(world) == []
    jobs.new_journal(graph.job_id)._place.close()
    create_staging(tmp_path / "out", graph.job_id, jobs.cluster)
    assert kinds(world, tmp_path) == []
    jobs.decide(decision_of(graph, 2))
    assert kinds(world, tmp_path) == []
    jobs.record(end_of(graph))
    assert kinds(world, tmp_path) == []


def test_everything_of_a_job_without_a_handle_is_found_and_goes(world, tmp_path):
    jobs, graph = world.leader(), writing(tmp_path / "out")
    jobs.put(graph)
    blob_of(world, graph)
    jobs.record(end_of(graph))
    create_staging(tmp_path / "out", graph.job_id, jobs.cluster)
    forget(world, graph)
    found = find_orphans(str(world.folder), world.handles)
    assert sorted(orphan.kind for orphan in found) == ["blobs", "job", "result", "staging"]
    assert all(orphan.job_id == graph.job_id.value and orphan.age_s < 60 for orphan in found)
    assert next(orphan.size_bytes for orphan in found if orphan.kind == "blobs") == 10
    assert all(remove_orphan(orphan, world.handles) for orphan in found)
    assert world.files() == [] and [path.name for path in tmp_path.iterdir()] == ["storage"] and kinds(world) == []


def test_files_that_another_name_was_given_for_are_found(world):
    first, graph = world.leader(), job_graph([1])
    first.put(graph)
    Path(first.journal_path(graph.job_id)).write_bytes(b"old")
    second = world.leader()
    Path(second.journal_path(graph.job_id)).write_bytes(b"new")
    second._handles.change(graph.job_id, lambda now: now.__class__(**{**_fields(now), "journal": "journal-3"}))
    (world.folder / "jobs" / graph.job_id.value / ".graph.0123").write_bytes(b"half")
    (world.folder / "results" / f"{graph.job_id}-2.json").write_bytes(b"{}")
    (world.folder / "results" / ".x.json.0123").write_bytes(b"half")
    name = graph.job_id.value
    assert kinds(world) == [("file", ""), ("file", name), ("file", name), ("result", name)]
    for orphan in find_orphans(str(world.folder), world.handles):
        assert remove_orphan(orphan, world.handles)
    assert kinds(world) == [] and second.load(graph.job_id).job_graph == graph


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def test_what_is_needed_again_when_it_is_to_be_removed_stays(world):
    jobs, graph = world.leader(), job_graph([1])
    jobs.put(graph)
    forget(world, graph)
    found = find_orphans(str(world.folder), world.handles)
    jobs.put(graph)
    assert not any(remove_orphan(orphan, world.handles) for orphan in found)
    assert jobs.load(graph.job_id).job_graph == graph


@pytest.mark.parametrize("damage", ["missing", "damaged", "folder gone"])
def test_a_handle_whose_files_are_missing_or_damaged_and_one_of_others_are_told_and_stay(world, damage):
    jobs, graph, foreign = world.leader(), job_graph([1]), "f" * 32
    jobs.put(graph)
    world.handles.create(world.handles.epoch, foreign, b"rubbish")
    path = next((world.folder / "jobs" / graph.job_id.value).glob("graph-*"))
    if damage == "missing":
        path.unlink()
    elif damage == "damaged":
        path.write_bytes(b"\0" + path.read_bytes()[1:])
    else:
        shutil.rmtree(world.folder)
    found = find_orphans(str(world.folder), world.handles)
    assert sorted((orphan.kind, orphan.job_id) for orphan in found) == [
        ("foreign", foreign),
        ("handle", graph.job_id.value),
    ]
    assert not any(remove_orphan(orphan, world.handles) for orphan in found)
    assert len(world.handles.names()) == 2


def test_staging_of_others_is_no_orphan_of_ours(world, tmp_path):
    jobs = world.leader()
    create_staging(tmp_path / "a", JobId("a" * 32), "another cluster")
    create_staging(tmp_path / "b", JobId("b" * 32))
    assert kinds(world, tmp_path) == []
    create_staging(tmp_path / "c", JobId("c" * 32), jobs.cluster)
    assert kinds(world, tmp_path) == [("staging", "c" * 32)]


@pytest.fixture
def command(world, monkeypatch, capsys):
    """Run ``ha gc`` over the world; what the leader was asked to cancel is in ``cancelled``."""
    cancelled = []

    monkeypatch.setattr(stored_garbage, "shared_folder", lambda *_: str(world.folder))
    monkeypatch.setattr(stored_garbage.StoredGarbage, "_handles", lambda _: world.handles)
    monkeypatch.setattr(ha_gc, "_cancel", lambda job_id, _: cancelled.append(job_id))

    def run(delete=False, older_than=0.0, outputs=()):
        options = argparse.Namespace(delete=delete, older_than=older_than, json=True, outputs=list(outputs))
        code = ha_gc.collect_garbage(options)
        return code, json.loads(capsys.readouterr().out)

    run.cancelled = cancelled
    return run


def states(found):
    return {each["kind"]: each["state"] for each in found["orphans"]}


def test_the_command_removes_nothing_unless_it_is_told_to_and_nothing_young(world, command):
    jobs, graph, lost = world.leader(), job_graph([1]), job_graph([1])
    jobs.put(graph)
    jobs.put(lost)
    forget(world, graph)
    next((world.folder / "jobs" / lost.job_id.value).glob("graph-*")).unlink()
    world.handles.create(world.handles.epoch, "f" * 32, b"rubbish")
    code, found = command()
    assert code == 0 and [each["state"] for each in found["orphans"]] == ["listed"] * 3
    assert found["size_bytes"] == sum(each["size_bytes"] for each in found["orphans"]) > 0
    code, found = command(delete=True, older_than=3600.0)
    assert states(found) == {"foreign": "listed", "handle": "young", "job": "young"}
    code, found = command(delete=True)
    assert code == 0
    assert states(found) == {"foreign": "listed", "handle": "removed", "job": "removed"}
    assert command.cancelled == [lost.job_id] and "f" * 32 in world.handles.names()
    assert not (world.folder / "jobs" / graph.job_id.value).exists()


def test_the_command_says_what_it_could_not_remove(world, command, monkeypatch):
    jobs, graph = world.leader(), job_graph([1])
    jobs.put(graph)
    forget(world, graph)

    def fail(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(stored_garbage, "remove_orphan", fail)
    code, found = command(delete=True)
    assert code == 1 and found["orphans"][0]["state"] == "kept"


def test_what_lies_in_a_store_is_compared_with_handles_and_goes(monkeypatch):
    store = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, store))
    world, job_id = World("memory://bucket/ha"), "a" * 32
    jobs, running, over = world.leader(), job_graph([1]), job_graph([1])
    for graph in (running, over):
        jobs.put(graph)
        jobs.new_journal(graph.job_id)._place.close()
        store.put(f"{world.folder}/blobs/{graph.job_id}/{'0' * 64}", b"module")
    needed = set(store.files)
    store.put(f"{world.folder}/results/{job_id}-0123.json", b"late")
    store.put(f"{world.folder}/jobs/{running.job_id}/decision-0123.json", b"late")
    assert [orphan.kind for orphan in find_orphans(world.folder, world.handles)] == ["file", "result"]
    world.handles.remove(world.handles.epoch, over.job_id.value)
    found = find_orphans(world.folder, world.handles)
    assert sorted(orphan.kind for orphan in found) == ["blobs", "file", "job", "result"]
    # The store tells no times: whatever it is may have been written just now.
    assert GarbageTimer(world.folder, world.handles, 0.01, None, ManualClock()).collect() == 0
    assert all(orphan.size_bytes > 3 and remove_orphan(orphan, world.handles) for orphan in found)
    assert set(store.files) == {path for path in needed if over.job_id.value not in path}
    assert world.leader().load(running.job_id).job_graph == running


def test_staging_in_a_store_and_of_processes_that_are_gone_is_found_with_its_size_and_goes(
    world, tmp_path, monkeypatch
):
    store = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, store))
    jobs, target = world.leader(), StoreTarget()
    dead = msgspec.structs.replace(this_process(), started_s=1.0)
    owners = {"a": msgspec.structs.replace(dead, cluster=jobs.cluster), "b": dead, "c": this_process()}
    for letter, owner in owners.items():
        staging = target.staging("memory://bucket/in/out", JobId(letter * 32))
        store.put(f"{staging.path}/owner.json", msgspec.json.encode(owner))
        store.put(f"{staging.path}/0-0.csv", b"x" * 1000)
    found = find_orphans(str(world.folder), world.handles, ["memory://bucket/in"])
    assert [(orphan.kind, orphan.job_id[0]) for orphan in found] == [("staging", "a"), ("staging", "b")]
    assert all(orphan.size_bytes > 1000 and orphan.path.startswith("memory://bucket/in/") for orphan in found)
    assert all(remove_orphan(orphan, world.handles) for orphan in found)
    assert {path.split("/")[6][0] for path in store.files} == {"c"}


def test_a_leader_removes_on_its_timer_what_is_old_and_no_job_needs_and_nothing_else(world, tmp_path, caplog):
    jobs, kept, gone = world.leader(), writing(tmp_path / "out"), writing(tmp_path / "other")
    for graph in (kept, gone):
        jobs.put(graph)
        blob_of(world, graph)
    create_staging(tmp_path / "other", gone.job_id, jobs.cluster)
    forget(world, gone)
    with ThreadPoolExecutor(1) as work:
        clock = ManualClock()
        young = GarbageTimer(str(world.folder), world.handles, 0.01, work, clock)
        assert young.collect() == 0, "a handle may be about to name it"
        assert [kind for kind, _ in kinds(world)] == ["blobs", "job", "staging"]

        async def until_it_is_gone():
            timer = asyncio.ensure_future(GarbageTimer(str(world.folder), world.handles, 0.01, work, clock, -1.0).run())
            async with asyncio.timeout(30):
                while kinds(world):
                    await asyncio.sleep(0.01)
            timer.cancel()

        asyncio.run(until_it_is_gone())
    assert all((world.folder / kind / kept.job_id.value).is_dir() for kind in ("jobs", "blobs"))
    assert not (tmp_path / "other").exists(), "what was staged is gone, too"
    asyncio.run(asyncio.wait_for(GarbageTimer(str(world.folder), world.handles, 0.0, None, clock).run(), 30))


def test_what_looks_old_since_clocks_differ_is_left_until_it_has_been_seen_for_as_long(world):
    jobs, graph, late, clock = world.leader(), job_graph([1]), job_graph([1]), ManualClock()
    timer = GarbageTimer(str(world.folder), world.handles, 0.01, None, clock, 100.0)

    def is_left_by(graph):
        """Write a job in a storage whose clock is an hour behind this machine's."""
        jobs.put(graph)
        forget(world, graph)
        for path in world.folder.rglob("*"):
            os.utime(path, (path.stat().st_mtime - 3600,) * 2)

    is_left_by(graph)
    assert timer.collect() == 0
    clock.advance(99.0)
    is_left_by(late)
    assert timer.collect() == 0 and len(kinds(world)) == 2
    clock.advance(1.0)
    assert timer.collect() > 0 and kinds(world) == [("job", late.job_id.value)]
    jobs.put(late)
    clock.advance(100.0)
    assert timer.collect() == 0
    forget(world, late)
    assert timer.collect() == 0, "it was needed in between"
    clock.advance(100.0)
    is_left_by(late)
    assert timer.collect() > 0 and kinds(world) == []


def test_what_seems_to_be_of_the_future_is_left_until_it_has_been_seen_unchanged_for_long(world):
    jobs, graph, clock = world.leader(), job_graph([1]), ManualClock()
    timer = GarbageTimer(str(world.folder), world.handles, 0.01, None, clock, 100.0)

    def written_in_s(seconds):
        """Have the storage's clock be ahead of this machine's when it is written."""
        for path in world.folder.rglob("*"):
            os.utime(path, (time.time() + seconds,) * 2)

    jobs.put(graph)
    forget(world, graph)
    written_in_s(86_400)
    assert timer.collect() == 0
    clock.advance(99.0)
    written_in_s(90_000)
    assert timer.collect() == 0
    clock.advance(99.0)
    assert timer.collect() == 0, "it was written anew"
    clock.advance(1.0)
    assert timer.collect() > 0 and kinds(world) == []
