"""``flink-run serve`` as a process: killed clients, slow readers, signals, a taken port, a cluster behind it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq
import pytest

from engine.flight_sql.messages import packed
from engine.rpc.principal import Role
from engine.rpc.user_tokens import add_user
from tests.entrypoint.conftest import installation  # noqa: F401 - a fixture
from tests.flight_sql.conftest import until

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi

pytestmark = pytest.mark.processes

CLIENT = """
import sys
import adbc_driver_flightsql.dbapi as dbapi
with dbapi.connect(sys.argv[1], autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute(sys.argv[2])
    print(cursor.fetch_record_batch().read_next_batch().num_rows, flush=True)
    sys.stdin.read()
"""
ROWS = 4_000_000
ENDLESS = "SELECT a.n AS n, b.n AS m FROM numbers a CROSS JOIN numbers b"


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table(dict.fromkeys("nabcdefg", pa.array(np.arange(ROWS)))), path, row_group_size=100_000)
    return path


def rows(uri, query, token=""):
    login = {"username": "any", "password": token} if token else {}
    with dbapi.connect(uri, login, autocommit=True) as connected, connected.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def test_a_client_that_is_killed_ends_its_statement(serve, numbers):
    server, uri = serve(
        "--table", f"numbers={numbers}", "--no-token", "-D", "flight-sql.max-running=1",
        "-D", "flight-sql.max-waiting=0", "-D", "taskmanager.memory.process.size=512mb",
    )  # fmt: skip
    clients = [
        subprocess.Popen([sys.executable, "-c", CLIENT, uri, ENDLESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ]
    try:
        assert int(clients[0].stdout.readline()) > 0
        with pytest.raises(dbapi.Error, match="1 statements run"):
            rows(uri, "SELECT 1")
        clients[0].send_signal(signal.SIGKILL)

        def is_free():
            try:
                return rows(uri, "SELECT count(*) FROM numbers") == [(ROWS,)]
            except dbapi.Error:
                return False

        assert until(is_free), "the statement of a killed client did not end"
    finally:
        for client in clients:
            client.kill()
            client.communicate()
    process = psutil.Process(server.pid)
    before = process.cpu_times().user
    time.sleep(0.5)
    assert process.cpu_times().user - before < 0.4, "something still runs"


def test_a_huge_result_with_a_slow_reader_takes_little_memory(serve, numbers):
    """256 MB for one row of 400: the rows wait in the job, and neither in the server nor on disk."""
    server, uri = serve("--table", f"numbers={numbers}", "--no-token", "-D", "taskmanager.memory.process.size=512mb")
    process = psutil.Process(server.pid)
    assert rows(uri, "SELECT count(*) FROM numbers WHERE g >= 0") == [(ROWS,)]
    with flight.connect(uri) as client:
        command = packed("CommandStatementQuery", query="SELECT * FROM numbers")
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        before, most, taken = process.memory_info().rss, 0, 0
        reader = client.do_get(info.endpoints[0].ticket)
        for _ in range(40):
            taken += reader.read_chunk().data.num_rows
            time.sleep(0.01)
            most = max(most, process.memory_info().rss)
        assert most - before < 120 << 20, f"{(most - before) >> 20} MB more"
        taken += sum(chunk.data.num_rows for chunk in reader)
        assert taken == ROWS


def test_it_ends_with_its_signal_and_cancels_what_runs(serve, numbers):
    server, uri = serve("--table", f"numbers={numbers}", "--no-token")
    with flight.connect(uri) as client:
        command = packed("CommandStatementQuery", query=ENDLESS)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        server.send_signal(signal.SIGTERM)
        with pytest.raises(flight.FlightError, match=r"shutting down|Socket closed|unavailable"):
            while True:
                reader.read_chunk()
    _, said = server.communicate(timeout=60)
    assert server.returncode == 0, said
    assert "Traceback" not in said


def test_it_ends_although_a_reader_stands_still(serve, numbers):
    server, uri = serve("--table", f"numbers={numbers}", "--no-token")
    with flight.connect(uri) as client:
        command = packed("CommandStatementQuery", query=ENDLESS)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        time.sleep(1)
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=60) == 0


def test_a_second_server_at_its_port_says_what_is_wrong(serve, conf, tmp_path):
    _, uri = serve("--no-token")
    port = uri.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", "serve", "--flight-sql", port],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"serve cannot listen at 127.0.0.1:{port}: is the port taken by another process" in done.stderr
    assert rows(uri, "SELECT 1") == [(1,)]


def test_statements_of_a_file_come_first_and_the_token_is_in_no_output(serve, conf, tmp_path):
    (tmp_path / "views.sql").write_text(
        "CREATE VIEW one AS SELECT 1 AS n;\nCREATE TABLE two AS SELECT n + 1 AS n FROM one"
    )
    server, uri = serve("-f", tmp_path / "views.sql", "--read-only")
    token = (conf / "flight-sql.token").read_text().strip()
    with dbapi.connect(uri, {"username": "me", "password": token}, autocommit=True) as one, one.cursor() as cursor:
        cursor.execute("SELECT n FROM one UNION ALL SELECT n FROM two ORDER BY n")
        assert cursor.fetchall() == [(1,), (2,)]
    server.send_signal(signal.SIGTERM)
    said = "".join(server.communicate(timeout=60))
    assert server.returncode == 0
    assert token not in said and token not in " ".join(psutil.Process().cmdline())


def test_statements_run_on_a_cluster(serve, conf, numbers, installation):  # noqa: F811
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr
    master = f"localhost:{installation.port}"
    secret = installation.conf / "cluster.secret"
    (conf / "cluster.secret").write_bytes(secret.read_bytes())
    Path(conf / "cluster.secret").chmod(0o600)
    _, uri = serve("--table", f"numbers={numbers}", "--no-token", "-t", "cluster", "-m", master)
    assert rows(uri, "SELECT count(*), sum(n) FROM numbers") == [(ROWS, ROWS * (ROWS - 1) // 2)]
    out = os.fspath(numbers.with_name("out"))
    assert rows(uri, f"COPY (SELECT n FROM numbers WHERE n < 10) TO '{out}' (FORMAT parquet)") == [(10,)]
    assert rows(uri, f"SELECT sum(n) FROM '{out}'") == [(45,)]
    with flight.connect(uri) as client:
        command = packed("CommandStatementQuery", query=ENDLESS)
        info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
        reader = client.do_get(info.endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        reader.cancel()

    def has_ended():
        listed = installation.run("job", "list", command=(sys.executable, "-m", "engine.cli.main")).stdout
        return "RUNNING" not in listed

    assert until(has_ended), "a cancelled job runs on, on the cluster"
    assert installation.run("cluster", "stop").returncode == 0


def test_jobs_on_a_cluster_belong_to_the_user_of_the_statement_or_of_the_server(serve, conf, installation):  # noqa: F811
    ada = add_user(conf / "users.tokens", "ada", Role.SUBMIT)
    own = conf / "bi.token"
    own.write_text(add_user(installation.conf / "users.tokens", "bi", Role.SUBMIT))
    own.chmod(0o600)
    started = installation.run("cluster", "start")
    assert started.returncode == 0, started.stderr
    (conf / "cluster.secret").write_bytes((installation.conf / "cluster.secret").read_bytes())
    (conf / "cluster.secret").chmod(0o600)
    users = f"security.users-file={conf / 'users.tokens'}"
    target = ("-t", "cluster", "-m", f"localhost:{installation.port}", "-D", users)
    for extra, user in (((), "ada"), (("-D", f"security.token-file={own}"), "bi")):
        _, uri = serve(*target, *extra)
        assert rows(uri, "SELECT sum(n) FROM (VALUES (1), (2)) v(n)", ada) == [(3,)]
        words = ("job", "list", "--user", user, "--state", "FINISHED")
        listed = installation.run(*words, command=(sys.executable, "-m", "engine.cli.main"))
        assert listed.stdout.count("SELECT sum(n)") == 1, listed
    assert installation.run("cluster", "stop").returncode == 0
