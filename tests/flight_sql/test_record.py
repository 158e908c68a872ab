"""Record of a server: who connected, which statements, how they ended; no secret; numbers for Prometheus."""

import urllib.request

import pyarrow as pa
import pytest

from engine import Environment
from engine.errors import JobExecutionError, PlanError
from engine.flight_sql.access import Caller
from engine.flight_sql.admission import GoneError
from engine.flight_sql.record import Asker, Record, address_of, outcome_of, shown_statement
from engine.flight_sql.service import FlightSqlService
from engine.minicluster.mini_cluster import MiniCluster
from engine.rpc.principal import Role
from engine.rpc.user_tokens import add_user
from tests.flight_sql.conftest import idle, until

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi
from adbc_driver_manager import DatabaseError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT\n  1", "SELECT 1"),
        ("SELECT * FROM db('postgresql://me:hunter2@h/d')", "SELECT * FROM db('postgresql://me:...@h/d')"),
        ("SET s3.secret_key = 'hunter2'", "SET s3.secret_key = '...'"),
        ("FROM t(password => 'it''s hunter2', a => 'b')", "FROM t(password => '...', a => 'b')"),
        ("SELECT 'x' AS \"token\", 'y'", "SELECT 'x' AS \"token\", '...'"),
        ("SELECT secrets FROM t WHERE a = 'b'", "SELECT secrets FROM t WHERE a = 'b'"),
    ],
)
def test_statements_are_shown_without_secrets(text, shown):
    assert shown_statement(text) == shown


def test_a_long_statement_is_cut():
    assert len(shown_statement("SELECT " + "1, " * 5000 + "1")) == 2000


def test_addresses_are_those_of_peers():
    assert address_of("ipv4:127.0.0.1:5000") == "127.0.0.1"
    assert address_of("ipv6:%5B::1%5D:5000") == address_of("ipv6:[::1]:5000") == "::1"
    assert address_of("ipv6:[::ffff:10.0.0.7]:1") == "10.0.0.7"


def test_outcomes_are_words():
    errors = [None, GoneError(""), PlanError(""), JobExecutionError(""), ValueError("")]
    assert [outcome_of(error) for error in errors] == ["done", "abandoned", "refused", "failed", "failed"]
    record = Record()
    for error in errors:
        record.statement(Asker(Caller("anonymous"), "::1"), "SELECT 1", error)
    assert record.metrics() == {
        "Status.FlightSql.Statements.done": 1, "Status.FlightSql.Statements.abandoned": 1,
        "Status.FlightSql.Statements.refused": 1, "Status.FlightSql.Statements.failed": 2,
    }  # fmt: skip


@pytest.fixture
def entries():
    return []


@pytest.fixture
def service(conf, tmp_path, entries):
    users = tmp_path / "users.tokens"
    tokens = {role: add_user(users, role.text, role) for role in (Role.READ, Role.SUBMIT)}
    with Environment(
        {"parallelism.default": 1, "security.users-file": str(users), "flight-sql.metrics.port": 0}
    ) as env:
        env.register("t", env.from_arrow(pa.table({"n": [1, 2]})))
        env.register("slow", env.from_arrow(pa.table({"n": range(100_000)}), rate_limit=200.0))
        with FlightSqlService(env, "127.0.0.1", 0, note=entries.append) as running:
            running.tokens = tokens
            yield running


def cursor_of(service, token):
    return dbapi.connect(service.uri, {"username": "any", "password": token}, autocommit=True)


def statements(entries):
    return [(each.outcome, each.caller, each.details["statement"]) for each in entries if each.what == "statement"]


def test_each_statement_has_one_entry_with_its_end(service, entries):
    with cursor_of(service, service.tokens[Role.READ]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT n FROM t ORDER BY n")
        assert cursor.fetchall() == [(1,), (2,)]
        for text in ("SELECT nothing FROM t", "DROP VIEW v"):
            with pytest.raises(DatabaseError):
                cursor.execute(text)
                cursor.fetchall()
    with cursor_of(service, service.token_file.read_text().strip()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE VIEW v AS SELECT 7 AS n")
        cursor.adbc_ingest("up", pa.table({"a": [1]}), mode="create")
        cursor.execute("SELECT n FROM slow")
        assert cursor.fetchone() == (0,)
    assert idle(service)
    assert until(lambda: len(statements(entries)) == 6), statements(entries)
    assert sorted(statements(entries)) == sorted(
        [
            ("done", "read", "SELECT n FROM t ORDER BY n"),
            ("refused", "read", "SELECT nothing FROM t"),
            ("refused", "read", "DROP VIEW v"),
            ("done", "", "CREATE VIEW v AS SELECT 7 AS n"),
            ("done", "", "upload of up"),
            ("abandoned", "", "SELECT n FROM slow"),
        ]
    )
    assert {each.address for each in entries} == {"127.0.0.1"}
    logins = [each for each in entries if each.what == "connect"]
    assert {(each.outcome, each.credential) for each in logins} >= {("done", "user-token"), ("done", "server-token")}
    refused = next(each for each in entries if each.details.get("statement") == "DROP VIEW v")
    assert "the role read runs queries alone" in refused.reason


def test_jobs_belong_to_the_user_of_their_statement(service, tmp_path, monkeypatch):
    submitted = []
    submit = MiniCluster.submit

    def noted(self, graph, *others):
        submitted.append(graph.user)
        return submit(self, graph, *others)

    monkeypatch.setattr(MiniCluster, "submit", noted)
    server = service.token_file.read_text().strip()
    select = "SELECT n FROM t ORDER BY n"
    copy = "COPY (SELECT n FROM t) TO '{}' (FORMAT parquet)"
    asked = [("read", select), ("submit", select), ("submit", copy), ("", select), ("", copy)]
    for index, (user, text) in enumerate(asked):
        token = service.tokens[Role[user.upper()]] if user else server
        with cursor_of(service, token) as connection, connection.cursor() as cursor:
            cursor.execute(text.format(tmp_path / f"out-{index}"))
            assert cursor.fetchall()
    assert submitted == [user for user, _ in asked]


def test_a_wrong_token_is_recorded_without_it_and_not_each_time(service, entries):
    for _ in range(5):
        with pytest.raises(DatabaseError), cursor_of(service, "wrong-token-of-mallory"):
            pass
    refused = [each for each in entries if each.outcome == "refused"]
    assert len(refused) <= 1, "any client can cause as many as it likes"
    assert "mallory" not in str(entries)


def test_metrics_tell_what_runs_and_what_was_refused(service):
    with cursor_of(service, service.tokens[Role.READ]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT n FROM t")
        cursor.fetchall()
    with pytest.raises(DatabaseError), cursor_of(service, "wrong"):
        pass

    def told():
        return urllib.request.urlopen(f"http://{service.metrics.address}/metrics").read().decode()

    assert until(lambda: 'drey_flight_sql_statements_total{outcome="done",process="flight-sql"} 1.0' in told())
    text = told()
    assert 'drey_flight_sql_running{process="flight-sql"} 0.0' in text
    assert 'reason="wrong-secret"} 0.0' not in text and 'reason="wrong-secret"' in text
    assert service.metrics.url == f"http://{service.metrics.address}/metrics"
    with urllib.request.urlopen(f"http://{service.metrics.address}/readyz") as answer:
        assert answer.status == 200
