"""Python functions of a script as opaque bytes of the plan, with the place they come from.

    python_function("map", fn) -> PythonFunction(kind, bytes, name, file, line)

The bytes are cloudpickle's. Functions of the script itself and of modules that lie beside it travel by value, so
workers need not find these; installed modules travel by name. Nothing but a worker process opens the bytes.
"""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from engine.errors import PlanError, SchemaError
from engine.functions.function_bytes import packed
from engine.functions.user_function import METHODS, PreparedFunction, function_of
from engine.graph.call_policy import ON_ERROR, CallPolicy
from engine.graph.plan import PythonFunction
from engine.user_warnings import warn_user

_PACKAGE = __name__.partition(".")[0]
#: calls of an async function at once, where the user sets no limit
_CONCURRENCY = 16


def _is_installed(module: ModuleType) -> bool:
    """Return whether workers find a module by its name: the library's, the installed ones, this package."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == _PACKAGE:
        return True
    paths = sysconfig.get_paths()
    folders = [Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(folder in Path(file).resolve().parents for folder in folders)


@contextmanager
def _own_modules_by_value(function: Any) -> Iterator[None]:
    """Make cloudpickle take the function's module, and those of the user's that it imports, by value."""
    own = _innermost(function)
    start = sys.modules.get(getattr(own, "__module__", None) or type(own).__module__)
    registered: list[ModuleType] = []
    pending = [start] if start is not None else []
    seen: set[str] = set()
    while pending:
        module = pending.pop()
        if module.__name__ in seen or _is_installed(module):
            continue
        seen.add(module.__name__)
        if module.__name__ != "__main__":
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
        pending += _imported_by(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _imported_by(module: ModuleType) -> list[ModuleType]:
    names = {
        value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for value in list(vars(module).values())
    }
    return [sys.modules[name] for name in names if isinstance(name, str) and name in sys.modules]


def _innermost(function: Any) -> Any:
    """Return the function inside decorators and partials."""
    while True:
        if isinstance(function, PreparedFunction):
            function = function.function
        inner = inspect.unwrap(function) if inspect.isroutine(function) else function
        if not isinstance(inner, partial):
            return inner
        function = inner.func


def _place_of(function: Any) -> tuple[str, str, int]:
    """Return (name, file, line) of a function, or of the class of a callable object."""
    target = _innermost(function)
    name = getattr(target, "__qualname__", None) or type(target).__qualname__
    code = getattr(target, "__code__", None)
    if code is not None:
        return name, code.co_filename, code.co_firstlineno
    try:
        owner = type(target)
        return name, inspect.getsourcefile(owner) or "", inspect.getsourcelines(owner)[1]
    except (OSError, TypeError):
        return name, "", 0


def check_function(kind: str, function: Any) -> None:
    """Raise SchemaError when a value has nothing that can be called for a kind."""
    name = kind.partition(":")[0]
    is_rich = inspect.isclass(function) and any(hasattr(function, one) for one in (name, "open"))
    if is_rich and name in METHODS:
        raise SchemaError(f"{name}: {function.__name__} is a class; pass an instance, {function.__name__}()")
    if function_of(kind, function) is None:
        method = f", or an object with a method {name}" if name in METHODS else ""
        raise SchemaError(f"{name}: expected a function{method}, got {type(function).__name__}")


def _warn_of_batches(kind: str, function: Any) -> None:
    """Warn where an object's method for batches is not called, but its ``__call__``, once for each row."""
    name = kind.partition(":")[0]
    is_by_row = kind in ("map", "flat_map", "filter", "column:scalar")
    if is_by_row and function_of(kind, function) is function and callable(getattr(function, "map_batches", None)):
        call, owner = "a udf" if name == "column" else name, type(function).__name__
        warn_user(
            f"{call} calls {owner}.__call__ with one row at a time, and never {owner}.map_batches:"
            f" data.map_batches({owner}(...), schema) calls that with whole batches; where rows are meant, call the"
            f" method {'map' if name == 'column' else name} in place of __call__"
        )


def is_async(kind: str, function: Any) -> bool:
    """Return whether calls of a function have to be awaited."""
    call = function_of(kind, function)
    plain = call if inspect.isroutine(call) or isinstance(call, partial) else type(call).__call__
    return inspect.iscoroutinefunction(plain) or (kind == "flat_map" and inspect.isasyncgenfunction(plain))


def call_policy(
    kind: str, function: Any, concurrency: int | None, retries: int, retry_delay: float, on_error: str
) -> CallPolicy | None:
    """Return the policy for calls of a function of ``map`` or ``flat_map``, None for the default.

    Raises: SchemaError for an option that does not fit the function.
    """
    check_function(kind, function)
    awaited = is_async(kind, function)
    if concurrency is not None and (not awaited or isinstance(concurrency, bool) or concurrency < 1):
        raise SchemaError(f"{kind}: concurrency={concurrency!r}: a number of calls at once, of an async function")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0 or not retry_delay >= 0:
        raise SchemaError(f"{kind}: retries={retries!r}, retry_delay={retry_delay!r}: a number of calls, and seconds")
    if on_error not in ON_ERROR:
        raise SchemaError(f"{kind}: on_error={on_error!r} is none of {', '.join(ON_ERROR)}")
    policy = CallPolicy((concurrency or _CONCURRENCY) if awaited else 0, retries, float(retry_delay), on_error)
    return None if policy == CallPolicy(retry_delay_s=policy.retry_delay_s) else policy


def python_function(kind: str, function: Any) -> PythonFunction:
    """Return a user's function as a plan's operator.

    Raises: SchemaError when there is nothing to call, PlanError when it cannot be pickled.
    """
    check_function(kind, function)
    if kind not in ("map", "flat_map") and is_async(kind, function):
        raise SchemaError(
            f"{kind.partition(':')[0]}: async functions are for map and flat_map; call asyncio.run in the function"
        )
    name, file, line = _place_of(function)
    _warn_of_batches(kind, function)
    try:
        with _own_modules_by_value(function):
            data = packed(function)
    except Exception as error:
        raise PlanError(
            f"{kind}: function {name} ({file}:{line}) cannot be sent to workers: {type(error).__name__}: {error};"
            " open files, locks and connections inside the function"
        ) from None
    return PythonFunction(kind, data, name, file, line)
