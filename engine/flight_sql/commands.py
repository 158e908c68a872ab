"""Commands: what a statement of a client does, and how its rows reach it.

    asked(text) ─► a query: bound, its schema and a ticket; it runs where the ticket is shown
                └► a change, EXPLAIN, SHOW, DESCRIBE: done at once, its one row is in the ticket
    changed(text) ─► rows inserted, updated, deleted; -1 where no number is known
    rows(ticket) ─► RowStream: batches as the job makes them

All clients have the same names: a view that one makes is there for the others. Changes run one after the other, queries
beside them. A query's rows pass through: the job waits for the reader, and batches of more than BATCH_BYTES are sent in
pieces, as receivers have a limit for one message.

Held by: tests/flight_sql/test_statements.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.api.job_names import jobs_named
from engine.client.job_listener import heard_by
from engine.errors import EngineError, PlanError
from engine.flight_sql.admission import BusyError, GoneError
from engine.flight_sql.running import CancelListener, RunningStatement, RunningStatements
from engine.flight_sql.tickets import (
    Ticket,
    numbered,
    parameter_names,
    parameter_sets,
    stream_bytes,
    table_of,
)
from engine.statements import statements as kinds
from engine.statements.attached import refusing_files
from engine.statements.query import is_change
from engine.statements.session import Parameters, StatementSession

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.client.job_result import JobResult

BATCH_BYTES: Final = 2 << 20
_LOOK_S: Final = 0.05
_NO_FILES: Final = "the role read may not name files, as the server may read more of them than its users"
#: columns of the row that a change of a table has, whose sum is the number of rows that it changed
_CHANGED: Final = ("rows_inserted", "rows_updated", "rows_deleted")


class ForbiddenError(EngineError):
    """A statement that this server does not run."""


class Call:
    """The session of a client's call, whether it was cancelled, and whether its caller may change anything.

    Args: user: name of the user that its jobs belong to; note: is told how a statement has ended: its text, and its
    error if it has one.
    """

    def __init__(
        self,
        owner: str,
        is_cancelled: Callable[[], bool],
        *,
        may_change: bool = True,
        user: str = "",
        note: Callable[[str, BaseException | None], None] = lambda text, error: None,
    ) -> None:
        self.owner = owner
        self.is_cancelled = is_cancelled
        self.may_change = may_change
        self.user = user
        self._note = note
        self._has_ended = False

    def ended(self, text: str, error: BaseException | None = None) -> None:
        """Note the end of the statement; only the first one counts."""
        if not self._has_ended:
            self._has_ended = True
            self._note(text, error)

    @contextmanager
    def failing(self, text: str) -> Iterator[None]:
        """Note the end of a statement that fails within."""
        try:
            yield
        except BaseException as error:
            self.ended(text, error)
            raise


class Commands:
    """Statements of clients over one environment. Thread: any."""

    def __init__(self, session: StatementSession, running: RunningStatements, *, is_read_only: bool = False) -> None:
        self.session = session
        self.running = running
        self.is_read_only = is_read_only
        self._changing = threading.Lock()
        #: places of a change that runs, and of those that wait
        self._may_change = threading.Semaphore(running.admission.waiting_max + 1)

    def schema(self, text: str, call: Call, parameters: bytes = b"") -> pa.Schema | None:
        """Return the columns of a statement's rows without running it; None where only its run tells."""
        text = numbered(text)
        statement = self._parsed(text)
        if not self._is_lazy(statement, text):
            return None
        names = parameter_names(text)
        if parameters or not names:
            return self._bound(statement, text, next(parameter_sets(text, parameters)), call).schema
        values: Parameters = [None] * len(names) if names[0].isdigit() else dict.fromkeys(names)
        try:
            return self._bound(statement, text, values, call).schema
        except (EngineError, TypeError):  # null is no value for some function: its columns are not known yet
            return None

    def asked(self, text: str, call: Call, parameters: bytes = b"") -> tuple[pa.Schema, Ticket]:
        """Return the columns of a statement's rows and the ticket for them."""
        with call.failing(text):
            text = numbered(text)
            statement = self._parsed(text)
            if self._is_lazy(statement, text):
                bound = self._bound(statement, text, next(parameter_sets(text, parameters)), call)
                return bound.schema, Ticket(text, parameters)
            table = self._done(statement, text, call, parameters)
        call.ended(text)
        return table.schema, Ticket(rows=stream_bytes(table))

    def changed(self, text: str, call: Call, parameters: bytes = b"") -> int:
        """Run a statement for what it changes; return the number of rows. A query runs, too, and changes none."""
        with call.failing(text):
            text = numbered(text)
            statement = self._parsed(text)
            count = -1
            if self._is_lazy(statement, text):
                with self._run(text, call):
                    for parameters_of_run in parameter_sets(text, parameters):
                        self._bound(statement, text, parameters_of_run, call).count()
            else:
                count = changed_rows(self._done(statement, text, call, parameters))
        call.ended(text)
        return count

    def rows(self, ticket: Ticket, call: Call) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns and batches of a ticket."""
        if ticket.rows:
            table = table_of(ticket.rows)
            return table.schema, iter(table.to_batches())
        statement = self._parsed(ticket.text)
        if not self._is_lazy(statement, ticket.text):
            raise PlanError("flight sql: a ticket is of a query; a change has run before there is a ticket")
        with call.failing(ticket.text):
            running = self.running.begin(ticket.number, call.owner, call.is_cancelled)
            return self._rows(ticket, statement, call, running)

    def _rows(
        self, ticket: Ticket, statement: kinds.Statement, call: Call, running: RunningStatement
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        try:
            running.admit(self.running.admission)
            sets = parameter_sets(ticket.text, ticket.parameters)
            first = self._bound(statement, ticket.text, next(sets), call)

            def others() -> Iterator[DataSet]:
                yield first
                for values in sets:
                    data = self._bound(statement, ticket.text, values, call)
                    if not data.schema.equals(first.schema):
                        raise PlanError("sql: the rows have other types for other values of the parameters")
                    yield data

            return first.schema, RowStream(self.running, running, others(), ticket.text, call)
        except BaseException:
            self.running.end(running)
            raise

    def _parsed(self, text: str) -> kinds.Statement:
        one = kinds.split(text)
        if len(one) != 1:
            raise PlanError(f"sql: {len(one)} statements were sent; send one at a time" if one else "sql: no statement")
        return kinds.statement(one[0])

    def _is_lazy(self, statement: kinds.Statement, text: str) -> bool:
        """Return whether a statement is run where its rows are asked for, and may be bound more than once."""
        if isinstance(statement, kinds.Query):
            return not is_change(text, self.session.dialect)
        return isinstance(statement, kinds.Summarize)

    def _bound(self, statement: kinds.Statement, text: str, parameters: Parameters, call: Call) -> DataSet:
        with refusing_files("" if call.may_change else _NO_FILES):
            data = self.session.rows(statement, parameters)
        assert data is not None, text
        return data

    @contextmanager
    def _run(self, text: str, call: Call) -> Iterator[RunningStatement]:
        """Have a turn for jobs of this thread, which end where the client goes away."""
        running = self.running.begin(Ticket().number, call.owner, call.is_cancelled)
        try:
            running.admit(self.running.admission)
            with heard_by(CancelListener(running)), jobs_named(text, call.user):
                yield running
        finally:
            self.running.end(running)

    def _done(self, statement: kinds.Statement, text: str, call: Call, parameters: bytes) -> pa.Table:
        """Run a statement now, once for each set of parameters; return its row."""
        changes = not isinstance(statement, kinds.Explain | kinds.ShowTables | kinds.Describe)
        if not changes:
            with self._run(text, call):
                return self._bound(statement, text, next(parameter_sets(text, parameters)), call).to_arrow()
        self.check_change(call)
        with self._alone(call), self._run(text, call) as running:
            tables = []
            for values in parameter_sets(text, parameters):
                running.check()
                tables.append(self._change(statement, values))
        if len(tables) == 1:
            return tables[0]
        return pa.table({"rows": pa.array([sum(changed_rows(each) for each in tables)], pa.int64())})

    @contextmanager
    def _alone(self, call: Call) -> Iterator[None]:
        """Wait until no other change runs. Raises: BusyError, GoneError."""
        if not self._may_change.acquire(blocking=False):
            raise BusyError(
                "busy: as many changes wait for each other as may (flight-sql.max-waiting); ask again later"
            )
        try:
            while not self._changing.acquire(timeout=_LOOK_S):
                if call.is_cancelled():
                    raise GoneError("cancelled while it waited for another change")
            try:
                yield
            finally:
                self._changing.release()
        finally:
            self._may_change.release()

    def check_change(self, call: Call) -> None:
        """Raise ForbiddenError for a call that may change nothing."""
        if self.is_read_only:
            raise ForbiddenError("this server is read-only: it runs queries alone (serve --read-only)")
        if not call.may_change:
            raise ForbiddenError("the role read runs queries alone: what changes something needs the role submit")

    def _change(self, statement: kinds.Statement, parameters: Parameters) -> pa.Table:
        if isinstance(statement, kinds.Query):  # MERGE, UPDATE, DELETE
            return self.session.query(statement.text, parameters).to_arrow()
        return pa.table({"rows": pa.array([rows_written(self.session.change(statement, parameters))], pa.int64())})


def rows_written(result: JobResult | None) -> int:
    """Return the rows that a job has written, 0 for none."""
    ends = [vertex.operators[-1] for vertex in ([] if result is None else result.vertices) if vertex.operators]
    return next((each.rows_in for each in ends if " sink" in each.name), 0)


def changed_rows(table: pa.Table) -> int:
    """Return the number of rows that a change says it has changed, -1 for none."""
    found = [name for name in ("rows", *_CHANGED) if name in table.column_names]
    return sum(table[name][0].as_py() or 0 for name in found) if found and table.num_rows else -1


class RowStream(Iterator[pa.RecordBatch]):
    """Batches of a statement: of one job, or of one for each set of parameters. Its end, or its loss, ends the job."""

    def __init__(
        self, all_running: RunningStatements, running: RunningStatement, data: Iterator[DataSet], text: str, call: Call
    ) -> None:
        self._all = all_running
        self._running = running
        self._text = text
        self._call = call
        self._batches = _batches_of(running, data, text, call.user)
        running.gave()  # the columns, which the client is sent first

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            self._running.wanted()
            batch = next(self._batches)
            self._running.gave()
        except StopIteration:
            self._call.ended(self._text)
            self.close()
            raise
        except BaseException as error:
            is_cut = self._running.is_cancelled()
            try:
                if is_cut:
                    self._running.check()
            except BaseException as cut:
                self._call.ended(self._text, cut)
                raise
            finally:
                self._call.ended(self._text, error)
                self.close()
            raise
        return batch

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the statement; idempotent."""
        self._all.end(self._running)
        self._call.ended(self._text, GoneError("the client took no more rows"))


def _batches_of(running: RunningStatement, data: Iterator[DataSet], text: str, user: str) -> Iterator[pa.RecordBatch]:
    for each in data:
        running.check()
        with jobs_named(text, user):
            batches = each.to_batches()
        with batches as stream:
            running.follow(stream)
            for batch in stream:
                yield from pieces_of(batch)


def pieces_of(batch: pa.RecordBatch, limit: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of at most so many bytes, of one row at least."""
    if batch.num_rows == 0:
        return
    step = max(1, batch.num_rows * limit // max(1, batch.nbytes))
    for begin in range(0, batch.num_rows, step):
        yield batch.slice(begin, step)
