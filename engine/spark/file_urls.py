"""Paths of this machine as Spark reads them: it takes ``* ? [ ] { }`` and the backslash for a pattern, unless escaped.

    /data/b[1]/a.parquet ─► url_to_read ─► file:///data/b…[1…]/a.parquet    … is a backslash; only to read: what is
                                                                           written is no pattern

Files whose names begin with ``_`` or ``.`` it leaves out without a word, also when they are asked for by name.

Held by: tests/spark/test_file_urls.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")


def url_to_read(path: str | os.PathLike[str]) -> str:
    """Return the URL under which Spark reads this file or folder and no other."""
    escaped = _PATTERN.sub(r"\\\g<0>", os.fspath(path))
    return f"file://{escaped}"


def is_pattern(path: str) -> bool:
    """Return whether Spark would look for files that match a path."""
    return _PATTERN.search(path) is not None


def is_left_out(path: str) -> bool:
    """Return whether Spark does not read a file, for its name."""
    name = Path(path).name
    return name.startswith(("_", ".")) or name.endswith("._COPYING_")
