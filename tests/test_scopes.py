"""One process of a run has all tests that share the session of Spark."""

import pytest

from tests.scopes import SPARK_TESTS, scheduler_of, scope_of
from tests.tidy.imports import ROOT

CONFTEST = """
    from tests import scopes
    import pytest

    scopes.SPARK_TESTS = ("spark/", "frames/")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(config, log): return scopes.scheduler_of(config, log)
"""
TEST = """
    import os
    import time
    def test_process(): time.sleep(0.1); open({path!r}, "a").write(f"{name} {{os.getpid()}}\\n")
"""


def test_folders_with_a_session_are_there_and_others_have_none():
    for place in SPARK_TESTS:
        path = ROOT / place / "conftest.py" if place.endswith("/") else ROOT / place
        assert "spark" in path.read_text(encoding="utf-8")
        assert scope_of(f"{place}::test_b[x/y]") == "spark"
    assert scope_of("tests/sql/test_a.py::Of::test_b") == "tests/sql/test_a.py"


@pytest.mark.parametrize(("manner", "processes"), [("loadfile", 1), ("load", 2)])
def test_files_of_these_folders_run_in_one_process(pytester, monkeypatch, manner, processes):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    noted = pytester.path / "noted"
    for name in ("spark/test_a", "frames/test_b", "other/test_c", "other/test_d"):
        (pytester.path / name).parent.mkdir(exist_ok=True)
        lines = TEST.format(path=str(noted), name=name).splitlines()
        (pytester.path / f"{name}.py").write_text("\n".join(line.removeprefix("    ") for line in lines))
    pytester.runpytest_subprocess("-n2", "--dist", manner, "-p", "no:cacheprovider").assert_outcomes(passed=4)
    ran = [line.split() for line in noted.read_text().splitlines()]
    assert len({pid for _, pid in ran}) == 2
    assert len({pid for name, pid in ran if not name.startswith("other")}) == processes


def test_other_manners_are_left_alone(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "dist", "worksteal", raising=False)
    assert scheduler_of(pytestconfig, None) is None
