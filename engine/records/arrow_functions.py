"""Arrow's compute functions by name, as ``pyarrow.compute`` has them, without its import.

    pc.add_checked(left, right)                       arrays, scalars and Python's values
    pc.cast(values, pa.int64())
    pc.match_substring(texts, pattern="a")            options as there

``pyarrow.compute`` writes a Python function with signature and documentation for each of Arrow's 300 when it is
imported, which takes longer than all of the optimizer's and the JobMaster's modules together. Here a function is found
in Arrow's registry when it is called for the first time. Functions that pyarrow defines in Python are its own.

Invariant: what is returned, and what is raised, is what ``pyarrow.compute`` returns and raises. But ``cast`` of a part
of an array has children of type null that are as long as the part, where Arrow's are too short or too long.

Methods of Arrow's arrays such as ``cast``, ``filter`` and ``take`` import ``pyarrow.compute``: here they are functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from engine.records.plain_scalars import scalar_of

#: functions whose names would be keywords of Python
_REGISTERED: Final = {"and_": "and", "or_": "or"}
#: functions with other parameters in pyarrow.compute than in the registry
_WRITTEN_BY_HAND: Final = frozenset({"index", "top_k_unstable", "bottom_k_unstable"})
_PLAIN: Final = frozenset({bool, int, float, str})


class ArrowFunction:
    """One function. Thread: any."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._call: Any = None
        self._arity: Any = None
        self._options_class: Any = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the function of the arguments; options follow them, or have names."""
        if self._call is None:
            self._find()
        if not options and (self._arity is Ellipsis or len(arguments) == self._arity):
            return self._call(arguments)
        if self._options_class is None:
            return self._documented(arguments, **options)
        count = len(arguments) if self._arity is Ellipsis else self._arity
        return self._call(arguments[:count], self._options_class(*arguments[count:], **options))

    def call(self, arguments: list[Any], options: Any) -> Any:
        """Return the function of the arguments with options as Arrow has them."""
        if self._call is None:
            self._find()
        return self._call(arguments, options)

    def _find(self) -> None:
        """Look the function up."""
        compute = _compute()
        try:
            if self._name in _WRITTEN_BY_HAND:
                raise KeyError(self._name)
            function = compute.function_registry().get_function(_REGISTERED.get(self._name, self._name))
        except KeyError:
            self._arity, self._call = Ellipsis, self._documented
            return
        description = getattr(function, "_doc", None)
        self._options_class = getattr(compute, getattr(description, "options_class", None) or "", None)
        self._arity, self._call = function.arity, _of_arrows_values(function.call)

    def _documented(self, arguments: Any, **options: Any) -> Any:
        return getattr(importlib.import_module("pyarrow.compute"), self._name)(*arguments, **options)


_CAST: Final = ArrowFunction("cast")


class ArrowFunctions:
    """All functions, as attributes. Thread: any."""

    def __getattr__(self, name: str) -> Any:
        """Return a function; one that does not exist raises AttributeError when it is called."""
        if name.startswith("__"):
            raise AttributeError(name)
        function = ArrowFunction(name)
        # The first one stays: functions are compared by identity.
        return self.__dict__.setdefault(name, function)

    def cast(self, values: Any, target: pa.DataType, safe: bool = True) -> Any:
        """Return the values as another type; what does not fit raises ArrowInvalid, or is rounded if not ``safe``."""
        if isinstance(values, pa.Array) and values.type.num_fields:
            if values.type.equals(target):
                return values
            if _has_untyped(target):
                values = pa.concat_arrays([values])  # Arrow's cast gives children of type null the length of the whole
        compute = _compute()
        options = compute.CastOptions.safe(target) if safe else compute.CastOptions.unsafe(target)
        return _CAST.call([values], options)

    def random(self, count: int, initializer: int) -> Any:
        """Return numbers from 0 up to 1 that follow from the initializer."""
        compute = _compute()
        return compute.call_function("random", [], compute.RandomOptions(initializer=initializer), length=count)

    def fill_null(self, values: Any, value: Any) -> Any:
        """Return the values with another one in place of nulls."""
        return self.coalesce(values, value if isinstance(value, pa.Scalar) else scalar_of(value, values.type))


def _has_untyped(data_type: pa.DataType) -> bool:
    """Return whether a type is null or has it inside."""
    return pa.types.is_null(data_type) or any(
        _has_untyped(data_type.field(index).type) for index in range(data_type.num_fields)
    )


def _of_arrows_values(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call whose plain arguments are made scalars here: Arrow would look whether they are of pandas."""

    def called(arguments: Sequence[Any], options: Any = None) -> Any:
        if not _PLAIN.isdisjoint(map(type, arguments)):
            arguments = [scalar_of(one) if type(one) in _PLAIN else one for one in arguments]
        return call(arguments, options)

    return called


@cache
def _compute() -> Any:
    try:
        return importlib.import_module("pyarrow._compute")
    except ImportError:  # where pyarrow has it elsewhere, its public module has the same names
        return importlib.import_module("pyarrow.compute")


pc: Final = ArrowFunctions()
