"""The names of ``drey.spark``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.spark import *
