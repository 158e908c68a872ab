"""The page of a job as a file, made of the profile that REST tells."""

import json
from argparse import Namespace

import msgspec

from engine.cli.job_report import write_report
from engine.cli.main import build_parser
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


def test_the_profile_itself_goes_to_standard_output(capsys):
    assert write_report(Namespace(job_id=JOB_ID.value, output=None, json=True), Client()) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["causes"][0]["kind"] == "failure" and len(document["vertices"]) == 2
