"""A server of Flight SQL with DuckDB behind it: what a driver needs to run queries, and a password that it asks for."""

import base64
import contextlib
import threading

import duckdb
import pyarrow.flight as flight

USER, PASSWORD, TOKEN = "reader", "s3cret/pass@word", "t0ken"


def _fields(message):
    """Return the fields of a message of Protocol Buffers that are texts or bytes, by their number."""
    found, at = {}, 0
    while at < len(message):
        key, at = _varint(message, at)
        assert key & 7 == 2, "only texts and bytes are expected"
        length, at = _varint(message, at)
        found[key >> 3] = message[at : at + length]
        at += length
    return found


def _varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


class _Passwords(flight.ServerMiddlewareFactory):
    """Asks for user and password once, and for a token then."""

    def start_call(self, info, headers):
        given = headers.get("authorization", [""])[0]
        right = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode().rstrip("=")
        if given not in (f"Basic {right}", f"Bearer {TOKEN}"):
            raise flight.FlightUnauthenticatedError(f"user {USER} is not let in with {given}")
        return _Token() if info.method == flight.FlightMethod.HANDSHAKE else None


class _Token(flight.ServerMiddleware):
    def sending_headers(self):
        return {"authorization": f"Bearer {TOKEN}"}


class _Handshakes(flight.ServerAuthHandler):
    """Has nothing to say: passwords are in the headers of calls."""

    def authenticate(self, outgoing, incoming):
        return

    def is_valid(self, token):
        return ""


class _Server(flight.FlightServerBase):
    def __init__(self, statements):
        super().__init__("grpc://127.0.0.1:0", _Handshakes(), middleware={"passwords": _Passwords()})
        self._database = duckdb.connect()
        for statement in statements:
            self._database.execute(statement)

    def get_flight_info(self, context, descriptor):
        command = _fields(descriptor.command)
        assert command[1].endswith(b"CommandStatementQuery"), command[1]
        query = _fields(command[2])[1]
        with self._database.cursor() as cursor:
            schema = cursor.sql(query.decode()).to_arrow_reader().schema
        return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(query, [])], -1, -1)

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(self._database.cursor().sql(ticket.ticket.decode()).to_arrow_table())

    def do_action(self, context, action):
        return []


@contextlib.contextmanager
def flight_sql(*statements):
    """Have a server that has run some statements; yield its URI without user and password."""
    with _Server(statements) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield f"grpc://127.0.0.1:{server.port}"
        finally:
            server.shutdown()
            thread.join()
