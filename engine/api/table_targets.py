"""Tables that ``merge_into`` and ``env.optimize`` change, by their places.

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

import os

from engine.formats.table_target import TableTarget


def delta(path: str | os.PathLike[str]) -> TableTarget:
    """Return the Delta table of a folder, as the target of ``merge_into`` and ``env.optimize``."""
    from engine.delta_tables.delta_version import DeltaTable

    return DeltaTable(os.fspath(path))
