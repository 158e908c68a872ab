"""What a statement of a client does: run where its rows are asked for, or at once and never twice."""

import contextlib
import struct
import threading

import pyarrow as pa
import pytest

from engine import Environment
from engine.api import environment
from engine.api.job_names import job_name
from engine.errors import EngineError, PlanError
from engine.flight_sql.admission import BusyError, GoneError
from engine.flight_sql.commands import Call, Commands, ForbiddenError, pieces_of
from engine.flight_sql.messages import unpacked
from engine.flight_sql.running import RunningStatements
from engine.flight_sql.tickets import (
    Ticket,
    numbered,
    parameter_names,
    parameter_sets,
    stream_bytes,
    table_of,
    ticket_of,
)
from engine.statements.session import StatementSession

CALL = Call("me", lambda: False)


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 1}) as environment:
        environment.register("t", environment.from_arrow(pa.table({"n": [1, 2, 3], "s": ["a", "b", "c"]})))
        yield environment


@pytest.fixture
def running():
    statements = RunningStatements(2, 10, 60.0)
    yield statements
    statements.close()


@pytest.fixture
def commands(env, running):
    return Commands(StatementSession(env), running)


def rows_of(commands, text, parameters=b""):
    _, ticket = commands.asked(text, CALL, parameters)
    schema, batches = commands.rows(ticket, CALL)
    return pa.Table.from_batches(batches, schema).to_pylist()


def given(**columns):
    return stream_bytes(pa.table(columns))


def test_a_query_runs_where_its_ticket_is_shown_as_often_as_it_is(commands):
    schema, ticket = commands.asked("SELECT n FROM t WHERE n > ? -- which?", CALL, given(x=[1]))
    assert (schema.names, ticket.text) == (["n"], "SELECT n FROM t WHERE n > $1 -- which?")
    name, message = unpacked(ticket.to_bytes())
    assert (name, ticket_of(message.statement_handle)) == ("TicketStatementQuery", ticket)
    for _ in range(2):
        _, batches = commands.rows(ticket, CALL)
        assert [row["n"] for batch in batches for row in batch.to_pylist()] == [2, 3]
    assert commands.running.admission.running == 0


def test_a_query_runs_once_for_each_row_of_parameters(commands):
    assert rows_of(commands, "SELECT s FROM t WHERE n = $1", given(x=[3, 1])) == [{"s": "c"}, {"s": "a"}]
    with pytest.raises(PlanError, match="other types"):
        rows_of(commands, "SELECT $1 AS a", stream_bytes(pa.table({"x": pa.array([1, None], pa.int64())})))


def test_a_change_runs_once_however_often_its_ticket_is_shown(commands, env, tmp_path):
    out = tmp_path / "out"
    _, ticket = commands.asked(f"COPY (SELECT n FROM t) TO '{out}' (FORMAT parquet)", CALL)
    for _ in range(2):
        _, batches = commands.rows(ticket, CALL)
        assert [batch.to_pylist() for batch in batches] == [[{"rows": 3}]]
    assert env.sql(f"SELECT count(*) AS c FROM '{out}'").collect()[0].c == 3
    assert commands.changed(f"INSERT INTO '{out}' SELECT ?", CALL, given(x=[7, 8])) == 2
    assert rows_of(commands, f"SELECT sum(n) AS s FROM '{out}'") == [{"s": 21}]


def test_a_change_of_a_table_behind_with_runs_once_too(commands, env, tmp_path):
    pytest.importorskip("deltalake")
    path = tmp_path / "delta"
    env.from_arrow(pa.table({"n": [1, 2]})).write_delta(str(path))
    env.execute()
    text = f'MERGE INTO delta."{path}" AS t USING (SELECT 5 AS n) AS s ON t.n = s.n WHEN NOT MATCHED THEN INSERT *'
    _, ticket = commands.asked(text, CALL)
    assert commands.schema(text, CALL) is None
    assert rows_of(commands, f'SELECT n FROM delta."{path}" ORDER BY n') == [{"n": 1}, {"n": 2}, {"n": 5}]
    assert table_of(ticket.rows).num_rows == 1
    assert commands.changed(f'UPDATE delta."{path}" SET n = n + 10 WHERE n < 3', CALL) == 2
    assert commands.changed(f'DELETE FROM delta."{path}" WHERE n = 5', CALL) == 1
    assert rows_of(commands, f'SELECT n FROM delta."{path}" ORDER BY n') == [{"n": 11}, {"n": 12}]


