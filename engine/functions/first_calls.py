"""First calls: a function is called with the first rows of its input, and what it returns is looked at in the worker.

    map, flat_map ──► a map_partition in its stead: row ──► function ──► all results ──► observer.result ──► one row
    map_partition, reduce ──► the same with all first rows, or with the groups of them: what a function returns for a
                              part of a group has the types of what it returns for the whole

It runs as every function does, so what it prints, what it needs and what it does for very long (``long_calls.py``) is
as in the job itself. The client's process calls no function of the user.

Invariant: the user's function has the frame right above ``_results``, whose variable ``row`` is the current row.

Held by: tests/integration/test_schema_inference.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import cloudpickle
import msgspec
import pyarrow as pa

from engine.errors import SchemaError
from engine.functions.function_error import FunctionPlace, UserFunctionError, describe_row
from engine.functions.row import Row
from engine.functions.user_function import function_of
from engine.graph.operator_descriptor import PythonOperator
from engine.graph.plan import PythonFunction

#: limit of rows that a function is called with, and of results that are examined
FIRST_ROWS: Final = 100
#: kinds of functions that are called with first rows
KINDS: Final = frozenset({"map", "flat_map", "map_partition", "reduce"})
RESULT_SCHEMA: Final = pa.schema([("result", pa.binary()), ("row_count", pa.int64()), ("error", pa.string())])


class Observer(Protocol):
    """Makes something of results; pickled, and used in the worker."""

    def result(self, made: list[Any]) -> bytes:
        """Return the schema that the results have; SchemaError where they show none."""
        ...

    def error(self, failure: UserFunctionError) -> str:
        """Return the text shown where the function failed."""
        ...


def first_calls(function: PythonFunction, observer: Observer) -> PythonFunction:
    """Return a function that calls one of KINDS with first rows: one row of RESULT_SCHEMA, none without input.

    ``arguments`` of a reduce are the columns by which rows are groups.
    """
    calls = cloudpickle.dumps(_FirstCalls(function, observer))
    arguments = () if function.kind == "reduce" else function.arguments  # others see no more than these
    return msgspec.structs.replace(function, kind="map_partition", function=calls, arguments=arguments, policy=None)


class _FirstCalls:
    """The map_partition: unpickles the function where it runs."""

    def __init__(self, function: PythonFunction, observer: Observer) -> None:
        self._operator = function
        self._observer = observer
        #: failure for one row, which is ignored if others show the schema
        self._failure: UserFunctionError | None = None

    def __call__(self, rows: Iterator[Row]) -> Iterator[tuple[bytes, int, str]]:
        own = self._operator
        function = function_of(own.kind, cloudpickle.loads(own.function))
        assert function is not None, "the client checked it"
        counted = _Counted(rows)
        try:
            made = list(islice(self._results(function, counted), FIRST_ROWS))
            for _ in counted:
                pass
            if not made and self._failure is not None:
                raise self._failure
            if counted.count:
                yield self._observer.result(made), counted.count, ""
        except UserFunctionError as failure:
            yield b"", counted.count, self._observer.error(failure)
        except SchemaError as unfit:
            yield b"", counted.count, str(unfit)

    def _results(self, function: Callable[..., Any], rows: Iterator[Row]) -> Iterator[Any]:
        own = self._operator
        place = FunctionPlace(PythonOperator(own.kind, b"", own.function_name, own.file, own.line))
        for row, given in self._calls(rows):
            try:
                if own.kind == "map":
                    yield function(*given)
                else:
                    yield from function(*given)
            except Exception as error:
                self._failure = place.error(error, describe_row(row))
                if own.policy is None or own.policy.on_error == "fail":
                    raise self._failure from error

    def _calls(self, rows: Iterator[Row]) -> Iterator[tuple[Row, Sequence[Any]]]:
        """Yield the arguments of each call, and the current row: the first one of a group."""
        own = self._operator
        if own.kind in ("map", "flat_map"):
            for row in rows:
                yield row, [row[name] for name in own.arguments] if own.arguments else [row]
            return
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in own.arguments), []).append(row)
        for group in groups.values():
            yield group[0], [iter(group)]


class _Counted:
    """An iterator that counts."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        self.count += 1
        return row
