"""What notebooks show: escaped, whole, and without running anything."""

import sys
import types

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.api.results import format_table
from engine.errors import PlanError
from engine.shown_html import folded_html, table_html


def test_values_are_escaped():
    assert "<b>&lt;script&gt;</b>" not in table_html(("<script>",), [("<script>",)])
    assert table_html(("a",), [("<i>",)]).count("&lt;i&gt;") == 1
    numbers = table_html((), [("a", 1)], numbers=(1,))
    assert numbers == '<table><tr><td style="text-align:left">a</td><td style="text-align:right">1</td></tr></table>'
    assert folded_html("<t>", "x < y\n\x1b[31m").count("\\x1b[31m") == 1
    assert "x &lt; y" in folded_html("t", "x < y")


def test_a_data_set_shows_columns_and_plan_and_runs_nothing(monkeypatch):
    with Environment() as env:
        data = env.from_arrow(pa.table({"k<": [1], "t": ["a"]})).filter(col("t") == "a")
        monkeypatch.setattr(env, "run_to_table", None)
        shown = data._repr_html_()
    assert "k&lt;" in shown
    assert "int64" in shown
    assert "filter" in shown.lower()


def test_rows_are_shown_as_a_table_in_a_notebook(monkeypatch, capsys):
    displays = []
    package = types.ModuleType("IPython")
    package.display = types.ModuleType("IPython.display")
    package.display.HTML, package.display.display = str, lambda html, display_id: displays.append(html)
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    table = pa.table({"<n>": [1, None, 3], "t": ["<script>", None, "null"], "l": [["<i>"], None, []]})
    with Environment() as env:
        env.from_arrow(table).show(2)
    (shown,) = [html for html in displays if "script" in html]  # a job that takes long shows its progress, too
    assert capsys.readouterr().out == ""
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "[&#x27;&lt;i&gt;&#x27;]" in shown
    assert "&lt;n&gt;<br><small>int64</small>" in shown
    assert shown.count("<i>null</i>") == 3
    assert "only the first rows are shown" in shown


def test_letters_of_two_places_keep_columns_apart():
    lines = format_table(pa.table({"t": ["日本", "e\u0301", "abcdef"], "n": [1, 2, 3]}), 3).splitlines()
    assert lines[3:6] == ["日本   |     1", "e\u0301      |     2", "abcdef |     3"]


def test_a_plan_can_be_asked_for_as_html():
    with Environment() as env:
        data = env.from_arrow(pa.table({"k": [1]}))
        assert data.explain(format="html").startswith("<details open>")
        assert "rows" in data.explain(analyze=True, format="html")
        with pytest.raises(PlanError, match="choose text, html"):
            data.explain(format="xml")


def test_the_result_of_a_job_shows_its_vertices(tmp_path):
    with Environment() as env:
        env.from_arrow(pa.table({"k": [1, 2]})).write_csv(tmp_path / "out")
        shown = env.execute()._repr_html_()
    assert "<td" in shown
    assert "FINISHED" in shown
    assert "report" in shown
