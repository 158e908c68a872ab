"""The names of ``drey.graph.source_spec``: readers of types find them here, programs in ``engine``.

Held by: tests/test_drey.py
"""

from engine.graph.source_spec import *
