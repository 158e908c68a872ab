"""A backup has what the next leader needs, is restored whole or not at all, and is refused when it was changed."""

from __future__ import annotations

import gzip
import io
import random
import tarfile

import pytest

from engine.dispatcher import state_backup
from engine.dispatcher.job_archive import EndedJob, JobArchive
from engine.dispatcher.job_handle import StoredEnd
from engine.dispatcher.state_backup import BackupError, BackupPlaces, read_backup, restore, write_backup
from tests.dispatcher.stored import World, decision_of, end_of
from tests.jobmaster.job_graphs import job_graph

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def places_of(world):
    return BackupPlaces(str(world.folder), str(world.folder / "history"))


@pytest.fixture
def world(tmp_path):
    """Three jobs: one that runs with files of its own, one that is decided, one that has ended."""
    made = World(tmp_path / "storage")
    jobs = made.leader()
    made.running, made.decided, made.ended = (job_graph([1], name=name) for name in ("running", "decided", "ended"))
    for graph in (made.running, made.decided):
        jobs.put(graph)
        jobs.new_journal(graph.job_id)._place.close()
    jobs.decide(decision_of(made.decided, jobs._epoch))
    blobs = made.folder / "blobs" / made.running.job_id.value
    blobs.mkdir(parents=True)
    (blobs / ("a" * 64)).write_bytes(b"a module")
    end = end_of(made.ended)
    (made.folder / "history").mkdir()
    JobArchive(str(made.folder / "history")).write(EndedJob(end.overview, end.outcome, end.details))
    return made


@pytest.fixture
def path(world, tmp_path):
    assert write_backup(tmp_path / "a.backup", places_of(world), world.handles, KEY) == 2
    return tmp_path / "a.backup"


def test_another_cluster_goes_on_with_what_was_backed_up(world, path, tmp_path):
    assert path.stat().st_mode & 0o077 == 0
    new = World(tmp_path / "elsewhere")
    assert restore(read_backup(path, KEY), places_of(new), new.handles, new.handles.epoch) == 2
    assert {name for name in new.files() if "part" not in name} == set(world.files())
    jobs = new.leader()
    assert set(jobs.job_ids()) == {world.running.job_id, world.decided.job_id}
    running, decided = (jobs.load(graph.job_id) for graph in (world.running, world.decided))
    assert running.job_graph == world.running and running.decision is None
    assert decided.decision is not None and not isinstance(decided, StoredEnd)
    assert [job.name for job in JobArchive(str(new.folder / "history")).overviews()] == ["ended"]
    assert (new.folder / "blobs" / world.running.job_id.value / ("a" * 64)).read_bytes() == b"a module"


def test_a_restore_that_was_cut_off_is_repeated_and_other_jobs_are_in_its_way(world, path, tmp_path, monkeypatch):
    new = World(tmp_path / "elsewhere")
    backup = read_backup(path, KEY)
    first = sorted(backup.handles)[0]
    new.handles.create(new.handles.epoch, first, backup.handles[first])
    assert restore(backup, places_of(new), new.handles, new.handles.epoch) == 2
    jobs = new.leader()
    jobs.put(job_graph([1], name="another one"))
    with pytest.raises(BackupError, match="1 other jobs are there"):
        restore(backup, places_of(new), new.handles, new.handles.epoch)


def test_a_handle_that_changes_while_it_is_read_has_all_read_again(world, tmp_path, monkeypatch):
    jobs = world.leader()
    jobs.open()
    monkeypatch.setattr(state_backup, "_PAUSE_S", 0.0)
    real, calls = state_backup._handles, []

    def handles(store):
        calls.append(1)
        if len(calls) == 2:  # after the files of the first try
            jobs.cancel(world.running.job_id)
        return real(store)

    monkeypatch.setattr(state_backup, "_handles", handles)
    write_backup(tmp_path / "b", places_of(world), world.handles, KEY)
    assert len(calls) == 4
    state = world.handles.read(world.running.job_id.value)
    assert read_backup(tmp_path / "b", KEY).handles[world.running.job_id.value] == state.content
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "storage"], "nothing is left beside it"


def test_a_job_that_ends_meanwhile_is_left_out(world, tmp_path, monkeypatch):
    real, calls = state_backup._handles, []

    def handles(store):
        calls.append(1)
        found = real(store)
        return found if len(calls) == 1 else {world.decided.job_id.value: found[world.decided.job_id.value]}

    monkeypatch.setattr(state_backup, "_handles", handles)
    assert write_backup(tmp_path / "b", places_of(world), world.handles, KEY) == 1


def changed(path, change):
    """Write the members of a backup again, changed."""
    with tarfile.open(path) as tar:
        members = [(header.name, tar.extractfile(header).read()) for header in tar]
    with tarfile.open(path, "w:gz") as tar:
        for name, content in change(members):
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda found: [(n, c + b"!" if n.startswith("storage/jobs") else c) for n, c in found], "damaged"),
        (lambda found: [each for each in found if not each[0].startswith("history")], "damaged"),
        (lambda found: [("storage/../../etc/passwd", b""), *found], "damaged"),
        (lambda found: [(n, c.replace(b'"drey"', b'"dret"') if "manifest" in n else c) for n, c in found], "secret"),
        (lambda found: [each for each in found if each[0] != "seal"], "no backup"),
    ],
)
def test_what_was_changed_is_not_restored(path, change, why):
    changed(path, change)
    with pytest.raises(BackupError, match=why):
        read_backup(path, KEY)


def test_a_byte_that_was_changed_within_a_large_file_is_told_as_damage(path):
    large = random.Random(1).randbytes(60_000).hex().encode()
    changed(path, lambda found: [("storage/jobs/large", large), *found])
    whole = path.read_bytes()
    for place in range(10, len(whole) // 2, 487):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(BackupError, match=r"damaged|or was changed"):
            read_backup(path, KEY)


def test_another_secret_half_a_file_and_no_file_are_refused(path, tmp_path):
    with pytest.raises(BackupError, match="not made with this cluster's secret"):
        read_backup(path, OTHER_KEY)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(BackupError, match="damaged"):
        read_backup(path, KEY)
    (tmp_path / "text").write_bytes(gzip.compress(b"text"))
    for wrong in ("text", "missing"):
        with pytest.raises(BackupError, match="no backup"):
            read_backup(tmp_path / wrong, KEY)
