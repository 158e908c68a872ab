"""The part of the contract of DataSet that is not built: each name says so when it is called."""

from __future__ import annotations

from typing import Any, NoReturn

from engine.errors import NotYetSupportedError


class NotYetSupported:
    """Base of DataSet with the names that raise NotYetSupportedError."""

    def map_partition(self, fn: Any, schema: Any) -> NoReturn:
        """Apply a function to all rows of a subtask."""
        raise NotYetSupportedError("map_partition")

    def co_group(self, other: Any, on: Any, fn: Any, schema: Any) -> NoReturn:
        """Apply a function to the groups of two data sets."""
        raise NotYetSupportedError("co_group")

    def write_records(self, path: Any, overwrite: bool = False) -> NoReturn:
        """Write a record data set."""
        raise NotYetSupportedError("write_records")

    def write_text(self, path: Any, overwrite: bool = False) -> NoReturn:
        """Write lines."""
        raise NotYetSupportedError("write_text")
