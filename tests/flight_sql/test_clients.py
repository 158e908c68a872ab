"""Real clients: ADBC's driver and its DB-API, Polars, and plain Flight for what they do not send."""

import threading

import polars
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from engine.flight_sql.messages import bare, packed, request, unpacked
from tests.flight_sql.conftest import ROWS, idle

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi
from adbc_driver_manager import NotSupportedError, ProgrammingError


@pytest.fixture
def connection(service):
    with dbapi.connect(service.uri, autocommit=True) as connected:
        yield connected


@pytest.fixture
def cursor(connection):
    with connection.cursor() as opened:
        yield opened


@pytest.fixture
def client(service):
    with flight.connect(service.uri) as connected:
        yield connected


def test_rows_come_as_arrow_and_as_tuples(cursor):
    cursor.execute("SELECT n, n::text AS s, n / 2.0 AS half FROM numbers WHERE n < 3 ORDER BY n DESC")
    assert cursor.fetch_arrow_table().to_pydict() == {"n": [2, 1, 0], "s": ["2", "1", "0"], "half": [1.0, 0.5, 0.0]}
    cursor.execute("SELECT count(*), sum(n) FROM numbers")
    assert cursor.fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]
    cursor.execute("SELECT n FROM numbers WHERE n < 0")
    assert cursor.fetchall() == []
    cursor.execute("SELECT n FROM numbers ORDER BY n")
    assert cursor.fetch_arrow_table()["n"].to_pylist() == list(range(ROWS))


def test_values_of_parameters(cursor):
    cursor.execute("SELECT n FROM numbers WHERE n BETWEEN ? AND ? ORDER BY n", (5, 7))
    assert cursor.fetchall() == [(5,), (6,), (7,)]
    cursor.execute("SELECT $1 || 'x', $2", ("a", None))
    assert cursor.fetchall() == [("ax", None)]
    assert cursor.adbc_prepare("SELECT n FROM numbers WHERE n = $1 OR n = $2").names == ["1", "2"]


def test_changes_and_many_parameters(cursor, tmp_path):
    out = tmp_path / "out"
    cursor.execute("CREATE OR REPLACE VIEW few AS SELECT n FROM numbers WHERE n < 4")
    assert cursor.fetchall() == [(0,)]
    cursor.execute(f"COPY (SELECT n, 'a' AS s FROM few) TO '{out}' (FORMAT parquet)")
    assert cursor.fetchall() == [(4,)]
    cursor.executemany(f"INSERT INTO '{out}' SELECT ?, ?", [(10, "b"), (11, "c")])
    assert cursor.rowcount == 2
    assert cursor.adbc_statement.set_sql_query(f"INSERT INTO '{out}' SELECT 12, 'd'") is None
    assert cursor.adbc_statement.execute_update() == 1
    cursor.execute(f"SELECT n, s FROM '{out}' WHERE n > 3 ORDER BY n")
    assert cursor.fetchall() == [(10, "b"), (11, "c"), (12, "d")]


def test_uploaded_tables(cursor):
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    assert cursor.adbc_ingest("up", table, mode="create") == 2
    assert cursor.adbc_ingest("up", table, mode="append") == 2
    cursor.execute("SELECT sum(a), count(b) FROM up")
    assert cursor.fetchall() == [(6, 2)]
    with pytest.raises(ProgrammingError, match="it is there already"):
        cursor.adbc_ingest("up", table, mode="create")
    with pytest.raises(ProgrammingError, match=r"its columns are \(a int64, b string\)"):
        cursor.adbc_ingest("up", table.select(["a"]), mode="append")
    with pytest.raises(ProgrammingError, match="no such table to append to"):
        cursor.adbc_ingest("nothing", table, mode="append")
    with pytest.raises(ProgrammingError, match="rows are added to uploaded tables alone"):
        cursor.adbc_ingest("numbers", pa.table({"n": [1]}), mode="append")
    assert cursor.adbc_ingest("up", table.select(["a"]), mode="replace") == 2
    cursor.execute("SELECT * FROM up ORDER BY a")
    assert cursor.fetchall() == [(1,), (2,)]
    cursor.execute("DROP TABLE up")


def test_catalogs_tables_and_columns(connection):
    assert connection.adbc_get_info()["vendor_name"] == "Drey"
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert connection.adbc_get_table_schema("numbers") == pa.schema([("n", pa.int64())])
    found = connection.adbc_get_objects(table_name_filter="num%").read_all().to_pylist()
    (schema,) = found[0]["catalog_db_schemas"]
    (table,) = schema["db_schema_tables"]
    assert (found[0]["catalog_name"], schema["db_schema_name"], table["table_name"]) == ("drey", "main", "numbers")
    assert [(column["column_name"], column["xdbc_data_type"]) for column in table["table_columns"]] == [("n", -5)]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("SELECT nope FROM numbers", "INVALID_ARGUMENT", r"no column nope \(there are n\)"),
        ("SELEC 1", "INVALID_ARGUMENT", "SELEC"),
        ("SELECT 1 / (n - 5) FROM numbers", "INVALID_ARGUMENT", "divide by zero; in a row with n=5"),
        ("SET x = 1", "NOT_IMPLEMENTED", "SET"),
        ("DROP TABLE nothing", "INVALID_ARGUMENT", "there is no such table"),
    ],
)
def test_an_error_is_one_text_with_its_code(cursor, text, code, says, service):
    with pytest.raises((ProgrammingError, NotSupportedError), match=says) as caught:
        cursor.execute(text)
        cursor.fetchall()
    assert str(caught.value).startswith(code)
    assert "Traceback" not in str(caught.value) and ".py" not in str(caught.value)
    assert idle(service)


