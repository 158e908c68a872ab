"""An output that is one file: each step may be the last before a crash, and the next leader arrives at the same."""

import pytest

from engine.commit.decision import DecidedFile, DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.commit.targets import target_named, targets_in
from engine.errors import JobExecutionError, PlanError
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId


class StopError(Exception):
    """A crash behind a step."""


def staged(tmp_path, spec, job_id=None):
    """Return the output of a job that has written its file."""
    target, job_id = target_named("file"), job_id or JobId.random()
    output = target.resolved(spec)
    target.check(spec, output)
    staging = target.staging(output, job_id)
    target.prepare(spec, staging, job_id, "")
    (tmp_path / staging.path / "0-0.csv").write_text("new\n")
    files = (DecidedFile("0-0.csv", "part-00000.csv", 1, 4),)
    return staging, job_id, DecidedOutput(0, output, staging.path, spec.overwrite, files, kind="file")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("stop", range(6))
def test_what_stops_after_any_step_is_repeated(tmp_path, overwrite, stop):
    spec = SinkSpec("csv", str(tmp_path / "sub" / "a.csv"), overwrite, is_single_file=True)
    if overwrite:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "a.csv").write_text("old\n")
    _, job_id, output = staged(tmp_path, spec)
    target, steps = target_named("file"), []

    def after_step(name):
        steps.append(name)
        if len(steps) == stop:
            raise StopError

    for _ in range(2):
        try:
            target.publish(output, job_id, after_step, is_durable=False)
            target.clean(output, job_id, after_step)
        except StopError:
            continue
    assert (tmp_path / "sub" / "a.csv").read_text() == "new\n"
    assert [each.name for each in (tmp_path / "sub").iterdir()] == ["a.csv"]


def test_a_file_that_another_program_made_meanwhile_stays(tmp_path):
    spec = SinkSpec("csv", str(tmp_path / "a.csv"), is_single_file=True)
    staging, job_id, output = staged(tmp_path, spec)
    (tmp_path / "a.csv").write_text("theirs\n")
    with pytest.raises(OutputTakenError, match="was created by another program while the job ran"):
        target_named("file").publish(output, job_id, lambda _: None, is_durable=True)
    target_named("file").abort(staging, job_id)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["theirs\n"]


def test_a_staged_file_that_is_gone_is_an_error(tmp_path):
    spec = SinkSpec("csv", str(tmp_path / "a.csv"), is_single_file=True)
    staging, job_id, output = staged(tmp_path, spec)
    (tmp_path / staging.path / "0-0.csv").unlink()
    with pytest.raises(JobExecutionError, match=r"the staged file of the output .* is missing"):
        target_named("file").publish(output, job_id, lambda _: None, is_durable=True)


def test_what_a_killed_job_has_left_is_found_in_the_folder(tmp_path):
    spec = SinkSpec("csv", str(tmp_path / "a.csv"), is_single_file=True)
    staging, job_id, _ = staged(tmp_path, spec)
    found = [one for target in targets_in(str(tmp_path)) for one in target.stagings_in(str(tmp_path))]
    assert [(job_id, staging.path, staging.output)] == [(job, one.path, one.output) for job, one in found]
    target_named("file").abort(staging, job_id)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "is a folder, and single_file=True writes a file; name one, such as .*/folder/data.csv"),
        ("taken.csv", "already exists; pass overwrite=True to replace it"),
        ("taken.csv/a.csv", "taken.csv is not a folder"),
    ],
)
def test_places_that_take_no_file_are_refused(tmp_path, name, said):
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken.csv").write_text("x")
    with pytest.raises(PlanError, match=said):
        staged(tmp_path, SinkSpec("csv", str(tmp_path / name), is_single_file=True))
