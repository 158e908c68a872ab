"""The names of ``drey.formats.sink_format``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.formats.sink_format import *
