"""The state of a database of PostgreSQL in which all tasks of a job read it: a snapshot that its JobMaster exports.

    JobMaster    held_postgresql(...) ─► HeldState       a transaction that stays open until the job has read all
    tasks        enter(cursor, name)                     the first statements of a transaction

Held by: tests/databases/test_held_states.py
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from engine.databases.database_connection import POSTGRESQL, DatabaseLostError, open_connection, told
from engine.databases.database_queries import text_literal
from engine.databases.written_queries import UNHURRIED, rows_of
from engine.errors import DataError
from engine.formats.source_format import HeldState

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcCursor

_log = logging.getLogger(__name__)

_UNCHANGED: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_EXPORT: Final = "SELECT pg_export_snapshot()"


def held_postgresql(uri: str, *, has_password: bool) -> HeldState | None:
    """Hold the present state of a database; None where its server has no snapshots that are shared."""
    connection = open_connection(uri, has_password=has_password, in_transaction=True)
    try:
        with told(uri), connection.cursor() as cursor:
            for statement in (_UNCHANGED, *UNHURRIED):
                cursor.execute(statement)
            return HeldState(rows_of(cursor, _EXPORT)[0][0], connection.close)
    except DataError as error:
        connection.close()
        _log.warning("ranges of one table may be read in different states, since the server holds none: %s", error)
        return None
    except BaseException:
        connection.close()
        raise


def enter(cursor: AdbcCursor, uri: str, name: str) -> None:
    """Let a transaction, which has done nothing yet, see a state that is held."""
    try:
        with told(uri):
            for statement in (_UNCHANGED, *UNHURRIED, f"SET TRANSACTION SNAPSHOT {text_literal(name, POSTGRESQL)}"):
                cursor.execute(statement)
    except DataError as error:
        # Of a former leader; the next attempt is told the name of the state that its own leader holds.
        raise DatabaseLostError(f"{error}; the state in which the job reads the database is held no longer") from None
