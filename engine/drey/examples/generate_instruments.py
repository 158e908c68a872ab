"""The names of ``drey.examples.generate_instruments``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.examples.generate_instruments import *
