"""Programs that raise the errors of the API, one for each class, which the error index shows with their messages.

EXAMPLES: class -> program, whose last statement raises it      NOT_SHOWN: class -> why it has no program
shown_error("SchemaError") -> the text of the error
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from typing import Final

from engine import Environment
from engine.errors import DreyWarning, EngineError

_HEAD: Final = """
import pathlib

import pyarrow as pa

from drey import Environment, col, collect_list

env = Environment()
numbers = env.from_arrow(pa.table({"n": [1, 0]}))
"""
EXAMPLES: Final = {
    "ConfigurationError": 'Environment({"parallelism.defualt": 4})',
    "SchemaError": 'numbers.filter(col("m") > 1)',
    "PlanError": """
pathlib.Path("out").mkdir()
pathlib.Path("out/part-00000.csv").touch()
numbers.write_csv("out/")
env.execute()
""",
    "NotYetSupportedError": 'numbers.explain(format="json")',
    "DataError": """
pathlib.Path("prices.csv").write_text("1\\n2\\nx\\n")
env.read_csv("prices.csv", pa.schema([("price", pa.int64())])).collect()
""",
    "JobExecutionError": """
def inverse(row) -> tuple[int]:
    return (1 // row.n,)

numbers.map(inverse, pa.schema([("x", pa.int64())])).collect()
""",
    "MemoryBudgetError": """
small = Environment({"taskmanager.memory.managed.size": "1mb", "parallelism.default": 1})
many = small.from_arrow(pa.table({"k": [7] * 300_000, "x": range(300_000)}))
many.group_by("k").agg(all=collect_list("x")).collect()
""",
    "DreyWarning": "env.from_rows([(1, 'tea')])",
}
NOT_SHOWN: Final = {
    "EngineError": "the base of all others",
    "JobCancelledError": "a job ends with it after Ctrl-C, `flink-run job cancel` or SIGTERM",
}


def shown_error(name: str) -> str:
    """Run the program of an error in a folder of its own, and return what it raises as text."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error", DreyWarning)
        exec(compile(_HEAD, "job.py", "exec"), namespace)  # noqa: S102 - programs of this module
        try:
            exec(compile(EXAMPLES[name], "job.py", "exec"), namespace)  # noqa: S102
        except (EngineError, DreyWarning) as error:
            assert type(error).__name__ == name, error
            text = error.shown() if isinstance(error, EngineError) else f"{name}: {error}"
            return text.replace(f"{os.path.realpath(folder)}/", "").replace(f"{folder}/", "")
        finally:
            for value in namespace.values():
                if isinstance(value, Environment):
                    value.close()
    raise AssertionError(f"the program of {name} raises nothing")
