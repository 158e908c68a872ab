"""Shares of a run: what has grown is told, what is recorded holds."""

import json
from types import SimpleNamespace

import pytest

from tests import durations
from tests.durations import Durations, grown, shares, too_long


def report(test, seconds):
    return SimpleNamespace(nodeid=test, duration=seconds)


@pytest.fixture
def counted(tmp_path):
    run = Durations("quick", tmp_path / "durations.json")
    for number in range(100):
        run.pytest_runtest_logreport(report(f"tests/sort/test_a.py::test_{number}", 0.75))
    run.pytest_runtest_logreport(report("tests/join/test_b.py::test_all", 20.0))
    run.pytest_runtest_logreport(report("tests/test_c.py::test_rest", 5.0))
    return run


def test_a_share_is_of_the_seconds_of_the_run():
    assert shares({"sort": 3.0, "join": 1.0}) == {"join": 25.0, "sort": 75.0}
    assert shares({}) == {}


def test_a_folder_that_has_grown_is_told_and_one_that_varies_is_not():
    assert grown({"sort": 12.0, "join": 8.0}, {"sort": 8.0, "join": 8.0}) == []
    assert grown({"sort": 13.1}, {"sort": 8.0}) == ["tests/sort: 13.1 % of the run, 8.0 % before"]
    assert grown({"fresh": 0.9}, {}) == []
    assert grown({"fresh": 1.1}, {}) == ["tests/fresh: 1.1 % of the run, 0.0 % before"]


def test_a_single_test_may_not_take_a_quick_run():
    assert too_long(dict.fromkeys(map(str, range(100)), 1.0)) == []
    assert len(too_long({"a": 5.0} | dict.fromkeys(map(str, range(95)), 1.0))) == 1


def test_what_is_recorded_holds_but_for_tests_that_are_too_long(counted, tmp_path):
    assert len(counted.complaints()) == 5  # three folders, two tests
    counted.record()
    assert json.loads((tmp_path / "durations.json").read_text()) == {"quick": {".": 5.0, "join": 20.0, "sort": 75.0}}
    assert [line.split(":")[0] for line in counted.complaints()] == ["tests/join/test_b.py", "tests/test_c.py"]


def test_a_run_that_is_to_hold_its_shares_fails_where_one_has_grown(counted):
    session = SimpleNamespace(config=SimpleNamespace(option=SimpleNamespace(shares="hold")), exitstatus=0)
    counted.pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED


def test_every_folder_of_tests_has_a_share():
    kept = json.loads(durations.FILE.read_text())
    named = set(kept["quick"]) | set(kept["rest"])
    folders = {path.parent.name for path in durations.FILE.parent.glob("*/test_*.py")}
    assert folders - named == set()
    assert sum(kept["quick"].values()) == pytest.approx(100, abs=3)
    assert sum(kept["rest"].values()) == pytest.approx(100, abs=3)
