"""Files of ``--py-files``: those in object stores are fetched, with the settings of the command line, for this process.

Held by: tests/cli/test_py_files.py
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.config.loader import load_configuration
from engine.errors import ConfigurationError, PlanError
from engine.private_folder import scratch_folder
from engine.storage.file_systems import LOCAL, file_system_of
from engine.storage.store_client import use_store_settings


def local_py_files(entries: Sequence[str]) -> tuple[str, ...]:
    """Return paths of this machine; ConfigurationError for an object that cannot be read."""
    if all(file_system_of(entry) is LOCAL for entry in entries):
        return tuple(entries)
    use_store_settings(load_configuration().storage_texts())
    folder = tempfile.TemporaryDirectory(prefix="drey-modules-", dir=scratch_folder())
    atexit.register(folder.cleanup)
    return tuple(
        entry if file_system_of(entry) is LOCAL else _fetched(entry, Path(folder.name) / str(index))
        for index, entry in enumerate(entries)
    )


def _fetched(url: str, folder: Path) -> str:
    """Return a copy of an object under its own name."""
    try:
        content = file_system_of(url).read(url)
    except (OSError, PlanError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigurationError(f"--py-files: {url} cannot be read: {reason}") from None
    folder.mkdir()
    copy = folder / url.rpartition("/")[2]
    copy.write_bytes(content)
    return os.fspath(copy)
