"""A user's function as bytes that keep the names of the files its code comes from.

    packed(function) ─► bytes by cloudpickle, in which a code object is _code_of_file(file, arguments of CodeType)

cloudpickle writes ``<dynamic-code>`` in place of the file from 3.1.3 on, so that equal functions have equal bytes.
Errors name the line in the user's file, and debuggers show it, so the name has to travel. ``cloudpickle.loads`` opens
the bytes wherever the engine is installed.
"""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

_reduced_by_cloudpickle: Callable[[CodeType], tuple[Any, ...]] = cloudpickle.Pickler.dispatch_table[CodeType]


def _code_of_file(file: str, arguments: tuple[Any, ...]) -> CodeType:
    return CodeType(*arguments).replace(co_filename=file)


def _reduced_code(code: CodeType) -> tuple[Any, ...]:
    return _code_of_file, (code.co_filename, _reduced_by_cloudpickle(code)[1])


class _FunctionPickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    dispatch_table: ClassVar = ChainMap({CodeType: _reduced_code}, cloudpickle.Pickler.dispatch_table)


def packed(function: Any) -> bytes:
    """Return a function, or an object with one, as bytes.

    Raises: what its pickling raises.
    """
    data = io.BytesIO()
    _FunctionPickler(data).dump(function)
    return data.getvalue()
