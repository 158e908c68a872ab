"""Selectors for programs: ``import drey.selectors as cs``, then ``data.select(cs.numeric())``.

Held by: tests/integration/test_selectors.py
"""

from typing import NoReturn

from engine.column_expressions.other_names import selectors_error
from engine.column_expressions.selectors import *  # noqa: F403 - the same names
from engine.column_expressions.selectors import __all__


def __getattr__(name: str) -> NoReturn:
    """Raise AttributeError, which says what is written for a selector of Polars."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    raise selectors_error(name, __all__)
