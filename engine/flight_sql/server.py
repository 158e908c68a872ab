"""SqlServer: the calls of Flight SQL, each a command, and each failure as one text with a code.

    GetFlightInfo, GetSchema     statements, prepared statements, catalogs, what the server says of itself
    DoGet                        the rows of a ticket
    DoPut                        changes, parameters of a prepared statement, tables that a client uploads
    DoAction                     CreatePreparedStatement, ClosePreparedStatement, CancelFlightInfo, CancelQuery

    wrong statement, type, data, parameter    INVALID_ARGUMENT      not built               UNIMPLEMENTED
    token missing, wrong, expired             UNAUTHENTICATED       read-only server        PERMISSION_DENIED
    too many wait                             UNAVAILABLE           cancelled               CANCELLED
    a job that failed                         INTERNAL

Threads: one of gRPC's for each call that runs.

Source: Apache Arrow, docs/format/FlightSql
Held by: tests/flight_sql/test_clients.py
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import psutil
import pyarrow as pa
from pyarrow import flight

from engine.errors import DataError, EngineError, JobCancelledError, JobExecutionError, NotYetSupportedError
from engine.flight_sql import catalog
from engine.flight_sql.access import ACCESS, Access, AccessOfCalls, Handshakes
from engine.flight_sql.admission import BusyError, GoneError
from engine.flight_sql.commands import Call, Commands, ForbiddenError
from engine.flight_sql.messages import bare, given, packed, request, unpacked
from engine.flight_sql.prepared import BYTES_MAX, PreparedStatements
from engine.flight_sql.record import Asker, Record, address_of
from engine.flight_sql.tickets import check_values, numbered, parameter_names, stream_bytes, ticket_of
from engine.flight_sql.uploads import Uploads

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_ACTIONS: Final = {
    "CreatePreparedStatement": "Keep a statement; its result is a handle.",
    "ClosePreparedStatement": "Forget a statement.",
    "CancelFlightInfo": "End a statement whose rows are being sent.",
    "CancelQuery": "The same, as older clients ask for it.",
}
_NO_TRANSACTIONS: Final = "transactions; each change is a commit of its own, so connect with autocommit"
_REFUSED: Final = {
    "BeginTransaction": _NO_TRANSACTIONS,
    "EndTransaction": _NO_TRANSACTIONS,
    "BeginSavepoint": _NO_TRANSACTIONS,
    "EndSavepoint": _NO_TRANSACTIONS,
    "CreatePreparedSubstraitPlan": "plans of Substrait; send SQL",
}


class Certificate(NamedTuple):
    """A certificate and its key, as PEM."""

    chain: bytes
    key: bytes


class _ShownOnce:
    """The text of an error, as it is sent. Arrow adds the traceback, unless it cannot be made; then the class's name.

    Arrow has classes of its own, without a traceback, for the other codes.
    """

    @property
    def __suppress_context__(self) -> bool:
        raise RuntimeError("the traceback is not for clients")


class StatementError(_ShownOnce, ValueError):  # type: ignore[override]
    """INVALID_ARGUMENT."""


class NotBuiltError(_ShownOnce, NotImplementedError):  # type: ignore[override]
    """UNIMPLEMENTED."""


def flight_error(error: BaseException) -> BaseException:
    """Return the error that a client is told: one text, with the code of its kind."""
    is_told: bool = isinstance(error, flight.FlightError) or not isinstance(error, Exception)
    if is_told:
        return error
    if not isinstance(error, EngineError):
        _log.error("a call of Flight SQL failed", exc_info=error)
    text = error.shown() if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
    kinds: list[tuple[type[BaseException], Callable[[str], BaseException]]] = [
        (GoneError, flight.FlightCancelledError),
        (JobCancelledError, flight.FlightCancelledError),
        (BusyError, flight.FlightUnavailableError),
        (ForbiddenError, flight.FlightUnauthorizedError),
        (NotYetSupportedError, NotBuiltError),
        (DataError, StatementError),
        (JobExecutionError, flight.FlightInternalError),
        (EngineError, StatementError),
        (Exception, flight.FlightInternalError),
    ]
    return next(made(text) for kind, made in kinds if isinstance(error, kind))


def told(method: Callable[..., _Answer]) -> Callable[..., _Answer]:
    """Make the errors of a method such that a client shows one text."""

    @functools.wraps(method)
    def call(*arguments: Any) -> _Answer:
        try:
            return method(*arguments)
        except BaseException as error:
            raise flight_error(error) from None

    return call


class SentBatches(Iterator[pa.RecordBatch]):
    """Batches on their way, whose errors a client understands. Its loss ends what makes them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except BaseException as error:
            raise flight_error(error) from None


