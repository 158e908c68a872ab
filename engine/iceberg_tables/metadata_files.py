"""The metadata files of a table in its folder: v3.metadata.json, or 00003-<uuid>.metadata.json.

    newest_metadata("/lake/sales/orders") -> ".../metadata/v3.metadata.json"

Held by: tests/iceberg_tables/test_folder_catalog.py
"""

from __future__ import annotations

import re
from typing import Final

from engine.storage.file_systems import LOCAL, file_system_of, is_folder

METADATA: Final = "metadata"
HINT: Final = "version-hint.text"
_VERSION: Final = re.compile(r"v?(\d+)(?:-.*)?\.(?:gz\.)?metadata\.json\Z")


def newest_metadata(folder: str) -> str | None:
    """Return the metadata file of the newest version in a table's folder, None where it has none."""
    place = f"{folder}/{METADATA}"
    if not is_folder(place) and file_system_of(place) is LOCAL:
        return None
    found = [
        (int(version[1]), entry.path)
        for entry in file_system_of(place).entries(place)
        if (version := _VERSION.match(entry.name))
    ]
    return max(found)[1] if found else None
