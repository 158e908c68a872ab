"""The record of changes: one JSON object a line, private, bounded, without secrets."""

from __future__ import annotations

import json
import stat

from engine.config.loader import configuration_from_texts
from engine.entrypoint.audit_file import AuditFile, start_entry
from engine.insight.log_folder import LogFolder
from engine.rpc.audit import AuditEntry


def test_the_record_is_private_goes_on_at_the_next_start_and_is_bounded(tmp_path):
    log = tmp_path / "flink-u-jobmanager-0-host.log"
    log.write_text("the log\n")
    configuration = configuration_from_texts({"env.log.file-size": "1kb", "env.log.max": "3"})
    for begin in (0, 50):
        record = AuditFile(configuration, log)
        for number in range(begin, begin + 50):
            record.note(AuditEntry("submit", "done", details={"job": f"{number}", "name": "a\nb\u2028"}))
        record.close()
    files = sorted(tmp_path.glob("*-audit.log*"))
    assert len(files) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    text = "".join(path.read_text() for path in (files[2], files[1], files[0]))
    lines = [json.loads(line) for line in text.split("\n") if line]
    numbers = [int(line["details"]["job"]) for line in lines]
    assert numbers == list(range(numbers[0], 100)), "in order, across starts"
    assert lines[0]["what"] == "submit" and lines[0]["time"].endswith("Z") and lines[0]["process"] > 0
    assert [file.name for file in LogFolder(log).files()] == [log.name], "readers of logs are not shown it"


def test_a_process_without_a_log_file_has_no_record():
    record = AuditFile(configuration_from_texts({}), None)
    record.note(AuditEntry("submit", "done"))
    record.close()


def test_a_start_tells_the_settings_that_are_no_defaults_and_no_secret():
    settings = {"taskmanager.numberOfTaskSlots": "3", "storage.s3.secret-access-key": "hidden-one"}
    entry = start_entry(configuration_from_texts(settings, "test"))
    assert entry.details["taskmanager.numberOfTaskSlots"] == "3    [test]"
    assert "storage.s3.secret-access-key" in entry.details
    assert "hidden-one" not in str(entry)
    assert "rest.port" not in entry.details
