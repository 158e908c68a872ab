"""What leaders keep in an object store: killed or deposed at any request, the next one finds the old state or the new.

Whatever was acknowledged runs once to a result, and nothing is left of it but its history and output. Handles, which
a quorum has, are requests here, too.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.dispatcher.job_archive import JobArchive
from engine.dispatcher.job_storage import StoredJobs
from engine.dispatcher.orphans import find_orphans, remove_orphan
from engine.errors import EngineError
from engine.storage import file_systems
from engine.storage.store_client import use_store_settings
from tests.dispatcher import crash_leader
from tests.dispatcher.crash_leader import CONTENT, JOB, FileHandles, Leader
from tests.dispatcher.stored import World
from tests.jobmaster.job_graphs import job_graph
from tests.storage.memory import CrashError, MemoryStore
from tests.storage.moto_server import running
from tests.storage.store_proxy import Proxy

PREFIX = "memory://bucket/ha"
CASES = [
    ("finish", "new"),
    ("cancel", "new"),
    ("recover", "accepted"),
    ("recover", "cancelled"),
    ("recover", "decided"),
    ("recover", "ended"),
]


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(file_systems, "FILE_SYSTEMS", (file_systems.LOCAL, found))

    class Handles(FileHandles):
        """Handles whose writes are requests that a leader may die at."""

        def _put(self, *arguments):
            found._request("handle", "", lambda: FileHandles._put(self, *arguments))

        def remove(self, *arguments):
            found._request("handle", "", lambda: FileHandles.remove(self, *arguments))

    monkeypatch.setattr(crash_leader, "FileHandles", Handles)
    return found


def prepared(folder, state, storage):
    """Make a folder in which an earlier leader has left a job in some state."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "target").mkdir(parents=True)
    leader = Leader(folder, storage)
    if state == "new":
        return
    journal = leader.submit()
    if state == "accepted":
        return
    leader.prepare(journal, ())
    if state == "cancelled":
        leader.jobs.cancel(JOB)
        leader.acknowledge("cancelling")
        return
    leader.forget = lambda *_: None  # it dies before it cleans
    if state == "decided":
        leader.commit.publish_again = lambda _: None
        leader.run()
    elif state == "ended":
        leader.run()
        leader.end("FINISHED")


def check(folder, storage, said):
    """Look at what there is when the next leader has gone on, and orphans are removed."""
    handles = FileHandles(folder)
    target, history = folder / "target", JobArchive(f"{storage}/history")
    for orphan in find_orphans(f"{storage}/storage", handles, [str(target)]):
        assert orphan.kind != "handle"
        assert remove_orphan(orphan, handles)
    assert handles.names() == ()
    objects = file_systems.file_system_of(storage).objects
    left = [name for name, _, _ in objects.below(f"{storage}/storage")]
    assert left == ["identity"] or (left == [] and not said)
    ended = history.read(JOB)
    status = None if ended is None else ended.outcome.status
    output = {path.name: path.read_text() for path in target.rglob("*") if path.is_file()}
    assert output == ({"part-00000.csv": CONTENT} if status == "FINISHED" else {})
    if "accepted" in said:
        assert status is not None
    if "cancelling" in said:
        assert status == "CANCELED"
    assert set(said) & {"FINISHED", "CANCELED"} <= {status}
    return status


def acknowledged(folder):
    path = folder / "acknowledged"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize(("action", "state"), CASES)
@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
def test_a_leader_that_dies_at_any_request_leaves_the_old_state_or_the_new(store, tmp_path, action, state, is_done):
    folder = tmp_path / "world"
    for crash_at in range(60):
        store.__init__()
        prepared(folder, state, PREFIX)
        store.requests, store.crash_at, store.is_done = 0, crash_at, is_done
        try:
            getattr(Leader(folder, PREFIX), action)()
        except CrashError:
            store.crash_at = -1
            said = acknowledged(folder)
            Leader(folder, PREFIX).recover()
            check(folder, PREFIX, said)
        else:
            assert crash_at > 1
            return
    pytest.fail("the leader does not end")


@pytest.mark.parametrize(("action", "state"), CASES)
def test_a_deposed_leader_whose_requests_come_late_changes_nothing(store, tmp_path, action, state):
    folder = tmp_path / "world"
    for turn in range(60):
        store.__init__()
        prepared(folder, state, PREFIX)
        leader, said = Leader(folder, PREFIX), []
        store.requests = 0

        def depose(what, path, turn=turn, said=said):
            if store.requests == turn:
                store.before = lambda *_: None
                said.extend([*acknowledged(folder), "deposed"])
                Leader(folder, PREFIX).recover()

        store.before = depose
        try:
            getattr(leader, action)()
        except (EngineError, OSError):
            assert said, "nothing but the other leader keeps it from going on"
        store.before = lambda *_: None
        Leader(folder, PREFIX).recover()  # of a job that was acknowledged when the other one had looked
        check(folder, PREFIX, [word for word in said if word != "deposed"])
        if not said:
            assert turn > 1
            return
    pytest.fail("the leader does not end")


