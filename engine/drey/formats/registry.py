"""The names of ``drey.formats.registry``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.formats.registry import *
