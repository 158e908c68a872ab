"""Progress in notebooks: one display for each job, replaced as it goes on; nothing where there is no kernel."""

import sys
import time
import types

import pyarrow as pa
import pytest

from engine import Environment
from engine.client.job_listener import SilentListener
from engine.client.notebook_progress import listener_of_job
from engine.errors import JobExecutionError


class Handle:
    def __init__(self, shown):
        self.shown = shown

    def update(self, html):
        self.shown.append(html)


@pytest.fixture
def kernel(monkeypatch):
    """Have an IPython with a kernel; return what each display was made to show."""
    displays = []

    def display(html, display_id=False):
        assert display_id
        displays.append([html])
        return Handle(displays[-1])

    package = types.ModuleType("IPython")
    package.display = types.ModuleType("IPython.display")
    package.display.HTML, package.display.display = str, display
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    package.displays = displays
    return package


def slow(row):
    time.sleep(0.02)
    if row.n < 0:
        raise ValueError("<b>less than nothing</b>")
    return (row.n,)


SCHEMA = pa.schema([("n", pa.int64())])


def test_a_job_in_a_notebook_shows_what_its_vertices_do(kernel):
    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"n": range(60)}))
        assert data.map(slow, SCHEMA).count() == 60
        (shown,) = kernel.displays
        assert len(shown) >= 3
        assert "<table>" in shown[0]
        assert "rows out" in shown[0]
        assert "0/1" in shown[0]
        assert "FINISHED after" in shown[-1]
        assert "<table>" not in shown[-1]
        data.map(slow, SCHEMA).count()
        assert len(kernel.displays) == 2


def test_a_job_that_fails_leaves_a_line(kernel):
    with Environment(config={"parallelism.default": 1}) as env:
        data = env.from_arrow(pa.table({"n": [1] * 40 + [-1]}))
        with pytest.raises(JobExecutionError):
            data.map(slow, SCHEMA).count()
    (shown,) = kernel.displays
    assert "FAILED" in shown[-1]


def test_rows_that_nobody_reads_to_the_end_are_a_job_that_was_cancelled(kernel):
    with Environment(config={"parallelism.default": 1}) as env:
        rows = env.from_arrow(pa.table({"n": range(500)})).map(slow, SCHEMA).to_batches()
        for _ in range(200):
            if kernel.displays:
                break
            time.sleep(0.05)
        rows.close()
    (shown,) = kernel.displays
    assert "CANCELED" in shown[-1]


def test_a_terminal_and_a_script_show_nothing(kernel, monkeypatch):
    kernel.get_ipython = types.SimpleNamespace
    assert isinstance(listener_of_job(), SilentListener)
    kernel.get_ipython = lambda: None
    assert isinstance(listener_of_job(), SilentListener)
    monkeypatch.delitem(sys.modules, "IPython")
    assert isinstance(listener_of_job(), SilentListener)
    assert not kernel.displays


@pytest.mark.thorough
def test_a_display_that_fails_does_not_touch_the_job(kernel):
    def refuse(*_arguments, **_named):
        raise RuntimeError("no page")

    kernel.display.display = refuse
    with Environment(config={"parallelism.default": 1}) as env:
        assert env.from_arrow(pa.table({"n": range(30)})).map(slow, SCHEMA).count() == 30


def test_an_error_in_a_cell_is_the_users_line_and_the_text():
    with Environment() as env, pytest.raises(JobExecutionError) as caught:
        env.from_arrow(pa.table({"n": [-1]})).map(slow, pa.schema([("n", pa.int64())])).collect()
    lines = caught.value._render_traceback_()
    assert len(lines) <= 15
    assert lines[0].startswith("ValueError: <b>less than nothing</b>")
    assert __file__ in lines[-2]
    assert "map(slow" in lines[-1]
    assert not any("/engine/" in line for line in lines)
