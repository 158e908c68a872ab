"""A cluster tells another program of the end of a job, with the key that it has made."""

import json
import sys

import pytest

from engine.rpc.webhook import SIGNATURE_HEADER, signature
from tests.entrypoint.conftest import until
from tests.rpc.test_webhook import Receiver

pytestmark = pytest.mark.processes


def test_the_end_of_a_job_is_posted_once_and_signed(installation, tmp_path):
    job = tmp_path / "job.py"
    job.write_text("from drey import Environment\nprint(Environment().from_rows([{'n': 1}]).collect())\n")
    with Receiver(503) as receiver:
        installation.configure(jobmanager__webhook__url=receiver.url, jobmanager__webhook__key_file="hook.key")
        lines = (installation.conf / "config.yaml").read_text().replace("key_file", "key-file")
        (installation.conf / "config.yaml").write_text(lines)
        assert installation.run("cluster", "start").returncode == 0
        words = ("job", "submit", "-t", "cluster", str(job))
        done = installation.run(*words, command=(sys.executable, "-m", "engine.cli.main"))
        assert done.returncode == 0, done.stdout + done.stderr
        until(lambda: len(receiver.heard) == 2, "the second try")
        assert installation.run("cluster", "stop").returncode == 0
    (_, _, body), (_, headers, again) = receiver.heard
    assert body == again and json.loads(body)["state"] == "FINISHED"
    key = (installation.conf / "hook.key").read_bytes().strip()
    time_ms = int(headers[SIGNATURE_HEADER].partition(",")[0].removeprefix("t="))
    assert headers[SIGNATURE_HEADER] == signature(key, time_ms, body)
    assert "hidden" not in installation.log_text("jobmanager")
