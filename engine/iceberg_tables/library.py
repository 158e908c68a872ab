"""The libraries of the extra ``iceberg``, loaded where a table is read or written.

    require("read_iceberg")      pyiceberg is there, in a version whose plans leave out no file that has rows

Held by: tests/iceberg_tables/test_read_iceberg.py
Held by: tests/memory/test_library_bytes.py
"""

from __future__ import annotations

import re
from typing import Final

from engine.errors import ConfigurationError

#: bytes that pyiceberg and what it brings take once a table has been written and read
PYICEBERG_BYTES: Final = 60 << 20
_VERSION_MIN: Final = (0, 12)
_ADVICE: Final = "install it: pip install 'drey-engine[iceberg]'"


def require(call: str) -> None:
    """Raise ConfigurationError where pyiceberg is missing, or too old."""
    try:
        import pyiceberg
    except ImportError:
        raise ConfigurationError(f"{call} without the package pyiceberg; {_ADVICE}") from None
    if tuple(map(int, re.findall(r"\d+", pyiceberg.__version__)[:2])) < _VERSION_MIN:
        raise ConfigurationError(
            f"{call} with pyiceberg {pyiceberg.__version__}, which leaves out files that have rows; it must be 0.12 or"
            f" newer: {_ADVICE}"
        )
