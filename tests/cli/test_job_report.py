"""The page of a job as a file, made of the profile that REST tells."""

import json
from argparse import Namespace

import msgspec
import pytest

from engine.cli.job_report import write_report
from engine.cli.main import build_parser
from engine.errors import ConfigurationError
from engine.profile.job_profile import JobProfile
from engine.profile.profile_making import profile_of
from tests.rest.details import JOB_ID, job
from tests.rest.outline import Outline


class Client:
    def profile(self, job_id):
        assert job_id == JOB_ID
        return msgspec.json.decode(msgspec.json.encode(profile_of(job(status="FAILED"), 11_000)), type=JobProfile)


def test_a_report_is_a_whole_page_and_its_cause_is_said(tmp_path, capsys):
    path = tmp_path / "report.html"
    options = build_parser().parse_args(["job", "report", JOB_ID.value, "-o", str(path)])
    assert write_report(options, Client()) == 0
    assert "prices" in Outline(path.read_text(encoding="utf-8")).text
    told = capsys.readouterr()
    assert told.out == "" and "failed in join (2/2): ValueError" in told.err and str(path) in told.err


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    missing = tmp_path / "missing" / "report.html"
    options = build_parser().parse_args(["job", "report", JOB_ID.value, "-o", str(missing)])
    with pytest.raises(ConfigurationError, match=r"report\.html: No such file"):
        write_report(options, Client())


def test_a_time_needs_a_unit(capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["taskmanager", "stop", "5f", "--timeout", "5"])
    assert "5 has no unit: write 5 s, 5 min" in capsys.readouterr().err
    assert build_parser().parse_args(["taskmanager", "stop", "5f", "--timeout", "5 s"]).timeout == 5


def test_the_profile_itself_goes_to_standard_output(capsys):
    assert write_report(Namespace(job_id=JOB_ID.value, output=None, json=True), Client()) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["causes"][0]["kind"] == "failure" and len(document["vertices"]) == 2
