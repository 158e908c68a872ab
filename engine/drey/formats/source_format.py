"""The names of ``drey.formats.source_format``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.formats.source_format import *
