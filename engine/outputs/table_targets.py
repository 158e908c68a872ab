"""Tables that ``merge_into`` and ``env.optimize`` change, by their places.

Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

import os
from typing import Any

from engine.files.store_access import GivenOptions
from engine.formats.table_target import TableTarget
from engine.storage.store_options import StorageOptions


def iceberg(table: str, catalog: Any = None, storage_options: StorageOptions = None) -> TableTarget:
    """Return a table of Iceberg, by its name in a catalog, as the target of ``merge_into`` and ``env.optimize``.

    ``catalog`` and ``storage_options``: as of ``read_iceberg``.
    """
    from engine.outputs.iceberg_version import IcebergTable

    return IcebergTable(table, catalog, GivenOptions(storage_options))


def delta(path: str | os.PathLike[str], storage_options: StorageOptions = None) -> TableTarget:
    """Return the Delta table of a folder, as the target of ``merge_into`` and ``env.optimize``.

    ``storage_options``: as of ``read_delta``.
    """
    from engine.delta_tables.delta_version import DeltaTable

    return DeltaTable(os.fspath(path), GivenOptions(storage_options))