def test_transactions_are_refused_by_name(client, service):
    with pytest.raises(
        NotImplementedError, match="transactions is not supported yet; each change is a commit of its own"
    ):
        list(client.do_action(flight.Action("BeginTransaction", b"")))
    with pytest.raises(NotImplementedError, match="there are CreatePreparedStatement"):
        list(client.do_action(flight.Action("Something", b"")))
    command = packed("CommandStatementQuery", query="SELECT 1", transaction_id=b"x")
    with pytest.raises(NotImplementedError, match="transactions"):
        client.get_flight_info(flight.FlightDescriptor.for_command(command))
    with pytest.raises(pa.ArrowInvalid, match="no message of Flight SQL"):
        client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT 1"))
    assert next(action.type for action in client.list_actions()) == "CreatePreparedStatement"


def test_an_action_may_have_any_around_it_or_not(client):
    name, query = "ActionCreatePreparedStatementRequest", "SELECT n FROM numbers WHERE n = ?"
    for body in (packed(name, query=query), bare(name, query=query)):
        (result,) = client.do_action(flight.Action("CreatePreparedStatement", body))
        _, made = unpacked(result.body.to_pybytes())
        assert pa.ipc.read_schema(pa.py_buffer(made.dataset_schema)).names == ["n"]
        assert pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)).names == ["1"]
        closing = bare("ActionClosePreparedStatementRequest", prepared_statement_handle=made.prepared_statement_handle)
        assert list(client.do_action(flight.Action("ClosePreparedStatement", closing))) == []
        command = packed("CommandPreparedStatementQuery", prepared_statement_handle=made.prepared_statement_handle)
        with pytest.raises(pa.ArrowInvalid, match="it was closed"):
            client.get_flight_info(flight.FlightDescriptor.for_command(command))


@pytest.mark.parametrize("action", ["CancelFlightInfo", "CancelQuery"])
def test_a_statement_is_cancelled_by_its_ticket(client, service, action):
    command = packed("CommandStatementQuery", query="SELECT n FROM slow")
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
    reader = client.do_get(info.endpoints[0].ticket)
    assert reader.read_chunk().data.num_rows
    body = (
        bare("CancelFlightInfoRequest", info=info.serialize())
        if action == "CancelFlightInfo"
        else packed("ActionCancelQueryRequest", info=info.serialize())
    )
    (result,) = client.do_action(flight.Action(action, body))
    data = result.body.to_pybytes()
    name = "CancelFlightInfoResult" if action == "CancelFlightInfo" else "ActionCancelQueryResult"
    assert next(iter(value for _, value in request(name, data).ListFields())) == 2
    with pytest.raises(flight.FlightCancelledError, match="the client asked for it"):
        while True:
            reader.read_chunk()
    assert idle(service)


def test_a_client_that_cancels_or_goes_ends_its_statement(service):
    with dbapi.connect(service.uri, autocommit=True) as connected:
        with connected.cursor() as cursor:
            cursor.execute("SELECT n FROM slow")
            threading.Timer(0.3, cursor.adbc_cancel).start()
            with pytest.raises(Exception, match=r"(?i)cancel"):
                cursor.fetch_arrow_table()
        assert idle(service)
        with connected.cursor() as cursor:
            cursor.execute("SELECT n FROM slow")
        assert idle(service)
    with flight.connect(service.uri) as client:
        command = packed("CommandStatementQuery", query="SELECT n FROM slow")
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        reader.read_chunk()
        reader.cancel()
        assert idle(service)


def test_polars_reads(service):
    query = "SELECT n FROM numbers WHERE n < 3 ORDER BY n"
    with dbapi.connect(service.uri, autocommit=True) as connected:
        frame = polars.read_database(query, connected)
    assert frame["n"].to_list() == [0, 1, 2]


def test_many_clients_at_once_get_their_own_rows(service):
    wrong, count = [], 50

    def run(number):
        try:
            with dbapi.connect(service.uri, autocommit=True) as connected, connected.cursor() as cursor:
                cursor.execute("SELECT count(*), min(n) FROM numbers WHERE n >= ?", (number,))
                if cursor.fetchall() != [(ROWS - number, number)]:
                    wrong.append(number)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    assert idle(service)
