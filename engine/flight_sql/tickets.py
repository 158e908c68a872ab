"""Tickets: what a client shows to get the rows of a statement. All there is to know is in the ticket.

    Ticket(text, parameters, number)     a query, bound and run when its rows are asked for
    Ticket(rows=..., number)             the one row of a change, of EXPLAIN: it has run, and is not run again

    rows and parameters                  streams of Arrow's IPC; each row of parameters is one set of values
    number                               another one each time, by which the client cancels

So a ticket needs no memory of the server, may be shown by another connection of the client, and outlives a restart. It
gives no rights: its holder must be let in, as with any statement. A client may write one itself, so what it has is
checked as what any client sends.

Held by: tests/flight_sql/test_statements.py
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from engine.errors import PlanError
from engine.flight_sql.messages import packed
from engine.statements.session import Parameters
from engine.statements.text_pieces import is_comment, is_quoted, pieces

_NUMBERED: Final = re.compile(r"\$(\d+)")
_NAMED: Final = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """A statement whose rows a client may get."""

    text: str = ""
    parameters: bytes = b""
    rows: bytes = b""
    number: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))

    def to_bytes(self) -> bytes:
        """Return the bytes of Flight's ticket."""
        return packed("TicketStatementQuery", statement_handle=msgspec.msgpack.encode(self))


def ticket_of(handle: bytes) -> Ticket:
    """Return the ticket of a statement's handle. Raises: PlanError for one that was not made here."""
    try:
        return msgspec.msgpack.decode(handle, type=Ticket)
    except msgspec.DecodeError:
        raise PlanError("flight sql: the ticket is none of this server's") from None


def stream_bytes(table: pa.Table) -> bytes:
    """Return a table as a stream of IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def table_of(data: bytes) -> pa.Table:
    """Return the table of a stream. Raises: PlanError for bytes that are none."""
    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise PlanError(f"flight sql: parameters or rows are damaged: {error}") from None
    check_values(table)
    return table


def check_values(rows: pa.Table | pa.RecordBatch) -> None:
    """Raise PlanError for rows of a client whose offsets or indices lead out of their buffers.

    Arrow does not look at them where it reads rows, and reads what lies behind where it uses them.
    """
    try:
        rows.validate(full=True)
    except pa.ArrowException as error:
        raise PlanError(f"flight sql: parameters or rows are damaged: {error}") from None


def numbered(text: str) -> str:
    """Return a statement with $1, $2 and so on in place of each ?, as JDBC and ODBC write parameters."""
    count, found = 0, []
    for piece in pieces(text):
        if is_comment(piece) or is_quoted(piece):
            found.append(piece)
            continue
        first, *others = piece.split("?")
        found.append(first + "".join(f"${count + number}{other}" for number, other in enumerate(others, 1)))
        count += len(others)
    return "".join(found)


def parameter_names(text: str) -> list[str]:
    """Return the parameters of a statement: 1, 2 and so on, or names in the order of the text."""
    said = "".join(" " if is_comment(piece) or is_quoted(piece) else piece for piece in pieces(text))
    numbers = [int(number) for number in _NUMBERED.findall(said)]
    if numbers:
        return [str(number) for number in range(1, max(numbers) + 1)]
    return list(dict.fromkeys(_NAMED.findall(said)))


def parameter_sets(text: str, given: bytes) -> Iterator[Parameters]:
    """Yield the values of a statement for each time that it runs: once where there are no parameters."""
    if not given:
        yield None
        return
    table, names = table_of(given), parameter_names(text)
    is_named = bool(names) and not names[0].isdigit()
    for row in _rows(table):
        yield row if is_named and set(row) == set(names) else _in_order(names, list(row.values()), is_named=is_named)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    names = table.column_names
    if len(set(names)) < len(names):
        table = table.rename_columns([str(index) for index in range(len(names))])
    for batch in table.to_batches():
        yield from batch.to_pylist()


def _in_order(names: list[str], values: list[Any], *, is_named: bool) -> list[Any] | Mapping[str, Any]:
    if not is_named:
        return values
    if len(values) != len(names):
        raise PlanError(f"sql: {len(values)} values were given for {len(names)} parameters ({', '.join(names)})")
    return dict(zip(names, values, strict=True))
