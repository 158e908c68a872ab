"""A server from its configuration: tokens, certificates, addresses, limits."""

import base64
import stat
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from engine import Environment
from engine.errors import ConfigurationError
from engine.flight_sql.messages import packed, unpacked
from engine.flight_sql.service import FlightSqlService
from engine.rpc.principal import Role
from engine.rpc.refusals import REFUSALS, Reason
from engine.rpc.user_tokens import add_user
from tests.flight_sql.conftest import until

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi
from adbc_driver_manager import DatabaseError

SCRIPT = Path(__file__).parents[2] / "bin" / "make-certificates.sh"
QUERY = flight.FlightDescriptor.for_command(packed("CommandStatementQuery", query="SELECT n FROM t"))


@pytest.fixture
def environment(conf):
    """Make environments with a table and some settings."""
    opened = []

    def made(**config):
        env = Environment(config={"parallelism.default": 1, **config})
        env.register("t", env.from_arrow(pa.table({"n": [1, 2]})))
        opened.append(env)
        return env

    yield made
    for env in opened:
        env.close()


def login(user, password):
    return {"username": user, "password": password}


def rows(uri, query="SELECT n FROM t ORDER BY n", **options):
    with dbapi.connect(uri, db_kwargs=options, autocommit=True) as connected, connected.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def test_a_server_asks_for_the_token_that_its_first_start_makes(environment, conf):
    with FlightSqlService(environment(), "127.0.0.1", 0) as service:
        token = service.token_file.read_text().strip()
        assert service.token_file == conf / "flight-sql.token"
        assert stat.S_IMODE(service.token_file.stat().st_mode) == 0o600
        assert rows(service.uri, **login("anybody", token)) == [(1,), (2,)]
        header = "adbc.flight.sql.authorization_header"
        assert rows(service.uri, **{header: f"Bearer {token}"}) == [(1,), (2,)]
        for options in ({}, login("anybody", "wrong"), {header: "Bearer wrong"}, {header: f"Bearer {token}0"}):
            with pytest.raises(DatabaseError, match=r"(?i)unauthenticated") as caught:
                rows(service.uri, **options)
            assert token not in str(caught.value)


def test_every_call_needs_a_token(environment):
    with FlightSqlService(environment(), "127.0.0.1", 0) as service, flight.connect(service.uri) as client:
        calls = [
            lambda: client.get_flight_info(QUERY),
            lambda: client.get_schema(QUERY),
            lambda: client.do_get(flight.Ticket(packed("CommandGetCatalogs"))).read_all(),
            lambda: list(client.do_action(flight.Action("CreatePreparedStatement", b""))),
            lambda: list(client.list_actions()),
            lambda: list(client.list_flights()),
            lambda: list(client.do_put(QUERY, pa.schema([]))[0].close() or ()),
            lambda: list(client.do_exchange(QUERY)[1].read_all()),
            lambda: client.authenticate_basic_token("me", "wrong"),
        ]
        for call in calls:
            with pytest.raises((flight.FlightUnauthenticatedError, OSError), match="nauthenticated"):
                call()


def test_the_token_of_a_user_that_reads_runs_queries_alone(environment, tmp_path):
    path = tmp_path / "users.tokens"
    tokens = {role: add_user(path, role.text, role) for role in (Role.READ, Role.SUBMIT)}
    env = environment(**{"security.users-file": str(path)})

    def connected(uri, role):
        options = {"username": "any", "password": tokens[role]}
        return dbapi.connect(uri, options, autocommit=True)

    with FlightSqlService(env, "127.0.0.1", 0) as service:
        (tmp_path / "n.csv").write_text("n\n7\n")
        with connected(service.uri, Role.SUBMIT) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE VIEW v AS SELECT n FROM '{tmp_path}/n.csv'")
        with connected(service.uri, Role.READ) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT n FROM v")
            assert cursor.fetchall() == [(7,)]
            for change in ("DROP VIEW v", "CREATE TABLE t AS SELECT 1 AS n"):
                with pytest.raises(DatabaseError, match="the role read runs queries alone"):
                    cursor.execute(change)
            for files in (f"SELECT * FROM read_csv('{path}')", f"DESCRIBE '{path}'", f"EXPLAIN SELECT * FROM '{path}'"):
                with pytest.raises(DatabaseError, match="the role read may not name files"):
                    cursor.execute(files)
            with pytest.raises(DatabaseError, match="the role read runs queries alone"):
                cursor.adbc_ingest("t", pa.table({"n": [1]}), mode="create")
            cursor.execute("SELECT n FROM v")
            assert cursor.fetchall() == [(7,)]


