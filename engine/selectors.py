"""Selectors for programs: ``import drey.selectors as cs``, then ``data.select(cs.numeric())``.

Held by: tests/integration/test_selectors.py
"""

from engine.column_expressions.selectors import *  # noqa: F403 - the same names
from engine.column_expressions.selectors import __all__  # noqa: F401 - as they are