def test_what_is_removed_of_a_store_is_stored_again_but_for_journals(store):
    world = World(PREFIX)
    jobs, graph = world.leader(), job_graph([1])
    jobs.put(graph)
    before = dict(store.files)
    store.files.clear()
    world.handles.remove(world.handles.epoch, graph.job_id.value)
    jobs.mend()
    assert {path: content for path, (content, _) in store.files.items()} == {
        path: content for path, (content, _) in before.items()
    }
    jobs = world.leader()
    assert jobs.load(graph.job_id).job_graph == graph
    store.files[f"{PREFIX}/identity"] = b"another", 0
    with pytest.raises(EngineError, match="is another folder"):
        jobs.mend()


# ---- processes that are killed, and a server


@pytest.fixture(scope="module")
def server():
    with running("drey-ha") as found:
        yield found


class Killer(Proxy):
    """A proxy that kills a leader at one of its requests."""

    def lead(self, folder, action, settings, kill_at=None, is_done=False):
        """Run a leader in a process of its own; return whether it was killed."""
        self.requests.clear()
        command = [sys.executable, "-B", "-m", "tests.dispatcher.crash_leader", str(folder), action]
        leader = subprocess.Popen([*command, json.dumps(settings)], cwd=Path(__file__).parents[2])

        def fault(number, method, path):
            if number != kill_at:
                return None
            leader.send_signal(signal.SIGKILL)
            return "lost" if is_done else "refused"

        self.fault = fault
        code = leader.wait(120)
        self.fault = lambda number, method, path: None
        assert code in (0, -signal.SIGKILL)
        return code != 0


@pytest.mark.processes
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("action", "state"), CASES)
def test_a_process_that_is_killed_at_any_request_to_a_server(server, tmp_path, action, state):
    folder, prefix, proxy = tmp_path / "world", f"s3://drey-ha/{action}-{state}", Killer(server.endpoint)
    texts = {key: str(value).lower() if value is True else value for key, value in server.settings.items()}
    files, statuses = file_systems.file_system_of(prefix), Counter()
    step = 1 if os.environ.get("CHAOS") in ("all", "full") else 9
    with proxy.running():
        settings = {**texts, "storage.s3.endpoint": proxy.endpoint, "prefix": prefix}
        use_store_settings(texts)
        try:
            prepared(folder, state, prefix)
            assert not proxy.lead(folder, action, settings)
            count = len(proxy.requests)
            for kill_at in range(step // 2, count, step):
                files.delete_tree(prefix)
                prepared(folder, state, prefix)
                assert proxy.lead(folder, action, settings, kill_at, is_done=bool(kill_at % 2))
                said = acknowledged(folder)
                Leader(folder, prefix).recover()
                statuses[check(folder, prefix, said)] += 1
        finally:
            use_store_settings({})
    print(f"{action} of a {state} job: {sum(statuses.values())} of {count} requests: {statuses}")
    assert sum(statuses.values()) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["busy", "refused", "lost", "cut", 0.01])
def test_a_leader_does_its_work_over_a_store_that_fails_at_every_third_request(server, tmp_path, kind):
    folder, prefix, proxy = tmp_path / "world", f"s3://drey-ha/faults-{kind}", Proxy(server.endpoint)
    texts = {key: str(value).lower() if value is True else value for key, value in server.settings.items()}
    (folder / "target").mkdir(parents=True)
    with proxy.running():
        use_store_settings({**texts, "storage.s3.endpoint": proxy.endpoint})
        try:
            proxy.fault = lambda number, method, path: kind if number % 3 == 0 else None
            Leader(folder, prefix).finish()
            prepared(folder, "accepted", f"{prefix}/2")
            Leader(folder, f"{prefix}/2").recover()
            proxy.fault = lambda number, method, path: None
            for storage in (prefix, f"{prefix}/2"):
                ended = JobArchive(f"{storage}/history").read(JOB)
                assert ended.outcome.status == "FINISHED"
            assert check(folder, f"{prefix}/2", acknowledged(folder)) == "FINISHED"
        finally:
            use_store_settings({})


def test_a_store_that_fails_is_told_with_the_job_and_nothing_is_stored(store):
    jobs = StoredJobs(PREFIX, World(PREFIX).handles, 1)
    jobs.open()

    def fail(*_):
        raise OSError(5, "the store cannot be reached (503, request 7); look at the network", "memory://bucket/x")

    store.replace = fail
    graph = job_graph([1])
    with pytest.raises(EngineError, match=rf"job {graph.job_id} cannot be stored in {PREFIX}: the store .*request 7"):
        jobs.put(graph)
