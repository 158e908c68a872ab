"""Stamps of files: what differs once a file does, for what was found out about it to be used again.

    file_stamps(paths) -> (version, ...)      None: files of a store or of a server, which would be asked for each

Held by: tests/integration/test_kept_jobs.py
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from engine.storage.file_systems import LOCAL, file_system_of


def file_stamps(paths: Sequence[str]) -> tuple[Hashable, ...] | None:
    """Return the versions of files of this machine; None where one lies elsewhere. Raises OSError."""
    if any(file_system_of(path) is not LOCAL for path in paths):
        return None
    return tuple(LOCAL.status(path).version for path in paths)
