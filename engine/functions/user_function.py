"""User functions: plain callables and rich functions, and the context of the latter.

    function_of("map", value)       the callable of a kind: the value itself, or its method of that name
    open_function(value, context, runner)   ``value.open(context)`` where there is one   close_function(value, runner)

A rich function is an object with a method named like the kind (``map``, ``flat_map``, ``filter``, ``map_batches``,
``map_partition``, ``reduce``, ``co_group``) or that can be called, and, each of them optional, ``open(context)`` and
``close()``. ``open`` runs once in each subtask before its first row, ``close`` after its last one, also when the
function failed; not when its process dies or is killed by a cancel. Each subtask has a copy of its own. Both may be
``async``: they are awaited, in the event loop that the calls of an async function are made in, too.

The context says which subtask this is and how many there are, holds the rows of broadcast data sets, and counts:

    class Label:
        def open(self, context):
            self.names = {row.id: row.name for row in context.broadcast("names")}
            self.unknown = context.counter("unknown")

        def map(self, row):
            if row.id not in self.names:
                self.unknown.add()
            return row.id, self.names.get(row.id)

    data.map(Label(), schema).with_broadcast(names=names)

Source: Flink's RichFunction and RuntimeContext.
Held by: tests/integration/test_rich_functions.py
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.functions.row import Row, rows_of

if TYPE_CHECKING:
    import asyncio

#: methods that an object may have in place of ``__call__``, named like the calls (``partition``: partition_custom)
METHODS: Final = ("map", "flat_map", "filter", "map_batches", "map_partition", "reduce", "co_group", "partition")


class Counter:
    """A number that a function adds to; the job's result has its sum over all subtasks."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, count: int = 1) -> None:
        """Add to the counter."""
        self.value += count

    inc = add


class FunctionContext:
    """The context that ``open`` gives a rich function."""

    def __init__(
        self, subtask_index: int = 0, parallelism: int = 1, broadcasts: Mapping[str, pa.Table] | None = None
    ) -> None:
        #: index of the subtask, 0 to ``parallelism`` - 1
        self.subtask_index = subtask_index
        self.parallelism = parallelism
        self._tables = dict(broadcasts or {})
        self._rows: dict[str, list[Row]] = {}
        self._counters: dict[str, Counter] = {}

    def broadcast(self, name: str) -> list[Row]:
        """Return all rows of the broadcast data set of that name; the same list at every call."""
        if name not in self._tables:
            known = ", ".join(self._tables) or "none"
            raise KeyError(
                f"no broadcast data set {name!r}; there are: {known}; add it with .with_broadcast({name}=...)"
            )
        if name not in self._rows:
            self._rows[name] = [row for batch in self._tables[name].to_batches() for row in rows_of(batch)]
        return self._rows[name]

    def counter(self, name: str) -> Counter:
        """Return the counter of that name, the same at every call."""
        return self._counters.setdefault(name, Counter())

    def counts(self) -> dict[str, int]:
        """Return the values of the counters."""
        return {name: counter.value for name, counter in self._counters.items()}


class PreparedFunction:
    """A function whose first argument is made by another one, once in each subtask: a model, a client."""

    def __init__(self, function: Callable[..., Any], setup: Callable[..., Any]) -> None:
        self.function = function
        self._setup = setup
        self._made: Any = None

    def open(self, context: FunctionContext) -> Any:
        """Make it; the function that does may be ``async``, and may take the context."""
        try:
            takes_context = bool(inspect.signature(self._setup).parameters)
        except ValueError:  # of some that are written in C nothing is known
            takes_context = False
        made = self._setup(context) if takes_context else self._setup()
        if inspect.isawaitable(made):
            return self._await(made)
        self._made = made
        return None

    async def _await(self, made: Awaitable[Any]) -> None:
        self._made = await made

    def __call__(self, *values: Any) -> Any:
        """Return the result of the function for what was made, and some values."""
        return self.function(self._made, *values)

    def close(self) -> Any:
        """Close what was made, if it can be closed."""
        made, self._made = self._made, None
        return made.close() if callable(getattr(made, "close", None)) else None


def function_of(kind: str, value: Any) -> Callable[..., Any] | None:
    """Return the callable for a kind, or None when the value has none."""
    name = kind.partition(":")[0]
    if inspect.isroutine(value) or isinstance(value, partial):
        return value
    method = getattr(value, name, None) if name in METHODS else None
    if callable(method):
        return None if inspect.isclass(value) else method
    return value if callable(value) else None


def is_rich(value: Any) -> bool:
    """Return whether a value is an object that is opened or closed."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return False
    return callable(getattr(value, "open", None)) or callable(getattr(value, "close", None))


def open_function(value: Any, context: FunctionContext, runner: asyncio.Runner) -> None:
    """Call ``open(context)`` of a rich function; what has to be awaited is, by the runner."""
    if is_rich(value) and callable(getattr(value, "open", None)):
        _settle(value.open(context), runner)


def close_function(value: Any, runner: asyncio.Runner) -> None:
    """Call ``close()`` of a rich function, in the same way."""
    if is_rich(value) and callable(getattr(value, "close", None)):
        _settle(value.close(), runner)


def _settle(result: Any, runner: asyncio.Runner) -> None:
    if inspect.isawaitable(result):
        runner.run(_awaited(result))


async def _awaited(result: Awaitable[Any]) -> None:
    await result
