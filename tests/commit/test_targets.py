"""Targets by their names, and one that is no folder: its attempts write in place, and its log is the switch."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from engine import Environment
from engine.commit import targets
from engine.commit.folder_target import FolderTarget
from engine.commit.output_target import OutputTarget
from engine.commit.publish import publish
from engine.commit.targets import target_named, target_of_path
from engine.csv.csv_format import CsvSink
from engine.dispatcher.orphans import find_orphans, remove_orphan
from engine.errors import PlanError
from engine.formats import registry
from engine.graph.deployment import PublishedOutput, StagedFile, Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.jobmaster.job_commit import JobCommit
from tests.dispatcher.stored import World
from tests.jobmaster.folder_storage import FolderStorage
from tests.jobmaster.job_graphs import job_graph


class LoggedTarget(OutputTarget):
    """A folder in which data files lie at once; those that ``log.json`` names are the output."""

    name = "logged"
    keeps_statistics = True

    def resolved(self, spec):
        return str(Path(spec.path).resolve())

    def check(self, spec, output):
        if not Path(output, "log.json").exists():
            raise PlanError(f"{output} has no log")

    def staging(self, output, job_id):
        return Staging(output, output, self.name)

    def prepare(self, spec, staging, job_id, cluster):
        self.prepared = json.loads(spec.options)

    def attempt_name(self, stem, ending, folder):
        return f"data/{stem}.{ending}"

    def publish(self, output, job_id, after_step, *, is_durable):
        path = Path(output.target, "log.json")
        log = json.loads(path.read_text())
        if str(job_id) not in log:
            log[str(job_id)] = [[file.name, file.row_count, file.folder, file.statistics] for file in output.files]
            path.write_text(json.dumps(log))
        after_step("log")
        return {"version": list(log).index(str(job_id)), "options": output.options}

    def clean(self, output, job_id, after_step):
        named = {file.name for file in output.files}
        for path in Path(output.target, "data").glob("*"):
            if f"data/{path.name}" not in named:
                path.unlink()

    def abort(self, staging, job_id):
        for path in Path(staging.output, "data").glob("*"):
            path.unlink()

    def is_there(self, staging):
        return any(Path(staging.output, "data").glob("*"))


class LoggedSink(CsvSink):
    name = "logged"
    extension = "csv"

    def target(self, spec):
        return target_named("logged")


@pytest.fixture
def logged(monkeypatch, tmp_path):
    monkeypatch.setitem(targets.TARGET_PLACES, "logged", (__name__, "LoggedTarget"))
    monkeypatch.setitem(registry.SINK_PLACES, "logged", (__name__, "LoggedSink"))
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "log.json").write_text("{}")
    yield folder
    targets.target_named.cache_clear()
    registry._sink_format_named.cache_clear()


def spec_of(folder, options='{"a": 1}'):
    return SinkSpec("logged", str(folder), options=options)


def commit_of(folder, tmp_path, epoch=1):
    graph = job_graph([1], sinks={0: spec_of(folder)})
    return JobCommit(graph, epoch, lambda: True, FolderStorage(tmp_path / "storage", graph.job_id))


def test_a_path_of_this_machine_is_a_folder_and_a_name_that_is_none_says_what_there_is():
    assert isinstance(target_named("folder"), FolderTarget) and target_of_path("/data/out") is target_named("folder")
    with pytest.raises(PlanError, match=r"there is no output target 'none': this process knows .*folder"):
        target_named("none")


def test_a_target_of_another_kind_is_checked_prepared_decided_and_published_once(logged, tmp_path):
    with pytest.raises(PlanError, match="has no log"):
        commit_of(tmp_path / "none", tmp_path).prepare()
    commit = commit_of(logged, tmp_path)
    assert commit.prepare() == {0: Staging(str(logged), str(logged), "logged")}
    assert target_named("logged").prepared == {"a": 1}
    (logged / "data").mkdir()
    (logged / "data" / "lost.csv").touch()
    (logged / "data" / "x.csv").touch()
    published = commit.commit([StagedFile(0, 0, "data/x.csv", 3, 9, "bounds", "day=1")])
    assert published == (PublishedOutput(0, str(logged), {"version": 0, "options": '{"a": 1}'}),)
    assert [path.name for path in (logged / "data").iterdir()] == ["x.csv"]
    decision = FolderStorage(tmp_path / "storage", JobId(str(commit._job_id))).decision()
    assert publish(decision) == published, "repeated by a leader that knows nothing but the decision"
    assert list(json.loads((logged / "log.json").read_text()).values()) == [[["data/x.csv", 3, "day=1", "bounds"]]]


def test_what_a_job_left_in_such_a_target_is_aborted_by_the_data_of_its_staging(logged, tmp_path):
    (logged / "data").mkdir()
    (logged / "data" / "x.csv").touch()
    world = World(tmp_path)
    jobs = world.leader()
    graph = job_graph([1], sinks={0: spec_of(logged)})
    assert jobs.put(graph)
    world.handles.remove(world.handles.epoch, graph.job_id.value)
    (orphan,) = [each for each in find_orphans(str(world.folder), world.handles) if each.kind == "staging"]
    assert orphan.staging == Staging(str(logged), str(logged), "logged")
    assert remove_orphan(orphan, world.handles) and not list((logged / "data").iterdir())


def test_a_program_writes_through_it_and_its_result_says_what_was_published(logged):
    with Environment({"parallelism.default": "2"}) as env:
        data = env.from_arrow(pa.table({"n": list(range(10))}))
        result = env.run_to_sink(data._node, spec_of(logged), "logged")
    assert [(each.sink_index, each.output, each.facts["version"]) for each in result.outputs] == [(0, str(logged), 0)]
    (files,) = json.loads((logged / "log.json").read_text()).values()
    assert sum(rows for _, rows, _, _ in files) == 10
    assert sorted(f"data/{path.name}" for path in (logged / "data").iterdir()) == sorted(name for name, *_ in files)