def test_names_are_those_of_all_clients_and_are_found_by_their_parts(commands, env):
    assert commands.changed("CREATE VIEW v AS SELECT n + 1 AS m FROM main.t", CALL) == 0
    assert commands.changed("CREATE TABLE k AS SELECT * FROM v", CALL) == 3
    assert rows_of(commands, "SELECT max(m) AS m FROM drey.main.k") == [{"m": 4}]
    assert rows_of(commands, "SHOW TABLES") == [{"name": "k"}, {"name": "t"}, {"name": "v"}]
    assert rows_of(commands, "DESCRIBE t")[0] == {"name": "n", "type": "int64", "nullable": True}
    assert "parallelism" in rows_of(commands, "EXPLAIN SELECT * FROM t")[0]["plan"]
    assert rows_of(commands, "SUMMARIZE t")
    commands.changed("DROP TABLE k", CALL)
    assert "k" not in env.tables


def test_a_read_only_server_runs_queries_alone(env, running):
    commands = Commands(StatementSession(env), running, is_read_only=True)
    assert rows_of(commands, "SELECT count(*) AS c FROM t") == [{"c": 3}]
    for text in ("CREATE VIEW v AS SELECT 1", "DROP TABLE t", "DELETE FROM t", "WITH a AS (SELECT 1) DELETE FROM t"):
        with pytest.raises((ForbiddenError, PlanError)) as caught:
            commands.asked(text, CALL)
        assert isinstance(caught.value, ForbiddenError) or "WITH" in text
    assert set(env.tables) == {"t"}


@pytest.mark.parametrize("before", ["EXPLAIN", "EXPLAIN ANALYZE", "SUMMARIZE", "CREATE VIEW v AS", "CREATE TABLE k AS"])
def test_no_change_hides_in_another_statement(env, running, tmp_path, before):
    pytest.importorskip("deltalake")
    path = tmp_path / "delta"
    env.from_arrow(pa.table({"n": [1, 2]})).write_delta(str(path))
    env.execute()
    change = f'WITH a AS (SELECT 1 AS n) DELETE FROM delta."{path}" WHERE n = 1'
    for is_read_only in (True, False):
        commands = Commands(StatementSession(env), running, is_read_only=is_read_only)
        with contextlib.suppress(EngineError):
            commands.schema(f"{before} {change}", CALL)
        with pytest.raises(EngineError):
            commands.asked(f"{before} {change}", CALL)
        assert rows_of(commands, f'SELECT count(*) AS c FROM delta."{path}"') == [{"c": 2}]


def test_a_macro_that_is_another_one_means_what_it_says(commands):
    for number in (1, 2):
        commands.changed(f"CREATE OR REPLACE MACRO twice(a) AS a * {number}", CALL)
        assert rows_of(commands, "SELECT twice(10) AS x") == [{"x": 10 * number}]
    commands.changed("DROP MACRO twice", CALL)
    with pytest.raises(EngineError):
        rows_of(commands, "SELECT twice(10) AS x")


def test_the_columns_of_a_prepared_statement_are_known_where_null_fits(commands):
    assert commands.schema("SELECT n + ? AS n, s FROM t", CALL).names == ["n", "s"]
    assert commands.schema("SELECT lag(n, ?) OVER (ORDER BY n) FROM t", CALL) is None
    assert commands.schema("SELECT ntile(?) OVER (ORDER BY n) FROM t", CALL) is None
    assert commands.schema("DROP TABLE t", CALL) is None
    with pytest.raises(PlanError, match="no column nope"):
        commands.schema("SELECT nope FROM t", CALL)
    with pytest.raises(PlanError, match="2 statements were sent"):
        commands.schema("SELECT 1; SELECT 2", CALL)
    with pytest.raises(PlanError, match="no statement"):
        commands.schema(" -- nothing", CALL)


def test_parameters_are_found_outside_of_texts_and_comments():
    text = "SELECT ?, '?', \"a?\" /* ? */ FROM t -- ?\nWHERE a = ?"
    assert numbered(text) == "SELECT $1, '?', \"a?\" /* ? */ FROM t -- ?\nWHERE a = $2"
    assert parameter_names(numbered(text)) == ["1", "2"]
    assert parameter_names("SELECT a::int, :low, b::text FROM t WHERE x = :high OR x = :low") == ["low", "high"]
    assert parameter_names("SELECT 1") == []


def test_parameters_go_by_name_or_in_order():
    text = "SELECT :low, :high"
    assert list(parameter_sets(text, given(high=[2], low=[1]))) == [{"high": 2, "low": 1}]
    assert list(parameter_sets(text, given(a=[1], b=[2]))) == [{"low": 1, "high": 2}]
    assert list(parameter_sets("SELECT $1, $2", given(b=[1], a=[2]))) == [[1, 2]]
    assert list(parameter_sets("SELECT 1", b"")) == [None]
    with pytest.raises(PlanError, match="1 values were given for 2 parameters"):
        list(parameter_sets(text, given(a=[1])))
    twice = stream_bytes(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]))
    assert list(parameter_sets("SELECT $1, $2", twice)) == [[1, 2]]
    with pytest.raises(PlanError, match="damaged"):
        list(parameter_sets("SELECT $1", b"nothing"))


