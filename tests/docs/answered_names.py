"""Pieces of code in the answers for names of other libraries, evaluated over values of many types."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import engine
from engine import Environment, selectors
from engine.column_expressions.aggregates import Aggregate
from engine.column_expressions.expression import Expr

_TIMES = [datetime.datetime(2026, 1, 5, hour) for hour in (1, 2, 3)]
#: values of a column ``x`` or ``y``
_VALUES: dict[str, pa.Array] = {
    "integer": pa.array([1, None, 3]),
    "float": pa.array([0.5, None, 2.0]),
    "text": pa.array(["a", "b", None]),
    "bool": pa.array([True, False, None]),
    "date": pa.array([datetime.date(2026, 1, 5)] * 3),
    "time": pa.array(_TIMES),
    "length": pa.array([datetime.timedelta(days=1)] * 3),
    "zoned": pa.array(_TIMES, pa.timestamp("us", "UTC")),
    "bytes": pa.array([b"a", None, b"c"]),
    "list": pa.array([[1, 2], [], None]),
    "texts": pa.array([["a"], [], None]),
    "bools": pa.array([[True], [], None]),
    "lists": pa.array([[[1]], [], None]),
    "entries": pa.array([[{"key": "a", "value": 1}], [], None]),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"a": 1, "c": 2}, {"a": 2, "c": 1}, None]),
}
_OF_DATA = re.compile(r"\b(ds|env)\b")
_PAIRS = [
    *((kind, kind) for kind in _VALUES),
    *(("list", "integer"), ("integer", "list"), ("float", "integer"), ("text", "integer"), ("time", "integer")),
    *(("map", "integer"), ("struct", "integer")),
]
_COLUMNS: dict[str, Any] = {
    "k": ["a", "b", "a"],
    "x": [1, 2, 3],
    "y": [4, 5, None],
    "t": _TIMES,
    "n": [1, 2, 3],
    "l": [[1, 2], [], None],
    "ls": [[{"a": 1}], [], None],
    "s": [{"a": 1}, {"a": 2}, None],
    "r": [0.1, 0.2, 0.3],
    "run": [1, 1, 2],
    "is_new": [1, 0, 1],
    "x_ok": [True, False, True],
    "before": [None, 1, 2],
}


class Answers:
    """A space in which pieces of answers are evaluated."""

    def __init__(self, environment: Environment) -> None:
        def f(value: Any, *_others: Any) -> Any:
            return value

        table = pa.table(_COLUMNS)
        data = environment.from_arrow(table)
        for name in ("t", "u"):
            environment.register(name, data)
        self._space: dict[str, Any] = {name: getattr(engine, name) for name in engine.__all__}
        self._space |= {"ds": data, "other": environment.from_arrow(table.select(["k", "x", "t"])), "env": environment}
        self._space |= {"f": f, "cs": selectors, "pa": pa, "math": math, "datetime": datetime, "engine": engine}
        self._space |= {"re": re}
        typed = pa.table({**_COLUMNS, **{f"x {kind}": values for kind, values in _VALUES.items()}})
        self._typed = environment.from_arrow(typed)

    def fault(self, code: str) -> str | None:
        """Return why a piece of code is wrong: for all types of its columns, where these are not in a data set."""
        pairs = [("integer", "integer")] if _OF_DATA.search(code) else _PAIRS
        faults = [self._fault(code, *pair) for pair in pairs]
        return None if None in faults else faults[0]

    def _fault(self, code: str, one: str, other: str) -> str | None:
        names = ("x", "y") if _OF_DATA.search(code) else (f"x {one}", f"x {other}")
        x, y = map(engine.col, names)
        try:
            found = eval(code, {**self._space, "x": x, "y": y})
            if isinstance(found, Aggregate):
                found = self._typed.agg(found=found)
            elif isinstance(found, Expr) and not isinstance(found, selectors.Selector):
                found = self._typed.select(found)
            if isinstance(found, engine.DataSet):
                found.schema  # noqa: B018 - types are checked
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None


@contextlib.contextmanager
def answers(folder: Path) -> Iterator[Answers]:
    """Run pieces of code in a folder that has files ``in.csv`` and ``in.json``."""
    (folder / "in.csv").write_text("1,2\n")
    (folder / "in.json").write_text('{"a": 1}\n')
    with contextlib.chdir(folder), Environment(config={"parallelism.default": 1}) as environment:
        yield Answers(environment)
