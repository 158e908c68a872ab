"""Folders that are made for an output, and go again where nothing comes of it.

    made = make_missing(target.parent) ─► ... ─► remove_empty(made)

Held by: tests/commit/test_publish.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def make_missing(folder: Path) -> tuple[str, ...]:
    """Make a folder and those above it; return those that were missing, innermost first.

    Raises: OSError; what was made is gone then.
    """
    missing: list[Path] = []
    for each in (folder, *folder.parents):
        if each.exists():  # what is no folder is told by the first one below it
            break
        missing.append(each)
    names = tuple(map(str, missing))
    try:
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
    except OSError:
        remove_empty(names)
        raise
    return names


def remove_empty(folders: Sequence[str]) -> None:
    """Remove folders, innermost first, up to one in which something is."""
    for folder in folders:
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return
