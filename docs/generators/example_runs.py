"""What an example reads, prints and plans, as its page shows it: the example is run with an environment that watches.

shown_run("sessions") -> the sections "Input", "Output" and "Plan", in Markdown; of several jobs the longest plan

Held by: tests/docs/test_example_pages.py
"""

from __future__ import annotations

import contextlib
import importlib
import io
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from engine import DataSet, Environment
from engine.examples.generate_instruments import generate

#: folder of the sources: functions of a plan are told with their files
_ROOT = Path(__file__).resolve().parents[2]
#: rows of each input that a page shows
_ROWS = 5


def shown_run(name: str) -> str:
    """Run an example, and return the sections of its page that show what happened."""
    module = importlib.import_module(f"engine.examples.{name}")
    inputs: list[str] = []
    plans: list[str] = []
    output = io.StringIO()

    class Watching(Environment):
        """An environment that keeps the first rows of inputs, and the plans of jobs."""

        def _watched(self, data: DataSet) -> DataSet:
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                data.show(_ROWS)
            inputs.append(shown.getvalue())
            plans.clear()
            return data

        def from_arrow(self, data: Any, *words: Any, **options: Any) -> DataSet:
            """Keep the first rows of a table."""
            return self._watched(super().from_arrow(data, *words, **options))

        def read_text(self, *words: Any, **options: Any) -> DataSet:
            """Keep the first lines of files."""
            return self._watched(super().read_text(*words, **options))

        def read_csv(self, *words: Any, **options: Any) -> DataSet:
            """Keep the first rows of files."""
            return self._watched(super().read_csv(*words, **options))

        def run_to_table(self, node: Any) -> Any:
            """Keep the plan of a result."""
            plans.append(self.explain_node(node))
            return super().run_to_table(node)

        def execute(self, name: str | None = None) -> Any:
            """Keep the plans of outputs."""
            plans.extend(self.explain_node(sink.inputs[0]) for sink in self._sinks)
            return super().execute(name)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(module, "Environment", Watching):
        with contextlib.redirect_stdout(output):
            if name == "skew_join":
                generate(10_000, Path(folder) / "DIR")
                module.main(["--input", f"{folder}/DIR", "--out", f"{folder}/RESULT"])
                with Environment() as env:
                    env.read_csv(f"{folder}/RESULT/").show(_ROWS)
            elif name in ("access_log", "word_count"):
                module.main([])
            else:
                module.main()
        texts = {"Input": "\n".join(inputs), "Output": output.getvalue(), "Plan": max(plans, key=len)}
    sections = "\n\n".join(f"## {title}\n\n```text\n{text.rstrip()}\n```" for title, text in texts.items())
    return sections.replace(f"{folder}/", "").replace(f"{_ROOT}/", "")
