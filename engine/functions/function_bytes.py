"""A user's function as bytes that keep the names of the files its code comes from.

    packed(function) ─► bytes by cloudpickle, in which a code object is _code_of_file(file, arguments of CodeType)

cloudpickle writes ``<dynamic-code>`` in place of the file from 3.1.3 on, so that equal functions have equal bytes.
Errors name the line in the user's file, and debuggers show it, so the name has to travel. ``cloudpickle.loads`` opens
the bytes wherever the engine is installed.

cloudpickle takes functions and classes of a script by value. Some objects of the standard library that stand for a
function, or that a function of a script commonly has about it, it takes by name, which a worker does not find, or not
at all. Here they go by value, too:

    functools.lru_cache, cache           the function inside, with an empty cache
    functools.cached_property            the function, with a new lock (Python 3.11 has one in it)
    functools.singledispatch             its cache is a dictionary of weak references: what lives, again weakly
    typing.NewType, struct.Struct        what they were made from

Held by: tests/functions/test_function_bytes.py
Held by: tests/functions/test_function_forms.py
"""

from __future__ import annotations

import functools
import io
import struct
import sys
import typing
import weakref
from collections import ChainMap
from collections.abc import Callable
from operator import attrgetter
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

_reduced_by_cloudpickle: Callable[[CodeType], tuple[Any, ...]] = cloudpickle.Pickler.dispatch_table[CodeType]
#: attributes that ``lru_cache`` adds to a function
_OF_CACHES = frozenset({*functools.WRAPPER_ASSIGNMENTS, "__wrapped__", "cache_parameters"})


def _code_of_file(file: str, arguments: tuple[Any, ...]) -> CodeType:
    return CodeType(*arguments).replace(co_filename=file)


def _reduced_code(code: CodeType) -> tuple[Any, ...]:
    return _code_of_file, (code.co_filename, _reduced_by_cloudpickle(code)[1])


def _is_found_by_name(value: Any) -> bool:
    """Return whether workers find an object by its module and name: not one of the script, or of a module beside it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module not in sys.modules or module == "__main__":
        return False
    packages = [module[:end] for end in range(len(module)) if module[end] == "."]
    if not cloudpickle.list_registry_pickle_by_value().isdisjoint((*packages, module)):
        return False
    try:
        return attrgetter(name)(sys.modules[module]) is value
    except AttributeError:
        return False


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _reduced_cached(cached: Any) -> str | tuple[Any, ...]:
    if _is_found_by_name(cached):
        return str(cached.__qualname__)
    own = {name: value for name, value in vars(cached).items() if name not in _OF_CACHES}
    return _cached, (cached.__wrapped__, cached.cache_parameters()), own or None


def _property(function: Callable[[Any], Any], name: str) -> functools.cached_property[Any]:
    made = functools.cached_property(function)
    made.attrname = name
    return made


def _reduced_property(cached: functools.cached_property[Any]) -> tuple[Any, ...]:
    return _property, (cached.func, cached.attrname)


def _reduced_new_type(new_type: Any) -> str | tuple[Any, ...]:
    if _is_found_by_name(new_type):
        return str(new_type.__qualname__)
    return typing.NewType, (new_type.__qualname__, new_type.__supertype__)


def _reduced_struct(made: struct.Struct) -> tuple[Any, ...]:
    return struct.Struct, (made.format,)


def _reduced_weak(dictionary: Any) -> tuple[Any, ...]:
    return type(dictionary), (), None, None, iter(list(dictionary.items()))


_BY_VALUE: dict[Any, Callable[[Any], Any]] = {
    CodeType: _reduced_code,
    type(functools.lru_cache(len)): _reduced_cached,
    functools.cached_property: _reduced_property,
    typing.NewType: _reduced_new_type,
    struct.Struct: _reduced_struct,
    weakref.WeakKeyDictionary: _reduced_weak,
    weakref.WeakValueDictionary: _reduced_weak,
}


class _FunctionPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    dispatch_table: ClassVar = ChainMap(_BY_VALUE, cloudpickle.Pickler.dispatch_table)


def packed(function: Any) -> bytes:
    """Return a function, or an object with one, as bytes.

    Raises: what its pickling raises.
    """
    data = io.BytesIO()
    _FunctionPickler(data).dump(function)
    return data.getvalue()
