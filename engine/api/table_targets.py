"""Tables that ``merge_into`` and ``env.optimize`` change, by their places.

Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

import os
from typing import Any

from engine.formats.table_target import TableTarget


def iceberg(table: str, catalog: Any = None) -> TableTarget:
    """Return a table of Iceberg, by its name in a catalog, as the target of ``merge_into`` and ``env.optimize``.

    ``catalog``: as of ``read_iceberg``.
    """
    from engine.api.iceberg_version import IcebergTable

    return IcebergTable(table, catalog)


def delta(path: str | os.PathLike[str]) -> TableTarget:
    """Return the Delta table of a folder, as the target of ``merge_into`` and ``env.optimize``."""
    from engine.delta_tables.delta_version import DeltaTable

    return DeltaTable(os.fspath(path))
