"""What this program answers where Flink's clients ask for a version.

Held by: tests/rest/test_descriptions.py
"""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """Return the version of the installed package."""
    try:
        return metadata.version("drey-engine")
    except metadata.PackageNotFoundError:
        return "unknown"
