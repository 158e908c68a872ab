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

    def replicated(self) -> NoReturn:
        """Read the source in every subtask."""
        raise NotYetSupportedError("replicated")

    def shuffle(self) -> NoReturn:
        """Spread rows at random."""
        raise NotYetSupportedError("shuffle")

    def rebalance(self) -> NoReturn:
        """Spread rows in turn."""
        raise NotYetSupportedError("rebalance")

    def rescale(self) -> NoReturn:
        """Spread rows in turn within groups of subtasks."""
        raise NotYetSupportedError("rescale")

    def broadcast(self) -> NoReturn:
        """Send every row to every subtask."""
        raise NotYetSupportedError("broadcast")

    def global_(self) -> NoReturn:
        """Send every row to the first subtask."""
        raise NotYetSupportedError("global_")

    def forward(self) -> NoReturn:
        """Keep rows in their subtask."""
        raise NotYetSupportedError("forward")

    def key_by(self, *keys: Any) -> NoReturn:
        """Partition by key groups."""
        raise NotYetSupportedError("key_by")

    def partition_by_range(self, *keys: Any) -> NoReturn:
        """Partition by ranges of keys."""
        raise NotYetSupportedError("partition_by_range")

    def partition_custom(self, fn: Any, *keys: Any) -> NoReturn:
        """Partition by a function of the keys."""
        raise NotYetSupportedError("partition_custom")

    def write_records(self, path: Any, overwrite: bool = False) -> NoReturn:
        """Write a record data set."""
        raise NotYetSupportedError("write_records")

    def write_text(self, path: Any, overwrite: bool = False) -> NoReturn:
        """Write lines."""
        raise NotYetSupportedError("write_text")