class SqlServer(flight.FlightServerBase):  # type: ignore[misc]
    """The server. It listens from its construction on."""

    def __init__(
        self, location: str, commands: Commands, prepared: PreparedStatements, access: Access,
        certificate: Certificate | None = None, record: Record | None = None,
    ) -> None:  # fmt: skip
        self._record = record = record or Record()
        self._commands = commands
        self._prepared = prepared
        self._uploads = Uploads(commands)
        super().__init__(
            location,
            Handshakes(),
            tls_certificates=[tuple(certificate)] if certificate else None,
            middleware={ACCESS: AccessOfCalls(access, self._connected, record.login, record.refused)},
        )

    def _connected(self) -> list[str]:
        """Return the addresses of clients that are connected."""
        found = psutil.Process().net_connections("tcp")
        here = [each.raddr.ip for each in found if each.raddr and each.laddr.port == self.port]
        return [address.removeprefix("::ffff:") for address in here]  # IPv4 at a socket of both

    def _call(self, context: flight.ServerCallContext) -> Call:
        caller = context.get_middleware(ACCESS).caller
        note = functools.partial(self._record.statement, Asker(caller, address_of(context.peer())))
        user = caller.user.name if caller.user is not None else ""
        return Call(caller.owner, context.is_cancelled, may_change=caller.may_change, user=user, note=note)

    # rows ------------------------------------------------------------------------------------------------------

    @told
    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Bind a query, or do what is no query; return its columns and the ticket of its rows."""
        name, message = unpacked(descriptor.command)
        call = self._call(context)
        if catalog.is_of_catalog(name):
            schema, ticket = catalog.schema_of(name, message), bytes(descriptor.command)
        else:
            text, parameters = self._statement(name, message, call)
            schema, made = self._commands.asked(text, call, parameters)
            ticket = made.to_bytes()
        return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)

    @told
    def get_schema(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        """Return the columns of a statement."""
        name, message = unpacked(descriptor.command)
        if catalog.is_of_catalog(name):
            return flight.SchemaResult(catalog.schema_of(name, message))
        call = self._call(context)
        text, parameters = self._statement(name, message, call)
        with call.failing(text):
            return flight.SchemaResult(self._commands.schema(text, call, parameters) or pa.schema([]))

    def _statement(self, name: str, message: Any, call: Call) -> tuple[str, bytes]:
        """Return text and parameters of the statement that a command is about."""
        if "Substrait" in name:
            raise NotYetSupportedError("flight sql: plans of Substrait; send SQL")
        if name.startswith("CommandPreparedStatement"):
            found = self._prepared.of(message.prepared_statement_handle, call.owner)
            return found.text, found.parameters
        if not name.startswith("CommandStatement"):
            raise NotYetSupportedError(f"flight sql: {name} in this place")
        if given(message, "transaction_id"):
            raise NotYetSupportedError(f"flight sql: {_NO_TRANSACTIONS}")
        return message.query, b""

    @told
    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Send the rows of a ticket, as the client takes them."""
        name, message = unpacked(ticket.ticket)
        commands = self._commands
        if catalog.is_of_catalog(name):
            is_read_only = commands.is_read_only or not self._call(context).may_change
            table = catalog.answer(name, message, commands.session.environment, is_read_only=is_read_only)
            return flight.RecordBatchStream(table)
        if name != "TicketStatementQuery":
            raise NotYetSupportedError(f"flight sql: a ticket of {name}")
        schema, batches = commands.rows(ticket_of(message.statement_handle), self._call(context))
        return flight.GeneratorStream(schema, SentBatches(batches))

    # changes ---------------------------------------------------------------------------------------------------

    @told
    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Run a change, take the parameters of a prepared statement, or a table that a client uploads."""
        name, message = unpacked(descriptor.command)
        call = self._call(context)
        if name == "CommandStatementIngest":
            text = f"upload of {message.table}"
            with call.failing(text):
                count = self._uploads.take(message, reader, call)
            call.ended(text)
        elif name == "CommandPreparedStatementQuery":
            handle = message.prepared_statement_handle
            self._prepared.bind(handle, call.owner, _parameters(reader))
            writer.write(pa.py_buffer(bare("DoPutPreparedStatementResult", prepared_statement_handle=handle)))
            return
        else:
            text, parameters = self._statement(name, message, call)
            if name == "CommandPreparedStatementUpdate":
                parameters = _parameters(reader) or parameters
            count = self._commands.changed(text, call, parameters)
        writer.write(pa.py_buffer(bare("DoPutUpdateResult", record_count=count)))

    # actions ---------------------------------------------------------------------------------------------------

    @told
    def list_actions(self, _context: flight.ServerCallContext) -> list[flight.ActionType]:
        """Return the actions that there are."""
        return [flight.ActionType(name, says) for name, says in _ACTIONS.items()]

    @told
    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        """Do an action; its answer is in the form that its clients read."""
        body, call = action.body.to_pybytes(), self._call(context)
        owner = call.owner
        match action.type:
            case "CreatePreparedStatement":
                return [self._prepare(request("ActionCreatePreparedStatementRequest", body), call)]
            case "ClosePreparedStatement":
                message = request("ActionClosePreparedStatementRequest", body)
                self._prepared.close(message.prepared_statement_handle, owner)
                return []
            case "CancelFlightInfo":
                was_there = self._cancel(request("CancelFlightInfoRequest", body).info, owner)
                return [flight.Result(bare("CancelFlightInfoResult", status=2 if was_there else 3))]
            case "CancelQuery":
                was_there = self._cancel(request("ActionCancelQueryRequest", body).info, owner)
                return [flight.Result(packed("ActionCancelQueryResult", result=2 if was_there else 3))]
        said = _REFUSED.get(action.type, f"the action {action.type}; there are {', '.join(_ACTIONS)}")
        raise NotYetSupportedError(f"flight sql: {said}")

    def _prepare(self, message: Any, call: Call) -> flight.Result:
        if given(message, "transaction_id"):
            raise NotYetSupportedError(f"flight sql: {_NO_TRANSACTIONS}")
        with call.failing(message.query):
            schema = self._commands.schema(message.query, call)
        names = parameter_names(numbered(message.query))
        # A value of any type may be given: the statement is bound for the values that come.
        parameters = pa.schema([pa.field(name, pa.null()) for name in names])
        return flight.Result(
            packed(
                "ActionCreatePreparedStatementResult",
                prepared_statement_handle=self._prepared.prepare(message.query, call.owner),
                dataset_schema=b"" if schema is None else schema.serialize().to_pybytes(),
                parameter_schema=parameters.serialize().to_pybytes(),
            )
        )

    def _cancel(self, info: bytes, owner: str) -> bool:
        """Cancel the statement of a FlightInfo; whether it runs."""
        was_there = False
        for endpoint in flight.FlightInfo.deserialize(info).endpoints:
            name, message = unpacked(endpoint.ticket.ticket)
            if name == "TicketStatementQuery":
                number = ticket_of(message.statement_handle).number
                was_there = self._commands.running.cancel(number, owner) or was_there
        return was_there


def _parameters(reader: flight.MetadataRecordBatchReader) -> bytes:
    """Return the rows that a client sends as parameters. Raises: EngineError for too many."""
    batches, size = [], 0
    for chunk in reader:
        if chunk.data is not None:
            check_values(chunk.data)
            batches.append(chunk.data)
            size += chunk.data.nbytes
        if size > BYTES_MAX:
            break  # ``bind`` says what is wrong with so many
    table = pa.Table.from_batches(batches, reader.schema)
    return stream_bytes(table) if table.num_columns and table.num_rows else b""
