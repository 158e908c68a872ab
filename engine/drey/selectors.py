"""The names of ``drey.selectors``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.selectors import *