def test_a_ticket_of_others_is_an_error(commands):
    with pytest.raises(PlanError, match="none of this server's"):
        ticket_of(b"\xff\x00")
    with pytest.raises(PlanError, match="a ticket is of a query"):
        commands.rows(Ticket("DROP TABLE t"), CALL)


def test_batches_are_sent_in_pieces():
    batch = pa.record_batch({"n": pa.array(range(1000), pa.int64())})
    found = list(pieces_of(batch, 800))
    assert {piece.num_rows for piece in found} == {100}
    assert pa.Table.from_batches(found).column(0).to_pylist() == list(range(1000))
    assert [piece.num_rows for piece in pieces_of(pa.record_batch({"s": ["x" * 100, "y"]}), 10)] == [1, 1]
    assert list(pieces_of(batch.slice(0, 0))) == []


def test_a_change_waits_for_another_and_gives_up_where_its_client_goes(commands):
    is_gone = threading.Event()
    commands._changing.acquire()
    try:
        errors = []

        def run():
            try:
                commands.changed("DROP TABLE t", Call("me", is_gone.is_set))
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        is_gone.set()
        thread.join(30)
        assert [type(error) for error in errors] == [GoneError]
    finally:
        commands._changing.release()


def test_a_statement_whose_client_has_gone_ends_its_job(commands, env):
    env.register("slow", env.from_arrow(pa.table({"n": range(100_000)}), rate_limit=100.0))
    is_gone = threading.Event()
    call = Call("me", is_gone.is_set)
    _, ticket = commands.asked("SELECT n FROM slow", call)
    _, batches = commands.rows(ticket, call)
    assert next(batches).num_rows
    is_gone.set()
    with pytest.raises(GoneError, match="went away"):
        for _ in batches:
            pass
    assert commands.running.admission.running == 0
    is_gone.clear()
    threading.Timer(0.3, is_gone.set).start()
    with pytest.raises(GoneError):
        commands.changed("CREATE TABLE k AS SELECT n FROM slow", call)
    assert "k" not in env.tables


def test_jobs_have_the_text_of_their_statement_as_their_name(commands, monkeypatch):
    names = []
    made = environment.build_plan
    monkeypatch.setattr(environment, "build_plan", lambda sinks, name, *more, **rest: (
        names.append(name), made(sinks, name, *more, **rest))[1])  # fmt: skip
    rows_of(commands, "SELECT n\n  FROM t")
    rows_of(commands, "SELECT 'x' AS x, n FROM t WHERE n < ?", given(x=[2]))
    commands.changed("CREATE TABLE u AS SELECT n FROM t", CALL)
    rows_of(commands, f"SELECT '{'y' * 300}' AS y")
    assert names[:2] == ["SELECT n FROM t (stream)", "SELECT 'x' AS x, n FROM t WHERE n < $1 (stream)"]
    assert names[2] == "CREATE TABLE u"
    assert names[3].endswith("y… (stream)") and len(names[3]) == 209
    assert job_name() not in " ".join(names), "a statement names its own jobs alone"


@pytest.mark.parametrize("text", ["", "SELECT n FROM t WHERE s = $1"])
def test_offsets_of_a_client_lead_nowhere(commands, text):
    damaged = bytearray(given(x=["abcdef", "abcdef"]))
    place = damaged.index(struct.pack("<3i", 0, 6, 12))
    damaged[place : place + 12] = struct.pack("<3i", 0, 1 << 28, 1 << 29)
    ticket = Ticket(text, bytes(damaged)) if text else Ticket(rows=bytes(damaged))
    with pytest.raises(PlanError, match="damaged"):
        list(commands.rows(ticket, CALL)[1])
    for size in range(0, len(damaged), 7):
        with contextlib.suppress(PlanError):
            table_of(bytes(damaged[:size]))


def test_no_more_changes_wait_for_each_other_than_may(env):
    running = RunningStatements(1, 0, 60.0)
    try:
        commands = Commands(StatementSession(env), running)
        with commands._alone(CALL), pytest.raises(BusyError, match="max-waiting"):
            commands.changed("CREATE TABLE v AS SELECT n FROM t", CALL)
        commands.changed("CREATE TABLE v AS SELECT n FROM t", CALL)
    finally:
        running.close()