def test_a_session_ends_after_its_time(environment):
    env = environment(**{"flight-sql.session.timeout": "1 s"})
    with FlightSqlService(env, "127.0.0.1", 0) as service, flight.connect(service.uri) as client:
        header = client.authenticate_basic_token("me", service.token_file.read_text().strip())
        options = flight.FlightCallOptions(headers=[header])
        assert client.get_flight_info(QUERY, options).schema.names == ["n"]
        for _ in range(10_000):
            try:
                client.get_flight_info(QUERY, options)
            except flight.FlightUnauthenticatedError as error:
                assert "the session has expired" in str(error)
                break
        else:
            pytest.fail("a session never ends")


def test_a_prepared_statement_is_of_its_session_alone(environment):
    with FlightSqlService(environment(), "127.0.0.1", 0) as service, flight.connect(service.uri) as client:
        token = service.token_file.read_text().strip()
        one, other = (
            flight.FlightCallOptions(headers=[client.authenticate_basic_token("me", token)]) for _ in range(2)
        )
        body = packed("ActionCreatePreparedStatementRequest", query="SELECT n FROM t")
        (made,) = client.do_action(flight.Action("CreatePreparedStatement", body), one)
        handle = unpacked(made.body.to_pybytes())[1].prepared_statement_handle
        command = packed("CommandPreparedStatementQuery", prepared_statement_handle=handle)
        descriptor = flight.FlightDescriptor.for_command(command)
        assert client.get_flight_info(descriptor, one).schema.names == ["n"]
        with pytest.raises(pa.ArrowInvalid, match="another session's"):
            client.get_flight_info(descriptor, other)


def test_beyond_this_machine_nothing_listens_without_tls_or_token(environment):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ConfigurationError, match="beyond this machine tokens and rows need TLS"):
            FlightSqlService(environment(), host, 0)


def test_tls_with_the_certificates_of_the_cluster(environment, conf, tmp_path):
    subprocess.run([str(SCRIPT), str(tmp_path / "tls")], check=True, capture_output=True)
    config = {
        "security.ssl.enabled": True,
        "security.ssl.certificate": tmp_path / "tls" / "cluster.pem",
        "security.ssl.key": tmp_path / "tls" / "cluster.key",
        "security.ssl.ca": tmp_path / "tls" / "ca.pem",
    }
    with pytest.raises(ConfigurationError, match="serve --no-token is for this machine alone"):
        FlightSqlService(environment(**config), "0.0.0.0", 0, is_open=True)
    with FlightSqlService(environment(**config), "0.0.0.0", 0) as service:
        assert service.uri.startswith("grpc+tls://0.0.0.0:")
        uri = service.uri.replace("0.0.0.0", "127.0.0.1")
        roots = {"adbc.flight.sql.client_option.tls_root_certs": (tmp_path / "tls" / "ca.pem").read_text()}
        token = service.token_file.read_text().strip()
        assert rows(uri, **roots, **login("me", token)) == [(1,), (2,)]
        for options in (login("me", token), {**roots, **login("me", "x")}):
            with pytest.raises(DatabaseError):
                rows(uri, **options)
        with pytest.raises(DatabaseError):
            rows(uri.replace("grpc+tls", "grpc"), **login("me", token))


def test_a_port_that_is_taken_is_one_clear_error(environment):
    with FlightSqlService(environment(), "127.0.0.1", 0, is_open=True) as service:
        port = int(service.uri.rpartition(":")[2])
        with pytest.raises(ConfigurationError, match=f"cannot listen at 127.0.0.1:{port}: is the port taken"):
            FlightSqlService(environment(), "127.0.0.1", port, is_open=True)
        assert rows(service.uri) == [(1,), (2,)]
    with FlightSqlService(environment(), "127.0.0.1", port, is_open=True) as service:
        assert rows(service.uri) == [(1,), (2,)]


def test_a_server_without_a_token_takes_clients_that_log_in(environment):
    with FlightSqlService(environment(), "127.0.0.1", 0, is_open=True) as service:
        assert rows(service.uri, **login("anybody", "anything")) == [(1,), (2,)]


