"""Which tests a run takes; a test that is alone has nothing beside it, and gets its turn."""

import fcntl
import threading
import time
from types import SimpleNamespace

import pytest

from tests import tiers

FILES = {
    "conftest.py": """
        import tests.tiers as tiers

        def pytest_addoption(parser): tiers.add_options(parser)
        def pytest_configure(config): tiers.register(config)
        def pytest_collection_modifyitems(config, items): tiers.keep_tiers(config, items)
    """,
    "pytest.ini": "[pytest]\ntestpaths = tests_here\naddopts = --strict-markers\nmarkers = integration: whole jobs\n",
    "tests_here/test_one.py": """
        import pytest

        def test_quick(): pass
        @pytest.mark.thorough
        def test_long(): pass
        @pytest.mark.integration
        def test_job(): pass
        @pytest.mark.integration
        @pytest.mark.quick
        def test_quick_job(): pass
        @pytest.mark.alone
        def test_still(): pass
        @pytest.mark.parametrize("a", [1, 2])
        @pytest.mark.parametrize("b", [3, 4])
        def test_pairs(a, b): pass
    """,
    "tests_here/test_two.py": """
        import pytest
        pytestmark = [pytest.mark.processes, pytest.mark.alone]

        def test_cluster(): pass
        @pytest.mark.quick
        def test_small_cluster(): pass
    """,
    "tests_here/test_with_processes.py": """
        import pytest

        @pytest.mark.processes
        def test_real(): pass
    """,
}


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on the files with arguments; give the names of the tests that ran, in order."""
    monkeypatch.delenv("CHAOS", raising=False)
    for name, text in FILES.items():
        path = pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(line.removeprefix("        ") for line in text.splitlines()))

    def ran(*arguments):
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-v", *arguments)
        return [line.split("::test_")[1].split()[0] for line in result.outlines if "PASSED" in line]

    return ran


def test_a_run_takes_what_its_options_say(run):
    assert run() == ["quick", "quick_job", "pairs[3-1]", "pairs[4-2]", "still", "small_cluster"]
    pairs = ["pairs[3-1]", "pairs[3-2]", "pairs[4-1]", "pairs[4-2]"]
    assert run("--all") == ["quick", "long", "job", "quick_job", *pairs, "still", "small_cluster"]
    assert run("--rest") == ["real", "long", "job", "pairs[3-2]", "pairs[4-1]", "cluster"]


def test_what_is_named_runs_whatever_its_markers(run):
    assert run("tests_here/test_two.py") == ["cluster", "small_cluster"]
    assert run("tests_here/test_one.py::test_long") == ["long"]


def test_chaos_brings_clusters_into_every_run(run, monkeypatch):
    monkeypatch.setenv("CHAOS", "short")
    assert run() == ["real", "quick", "quick_job", "pairs[3-1]", "pairs[4-2]", "cluster", "small_cluster", "still"]


def test_files_that_wait_and_files_that_compute_take_turns_until_a_third_of_these_is_left():
    assert tiers.in_turns(list("AB"), list(range(9))) == ["A", 0, 1, 2, "B", 3, 4, 5, 6, 7, 8]
    assert tiers.in_turns(list("ABC"), [0, 1]) == ["A", "B", "C", 0, 1]
    assert tiers.in_turns([], [0, 1]) == [0, 1]
    assert tiers.in_turns(["A"], []) == ["A"]


def item(folder, *markers):
    """Return what ``turn`` asks of a test."""
    return SimpleNamespace(
        config=SimpleNamespace(stash={tiers._folder: folder}),
        get_closest_marker=lambda name: name if name in markers else None,
    )


def test_nothing_runs_beside_a_test_that_is_alone(tmp_path):
    running, seen = [], []

    def work(*markers):
        for _ in range(20):
            with tiers.turn(item(tmp_path, *markers)):
                running.append(markers)
                time.sleep(0.001)
                seen.append((markers, len(running)))
                running.remove(markers)

    threads = [threading.Thread(target=work, args=markers) for markers in [(), (), ("alone",)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 60
    assert {count for markers, count in seen if markers} == {1}


def test_who_waits_to_be_alone_is_not_passed_by_others(tmp_path):
    order = []

    def alone():
        with tiers.turn(item(tmp_path, "alone")):
            order.append("alone")

    def another():
        with tiers.turn(item(tmp_path)):
            order.append("another")

    with tiers.turn(item(tmp_path)):
        first = threading.Thread(target=alone)
        first.start()
        while not _is_locked(tmp_path / "turnstile"):
            time.sleep(0.001)
        second = threading.Thread(target=another)
        second.start()
        second.join(0.05)
        assert order == []
    first.join()
    second.join()
    assert order == ["alone", "another"]


def _is_locked(path):
    with path.open("w") as probe:
        try:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(probe, fcntl.LOCK_UN)
        return False
