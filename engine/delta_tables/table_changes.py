"""The change data feed of a table: rows that its versions changed.

    changed_rows(place, since) -> pa.RecordBatchReader

The library makes it of files of changes, and of those that versions added and removed. It does so as if these had no
deletion vectors, so that a version which tells nothing but such files is refused.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.delta_tables.library import told
from engine.delta_tables.log_actions import version_actions
from engine.delta_tables.table_log import open_table
from engine.errors import ConfigurationError, NotYetSupportedError, PlanError

_CALL = "read_changes"


def changed_rows(place: str, since: int) -> pa.RecordBatchReader:
    """Return the changed rows from a version on. Raises: PlanError, ConfigurationError, NotYetSupportedError."""
    if isinstance(since, bool) or not isinstance(since, int) or since < 0:
        raise ConfigurationError(f"{_CALL}: since={since!r}: it is the number of a version")
    table = open_table(place, None, _CALL)
    if since > table.version():
        raise PlanError(f"{_CALL}({place!r}): there is no version {since}; the last one is {table.version()}")
    if table.metadata().configuration.get("delta.enableChangeDataFeed") != "true":
        raise NotYetSupportedError(
            f"{_CALL}({place!r}): the changes of a table without a change data feed; set its property"
            " delta.enableChangeDataFeed to 'true' before the versions that are wanted"
        )
    _check_vectors(place, since, table.version())
    with told(_CALL, place):
        return pa.RecordBatchReader.from_stream(table.load_cdf(starting_version=since))


def _check_vectors(place: str, since: int, last: int) -> None:
    """Raise NotYetSupportedError for a version whose changes are those of files with deletion vectors."""
    for version in range(since, last + 1):
        try:
            actions = list(version_actions(place, version))
        except FileNotFoundError:
            continue  # the library says of it that it is gone
        if any(kind == "cdc" for kind, _ in actions):
            continue
        if any(
            kind in ("add", "remove") and action.get("deletionVector") and action.get("dataChange", True)
            for kind, action in actions
        ):
            raise NotYetSupportedError(
                f"{_CALL}({place!r}): version {version} changes files with deletion vectors and has no files of"
                " changes, which"
            )