def test_an_address_of_version_6(environment):
    with FlightSqlService(environment(), "::1", 0, is_open=True) as service:
        assert rows(service.uri) == [(1,), (2,)]


def test_more_statements_than_the_limit_wait_or_are_refused(environment):
    env = environment(**{"flight-sql.max-running": 1, "flight-sql.max-waiting": 0})
    env.register("slow", env.from_arrow(pa.table({"n": range(100_000)}), rate_limit=200.0))
    with (
        FlightSqlService(env, "127.0.0.1", 0, is_open=True) as service,
        dbapi.connect(service.uri, autocommit=True) as connected,
        connected.cursor() as cursor,
    ):
        cursor.execute("SELECT n FROM slow")
        with pytest.raises(DatabaseError, match="1 statements run and 0 wait; ask again later"):
            rows(service.uri)


def test_a_reader_that_stands_still_gives_way_and_keeps_its_rows(environment):
    env = environment(**{"flight-sql.max-running": 1})
    count = 3_000_000
    env.register("many", env.from_arrow(pa.table({"n": pa.array(range(count), pa.int64())})))
    with FlightSqlService(env, "127.0.0.1", 0, is_open=True) as service, flight.connect(service.uri) as client:
        command = packed("CommandStatementQuery", query="SELECT n, n AS a, n AS b, n AS c FROM many")
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        first = reader.read_chunk().data
        assert rows(service.uri) == [(1,), (2,)]
        rest = sum(batch.data.num_rows for batch in reader)
        assert first.num_rows + rest == count


def test_a_reader_that_never_comes_back_is_cancelled(environment):
    env = environment(**{"flight-sql.reader.timeout": "500 ms"})
    env.register("many", env.from_arrow(pa.table({"n": pa.array(range(3_000_000), pa.int64())})))
    with FlightSqlService(env, "127.0.0.1", 0, is_open=True) as service, flight.connect(service.uri) as client:
        command = packed("CommandStatementQuery", query="SELECT n, n AS a, n AS b, n AS c FROM many")
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        reader.read_chunk()
        (statement,) = service.running._all()
        assert until(lambda: statement._why and service.running.admission.running == 0)
        with pytest.raises(flight.FlightCancelledError, match=r"no row was taken for 0\.5 s"):
            for _ in reader:
                pass


def test_a_statement_may_need_longer_for_its_first_row_than_a_reader_may(environment):
    env = environment(**{"flight-sql.reader.timeout": "200 ms"})
    env.register("slow", env.from_arrow(pa.table({"n": range(200)}), rate_limit=100.0))
    with FlightSqlService(env, "127.0.0.1", 0, is_open=True) as service:
        assert rows(service.uri, "SELECT count(*) FROM slow") == [(200,)]


def test_the_settings_of_the_server_are_told(environment):
    with (
        FlightSqlService(environment(), "127.0.0.1", 0, is_open=True, is_read_only=True) as service,
        dbapi.connect(service.uri, autocommit=True) as connected,
        connected.cursor() as cursor,
    ):
        with pytest.raises(DatabaseError, match="this server is read-only"):
            rows(service.uri, "CREATE VIEW v AS SELECT 1")
        with pytest.raises(DatabaseError, match="this server is read-only"):
            cursor.adbc_ingest("up", pa.table({"a": [1]}), mode="create")
        assert rows(service.uri, "SHOW TABLES") == [("t",)]


def test_a_header_of_many_bytes_is_refused(environment):
    with FlightSqlService(environment(), "127.0.0.1", 0) as service, flight.connect(service.uri) as client:
        value = "Basic " + base64.b64encode(b"u:" + b"x" * 5000).decode()
        options = flight.FlightCallOptions(headers=[(b"authorization", value.encode())])
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.get_flight_info(QUERY, options)


def test_a_refused_caller_is_told_with_its_address(environment):
    with FlightSqlService(environment(), "127.0.0.1", 0) as service:
        for options in (login("me", "wrong"), {"adbc.flight.sql.authorization_header": "Bearer wrong"}):
            with pytest.raises(DatabaseError, match=r"(?i)unauth"):
                rows(service.uri, **options)
            latest = REFUSALS.latest[0]
            assert (latest.address, latest.reason) == ("127.0.0.1", Reason.WRONG_SECRET)
            assert latest.what.startswith("flight sql")
