"""Log files are put away at each start and when they grow too large; secrets are not in them."""

import logging
import os
import stat

from engine.config.loader import configuration_from_texts
from engine.entrypoint.log_files import LogFileHandler, rotate_logs
from engine.entrypoint.logging_setup import log_configuration
from engine.private_folder import make_closed


def contents(folder):
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_a_start_puts_the_log_of_the_last_one_away_and_keeps_so_many(tmp_path):
    path = tmp_path / "x.log"
    for number in range(5):
        rotate_logs(path, 3)
        path.write_text(f"run {number}")
    assert contents(tmp_path) == {"x.log": "run 4", "x.log.1": "run 3", "x.log.2": "run 2"}
    rotate_logs(path, 1)
    assert not path.exists()


def test_a_log_that_is_full_is_put_away_without_losing_a_line(tmp_path):
    handler = LogFileHandler(tmp_path / "x.log", 100, 3)
    for number in range(9):
        handler.handle(logging.makeLogRecord({"msg": f"{number} {'x' * 38}", "levelno": logging.INFO}))
    handler.close()
    assert [text.count("\n") for text in contents(tmp_path).values()] == [3, 3, 3]
    assert "".join(reversed(list(contents(tmp_path).values()))).split()[::2] == list("012345678")


def test_logs_are_for_their_owner_only_whatever_the_mask_is(tmp_path):
    (tmp_path / "old.log").touch(mode=0o644)
    before = os.umask(0)
    try:
        for name in ("new", "old"):
            handler = LogFileHandler(tmp_path / f"{name}.log", 10, 3)
            for _ in range(3):
                handler.handle(logging.makeLogRecord({"msg": "x" * 20, "levelno": logging.INFO}))
            handler.close()
        make_closed(tmp_path / "folder" / "log")
    finally:
        os.umask(before)
    files = list(tmp_path.glob("*.log*"))
    assert len(files) == 6
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "folder" / "log").stat().st_mode) == 0o700


def test_the_configuration_is_logged_with_its_origin(caplog):
    caplog.set_level(logging.INFO)
    log_configuration(configuration_from_texts({"rest.port": "8099"}, "somewhere"))
    assert caplog.messages == ["rest.port: 8099    [somewhere]"]
