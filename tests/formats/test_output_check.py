"""Outputs that exist, clash or cannot be written are refused before anything starts."""

from __future__ import annotations

import pytest

from engine.commit.folder_check import resolve_target
from engine.commit.staging import create_staging
from engine.errors import PlanError
from engine.formats.output_check import check_outputs, sinks_of
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from tests.jobmaster.job_graphs import job_graph


def sink(path, overwrite=False):
    return SinkSpec("csv", str(path), overwrite)


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_an_output_that_exists_is_an_error_unless_it_is_to_be_replaced(tmp_path, kind):
    target = tmp_path / "out"
    {"folder": target.mkdir, "file": target.touch, "dangling link": lambda: target.symlink_to("nowhere")}[kind]()
    with pytest.raises(PlanError) as refusal:
        check_outputs([sink(target)])
    assert str(refusal.value) == (
        f"output {target} already exists; pass overwrite=True to replace it, or mode='append' to add to it"
    )
    check_outputs([sink(target, overwrite=True)])


def test_two_sinks_do_not_share_a_place(tmp_path):
    with pytest.raises(PlanError, match="two outputs of this job go to"):
        check_outputs([sink(tmp_path / "out"), sink(tmp_path / "x" / ".." / "out")])
    with pytest.raises(PlanError, match="lies inside output"):
        check_outputs([sink(tmp_path / "out"), sink(tmp_path / "out" / "deeper")])
    check_outputs([sink(tmp_path / "out"), sink(tmp_path / "out2")])


def test_the_working_folder_and_those_around_it_are_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (".", str(tmp_path.parent), "/"):
        with pytest.raises(PlanError, match="would replace the working folder"):
            check_outputs([sink(path, overwrite=True)])


def test_the_home_folder_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    with pytest.raises(PlanError, match="would replace the home folder"):
        check_outputs([sink(tmp_path / "home", overwrite=True)])


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PlanError, match=r"cannot be created: .*file is not a folder"):
        check_outputs([sink(tmp_path / "file" / "a" / "out")])


def test_a_path_with_a_null_character_is_refused():
    with pytest.raises(PlanError, match="cannot hold a null character"):
        check_outputs([sink("a\0b")])


def test_an_output_whose_name_is_too_long_leaves_no_folders_made_for_it(tmp_path):
    with pytest.raises(PlanError, match="cannot be created: File name too long"):
        create_staging(tmp_path / "new" / "deeper" / ("x" * 250), JobId.random())
    assert not list(tmp_path.iterdir())


def test_links_are_followed_so_that_staging_lies_beside_the_real_target(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert resolve_target(str(tmp_path / "link" / "out")) == tmp_path / "real" / "out"


def test_sinks_of_a_job_are_found_in_order_of_their_index(tmp_path):
    graph = job_graph([1, 1, 1], sinks={2: sink("c"), 0: sink("a")})
    assert [operator.spec.path for operator in sinks_of(graph)] == ["a", "c"]
