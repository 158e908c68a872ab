"""The change data feed of a table: rows that its versions changed.

    changed_rows(place, since) -> pa.RecordBatchReader

The library makes it of files of changes, and of those that versions added and removed.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.delta_tables.library import told
from engine.delta_tables.table_log import open_table
from engine.errors import ConfigurationError, NotYetSupportedError

_CALL = "read_changes"


def changed_rows(place: str, since: int) -> pa.RecordBatchReader:
    """Return the changed rows from a version on. Raises: PlanError, ConfigurationError, NotYetSupportedError."""
    if isinstance(since, bool) or not isinstance(since, int) or since < 0:
        raise ConfigurationError(f"{_CALL}: since={since!r}: it is the number of a version")
    table = open_table(place, None, _CALL)
    if table.metadata().configuration.get("delta.enableChangeDataFeed") != "true":
        raise NotYetSupportedError(
            f"{_CALL}({place!r}): the changes of a table without a change data feed; set its property"
            " delta.enableChangeDataFeed to 'true' before the versions that are wanted"
        )
    with told(_CALL, place):
        return pa.RecordBatchReader.from_stream(table.load_cdf(starting_version=since))
