"""Uploads: tables that clients send (bulk ingest), kept in files until the server ends.

    create          the name must be free         create_append     new, or rows added
    append          it must be an upload          replace           new, in place of what was there

A table is a folder of Arrow files, one for each upload, written batch by batch: its size is that of the disk. Rows are
there for queries once all of them are, and none where the client went away before.

Held by: tests/flight_sql/test_clients.py
"""

from __future__ import annotations

import itertools
import shutil
import threading
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from engine.errors import PlanError
from engine.flight_sql.admission import GoneError
from engine.flight_sql.commands import Call, Commands
from engine.flight_sql.messages import given, request
from engine.flight_sql.tickets import check_values

_CREATES, _FAILS_IF_ABSENT = 1, 2
_FAILS, _APPENDS, _REPLACES = 1, 2, 3
_NUMBERS: Final = itertools.count(1)


class Uploads:
    """The tables that clients have sent."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._lock = threading.Lock()
        #: folder and columns of each table, by name; guarded by: self._lock
        self._tables: dict[str, tuple[Path, pa.Schema]] = {}

    def take(self, message: Any, reader: flight.MetadataRecordBatchReader, call: Call) -> int:
        """Take a table; return its rows. Raises: EngineError."""
        self._commands.check_change(call)
        name = message.table
        if (given(message, "catalog") or "drey", given(message, "schema") or "main") != ("drey", "main"):
            raise PlanError(f"flight sql: the table {name} is for drey.main; others take MERGE and COPY")
        options = request("TableDefinitionOptions", message.table_definition_options)
        self._check(name, options, reader.schema)
        environment = self._commands.session.environment
        file = environment.temporary_folder() / f"upload-{next(_NUMBERS)}.arrow"
        try:
            rows = _written(file, reader, call)
            with self._lock:
                self._check(name, options, reader.schema)
                self._keep(name, options, file, reader.schema)
        finally:
            file.unlink(missing_ok=True)
        return rows

    def _keep(self, name: str, options: Any, file: Path, schema: pa.Schema) -> None:
        environment = self._commands.session.environment
        adds = name in environment.tables and options.if_exists == _APPENDS
        folder = self._tables[name][0] if adds else file.with_name(f"{file.stem}-table")
        folder.mkdir(exist_ok=True)
        file.rename(folder / file.name)
        former = None if adds else self._tables.get(name)
        self._tables[name] = (folder, schema)
        environment.register(name, environment.read_ipc(str(folder)))
        if former is not None and not adds:
            shutil.rmtree(former[0], ignore_errors=True)

    def _check(self, name: str, options: Any, schema: pa.Schema) -> None:
        is_there = name in self._commands.session.environment.tables
        said = ""
        if not name:
            said = "a name is missing"
        elif not is_there and options.if_not_exist == _FAILS_IF_ABSENT:
            said = "there is no such table to append to"
        elif is_there and options.if_exists not in (_APPENDS, _REPLACES):
            said = "it is there already; append to it or replace it"
        elif is_there and options.if_exists == _APPENDS:
            known = self._tables.get(name)
            if known is None:
                said = "rows are added to uploaded tables alone; write INSERT INTO 'path', MERGE or COPY"
            elif not known[1].equals(schema):
                said = f"its columns are ({_shown(known[1])}), those of the rows ({_shown(schema)})"
        if said:
            raise PlanError(f"flight sql: upload of {name!r}: {said}")


def _written(file: Path, reader: flight.MetadataRecordBatchReader, call: Call) -> int:
    rows = 0
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
        for chunk in reader:
            if call.is_cancelled():
                break
            if chunk.data is not None:
                check_values(chunk.data)
                writer.write_batch(chunk.data)
                rows += chunk.data.num_rows
    # Rows end in the same way where the client does.
    if call.is_cancelled():
        raise GoneError("the client went away before all rows had come")
    return rows


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
