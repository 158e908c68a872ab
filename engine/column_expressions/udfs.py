"""User-defined functions of values, within expressions: ``@udf(pa.int64())``, then ``with_columns(y=twice(col("x")))``.

    scalar (default)            function(value, ...) -> value              once for each row; null is None
    arrow | pandas | numpy |    function(column, ...) -> column            once for each batch: arrays, Series, ndarrays
    polars

Held by: tests/integration/test_udfs.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.column_expressions.data_types import declared_schema
from engine.column_expressions.expression import Expr, to_expression
from engine.errors import SchemaError
from engine.expressions.literals import refuse_texts_alone
from engine.expressions.schema_bridge import type_to_ipc
from engine.functions.batch_formats import FORMATS
from engine.functions.python_functions import python_function
from engine.functions.schema_inference import hinted_type, hinted_value_type
from engine.functions.user_function import PreparedFunction
from engine.graph.expression import (
    ColumnRef,
    PythonCall,
)

if TYPE_CHECKING:
    from engine.choices import BatchFormat, UdfKind

KINDS: Final = ("scalar", *FORMATS)


class Udf:
    """A function that takes expressions. ``function`` is the plain one, for tests of it."""

    def __init__(self, function: Any, data_type: pa.DataType, kind: str, setup: Any = None) -> None:
        self.function = function
        self._called = function if setup is None else PreparedFunction(function, setup)
        self.data_type = data_type
        self._kind = kind
        # now, so that what cannot be called or sent is an error where it is written
        python_function(f"column:{kind}", function)
        python_function(f"column:{kind}", self._called)

    def __call__(self, *arguments: Any) -> Expr:
        """Return the function of some values of each row: expressions, and constants."""
        operator = python_function(f"column:{self._kind}", self._called)
        if not arguments:
            raise SchemaError(f"{operator.function_name}(): give it at least one value, such as col('a')")
        refuse_texts_alone(operator.function_name, arguments)
        fields = (operator.kind, operator.function, operator.function_name, operator.file, operator.line)
        return Expr(PythonCall(*fields, type_to_ipc(self.data_type), tuple(map(to_expression, arguments))))

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"<Udf {name} of {self.data_type}>"


def udf(returns: Any = None, *, kind: UdfKind = "scalar", batch: BatchFormat | None = None, setup: Any = None) -> Any:
    """Make a Python function usable in expressions; ``returns`` is its type: of pyarrow, or ``int`` and the like.

    Without ``returns`` the function's return type says it. kind: "scalar" is called for each row, and None is null;
    "arrow", "pandas", "polars" and "numpy" are called with whole columns and return one as long; ``batch="numpy"`` says
    the same. The order of calls is not promised, and where the result is not used it is not called.

    ``setup``: a function that is called once in each subtask, before its first row, with the context of rich functions
    if it takes an argument; what it returns, such as a model, is the first argument of each call, and is closed at the
    end if it has ``close()``. ``@udf(pa.float64(), batch="numpy", setup=lambda: load("model.bin"))``

    >>> @udf(int)
    ... def twice(value):
    ...     return None if value is None else 2 * value
    >>> values(twice(col("x")) + 1, x=[1, None])
    [3, None]
    """
    if batch is not None:
        if kind not in ("scalar", batch) or batch not in FORMATS:
            raise SchemaError(f"udf: batch={batch!r}: choose one of {', '.join(FORMATS)}, without another kind=")
        kind = batch
    if kind not in KINDS:
        raise SchemaError(f"udf: kind {kind!r} is none of {', '.join(KINDS)}")
    if setup is not None and not callable(setup):
        raise SchemaError(f"udf: setup={setup!r}: expected a function, which makes what each subtask needs once")
    data_type = returns if isinstance(returns, pa.DataType) else hinted_type(returns)
    if data_type is not None:
        plain = declared_schema(pa.schema([("returned", data_type)]), "udf").field(0).type
        return lambda function: Udf(function, plain, kind, setup)
    if returns is None:
        return lambda function: _hinted(function, kind, setup)
    if callable(returns) and not isinstance(returns, type):
        return _hinted(returns, kind, setup)
    raise SchemaError(f"udf({returns!r}): expected a pyarrow.DataType such as pa.int64(), or int, float, str, bool")


def _hinted(function: Any, kind: str, setup: Any) -> Udf:
    data_type = hinted_value_type(function) if kind == "scalar" else None
    if data_type is None:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise SchemaError(f"udf: what {name} returns is not known: @udf(pa.int64()), or a return type such as -> int")
    return Udf(function, data_type, kind, setup)


def truth_of(function: Any, names: Sequence[str]) -> Expr:
    """Return whether what a function gives for the values of some columns is true."""
    operator = python_function("filter", function)
    fields = ("column:truth", operator.function, operator.function_name, operator.file, operator.line)
    return Expr(PythonCall(*fields, type_to_ipc(pa.bool_()), tuple(map(ColumnRef, names))))
