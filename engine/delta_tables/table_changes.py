"""The change data feed of a table: rows that its versions changed.

    changed_rows(place, since) -> pa.RecordBatchReader

The library makes it of files of changes, and of those that versions added and removed. It does so as if these had no
deletion vectors, so that a version which tells nothing but such files is refused. So is one with a file whose path has
characters that the library escapes once more, such as the `%` of an escaped partition: it would not find it.

Held by: tests/delta_tables/test_change_data.py
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa

from engine.delta_tables.library import told
from engine.delta_tables.log_actions import version_actions
from engine.delta_tables.table_log import open_table
from engine.errors import ConfigurationError, NotYetSupportedError, PlanError

_CALL: Final = "read_changes"
#: a character of a path within the table that the library escapes when it reads changes
_ESCAPED: Final = re.compile(r"""[^ -~]|[%*?\\"`<>\[\]{}^|~#]""")


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
    _check_files(place, since, table.version())
    with told(_CALL, place):
        return pa.RecordBatchReader.from_stream(table.load_cdf(starting_version=since))


def _check_files(place: str, since: int, last: int) -> None:
    """Raise NotYetSupportedError for a version whose changes are in files that the library does not read rightly."""
    for version in range(since, last + 1):
        try:
            actions = list(version_actions(place, version))
        except FileNotFoundError:
            continue  # the library says of it that it is gone
        files = _changed_files(actions)
        for path in (unquote(file["path"]) for file in files):
            if _ESCAPED.search(path):
                raise NotYetSupportedError(
                    f"{_CALL}({place!r}): version {version} changes the file {path!r}, and reading changes of"
                    " files whose paths have escaped characters, as in values of partitions; compare two versions by"
                    f" read_delta(..., version=...), or begin behind it, since={version + 1}"
                )
        if any(file.get("deletionVector") for file in files):
            raise NotYetSupportedError(
                f"{_CALL}({place!r}): version {version} changes files with deletion vectors and has no files of"
                " changes, which"
            )


def _changed_files(actions: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the files of a version that the library reads: those of changes, where there are any."""
    changes = [action for kind, action in actions if kind == "cdc"]
    return changes or [
        action for kind, action in actions if kind in ("add", "remove") and action.get("dataChange", True)
    ]
