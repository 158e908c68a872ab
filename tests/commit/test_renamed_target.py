"""Outputs on servers that rename folders: old or new, whatever the last request was, and nothing left beside them."""

import pytest

from engine.commit.decision import Decision
from engine.commit.output_target import OutputTakenError
from engine.commit.publish import publish
from engine.commit.renamed_target import RenamedTarget
from engine.errors import JobExecutionError, PlanError
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.storage.file_systems import file_system_of
from engine.storage.fsspec_client import close_connections
from engine.storage.store_client import use_store_settings
from engine.storage.store_options import bucket_settings
from tests.storage.file_servers import serving

TARGET = RenamedTarget()


class CrashError(Exception):
    """The end of a process."""


@pytest.fixture(scope="module", params=["ftp", "sftp"])
def server(request, tmp_path_factory):
    with serving(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def root(server):
    url, options = server
    use_store_settings(bucket_settings([url], options, "write_csv"))
    yield f"{url}/test"
    file_system_of(url).delete_tree(f"{url}/test")
    use_store_settings({})
    close_connections()


def decided(root, job, *, overwrite=True):
    spec, job_id = SinkSpec("csv", f"{root}/out", overwrite=overwrite), JobId(job * 32)
    staging = TARGET.staging(TARGET.resolved(spec), job_id)
    TARGET.prepare(spec, staging, job_id, "")
    staged = []
    for subtask in range(2):
        with file_system_of(root).create(f"{staging.path}/{subtask}.csv") as output:
            output.write(f"{job} {subtask}".encode())
        staged.append(StagedFile(0, subtask, f"{subtask}.csv", 1, 3, f"k={subtask}"))
    return spec, staging, Decision(job_id, 1, (TARGET.decided(spec, 0, staging, staged, job_id),))


def content(root):
    files, out = file_system_of(root), f"{root}/out"
    if not files.is_taken(out):
        return None
    return {files.read(f"{place}/{name}") for place, _, names in files.walk(out) for name in names}


def new(job):
    return {f"{job} 0".encode(), f"{job} 1".encode(), b""}


def test_an_output_is_made_and_replaced_and_nothing_is_left_beside_it(root):
    for job in "ab":
        publish(decided(root, job)[2])
        assert content(root) == new(job)
        assert [each.name for each in file_system_of(root).entries(root)] == ["out"]
    decision = decided(root, "c", overwrite=False)[2]
    with pytest.raises(OutputTakenError, match="was left as it is"):
        publish(decision)
    assert content(root) == new("b")


@pytest.mark.thorough
def test_a_crash_at_any_step_leaves_old_or_new_and_is_completed_or_undone(root):
    for stop in range(20):
        for goes_on in (True, False):
            file_system_of(root).delete_tree(root)
            publish(decided(root, "a")[2])
            _, staging, decision = decided(root, "b")
            steps = []

            def crash(step, steps=steps, stop=stop):
                steps.append(step)
                if len(steps) > stop:
                    raise CrashError

            try:
                publish(decision, crash)
                is_over = True
            except CrashError:
                is_over = False
            assert content(root) in (new("a"), new("b")) or steps[-1] == "set aside"
            if goes_on:
                publish(decision)
                assert content(root) == new("b")
            elif not is_over:
                placed = content(root) == new("b")
                TARGET.abort(staging, decision.job_id)
                assert content(root) == new("b" if placed else "a")
            assert [each.name for each in file_system_of(root).entries(root)] == ["out"]
        if is_over:
            return
    raise AssertionError("it never ended")


def test_modes_that_add_are_refused_and_so_are_systems_that_copy(root):
    for mode in ("append", "overwrite_partitions"):
        spec = SinkSpec("csv", f"{root}/out", mode=mode)
        with pytest.raises(PlanError, match=f"mode='{mode}' adds files .* keeps writers apart"):
            TARGET.check(spec, TARGET.resolved(spec))
    with pytest.raises(PlanError, match="nothing is written there, since its file system does not rename"):
        TARGET.check(SinkSpec("csv", "memory://host/out"), "memory://host/out")


def test_a_staged_file_that_is_gone_is_told_and_what_a_killed_process_left_is_swept(root, monkeypatch):
    _, staging, decision = decided(root, "a")
    file_system_of(root).delete(f"{staging.path}/1.csv")
    with pytest.raises(JobExecutionError, match=r"1\.csv: a staged file of the output .* is missing"):
        publish(decision)
    TARGET.sweep(staging.output, "", lambda job_id: False)
    assert TARGET.is_there(staging), "its process lives"
    monkeypatch.setattr("engine.commit.store_target.is_dead", lambda owner: True)
    TARGET.sweep(staging.output, "", lambda job_id: False)
    assert not TARGET.is_there(staging) and content(root) is None
