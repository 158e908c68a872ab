"""The names of ``drey.errors``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.errors import *
