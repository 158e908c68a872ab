"""Folders in which others work while a test looks."""

import os
from pathlib import Path


def files_below(folder):
    """Return all files below a folder, sorted; what goes while it is looked for is not there (rglob would fail)."""
    return sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
