"""Fifty connections as a tool of many users has: prepared statements, cancelled ones, slow and killed readers."""

import socket
import struct
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import psutil
import pyarrow as pa
import pytest

from tests.entrypoint.conftest import installation  # noqa: F401 - a fixture
from tests.flight_sql.conftest import until
from tests.flight_sql.test_processes import CLIENT
from tests.flight_sql.test_service import SCRIPT

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi

pytestmark = pytest.mark.processes

ROOTS = "adbc.flight.sql.client_option.tls_root_certs"
CONNECTIONS, ROUNDS, ROWS = 50, 3, 200_000
SETTINGS = ["-D", "flight-sql.max-running=8", "-D", "flight-sql.max-waiting=200", "-D", "parallelism.default=1"]


def told(uri, **options):
    return dbapi.connect(uri, options or None, autocommit=True)


def prepared(connection, number):
    with connection.cursor() as cursor:
        first, second = ("$1", "$2") if number % 2 else ("?", "?")
        text = f"SELECT count(*), min(n) FROM numbers WHERE n >= {first} AND n < {second}"
        for begin in (number, number * 10):
            cursor.execute(text, (begin, begin + 100))
            assert cursor.fetchall() == [(100, begin)]


def listed(connection, _number):
    found = connection.adbc_get_objects(depth="tables", table_name_filter="num%").read_all().to_pylist()
    assert [each["db_schema_tables"][0]["table_name"] for each in found[0]["catalog_db_schemas"]] == ["numbers"]
    assert connection.adbc_get_info()["vendor_name"] == "Drey"


def wrong(connection, number):
    with connection.cursor() as cursor, pytest.raises(dbapi.Error, match="no column nope"):
        cursor.execute(f"SELECT nope + {number} FROM numbers")


def slow(connection, _number):
    with connection.cursor() as cursor:
        cursor.execute("SELECT n, n::text AS s FROM numbers")
        taken = 0
        for batch in cursor.fetch_record_batch():
            taken += batch.num_rows
            time.sleep(0.005)
        assert taken == ROWS


def left(connection, _number):
    with connection.cursor() as cursor:
        cursor.execute("SELECT a.n AS n FROM numbers a CROSS JOIN numbers b")
        assert cursor.fetch_record_batch().read_next_batch().num_rows


def cancelled(connection, number):
    with connection.cursor() as cursor:
        cursor.execute("SELECT a.n AS n FROM numbers a CROSS JOIN numbers b")
        rows = cursor.fetch_record_batch()
        assert rows.read_next_batch().num_rows
        cursor.adbc_cancel()
        with pytest.raises((dbapi.Error, pa.ArrowException, OSError)):
            while True:
                rows.read_next_batch()
    prepared(connection, number)


def broken(connection, number):
    """Send what is no call, and end connections of TCP in the middle of one."""
    place = urlsplit(connection.adbc_uri)
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes(range(256)), b""):
        with socket.create_connection((place.hostname, place.port), 10) as raw:
            raw.sendall(sent)
            if number % 2:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST


KINDS = (prepared, listed, wrong, slow, left, cancelled, broken)


def run_round(uri, **options):
    failed = []

    def run(number):
        try:
            with told(uri, username=f"user{number}", **options) as connection:
                connection.adbc_uri = uri
                KINDS[number % len(KINDS)](connection, number)
        except BaseException as error:
            failed.append((number, error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert failed == []


def held(process):
    """Return the descriptors, threads and children of a server."""
    return process.num_fds(), process.num_threads(), len(process.children(recursive=True))


@pytest.fixture
def cluster(installation, conf):  # noqa: F811
    """Start a cluster that speaks TLS; yield what a server for it is told, and its authority."""
    folder = conf / "tls"
    subprocess.run([str(SCRIPT), str(folder)], check=True, capture_output=True)
    names = {"certificate": "cluster.pem", "key": "cluster.key", "ca": "ca.pem"}
    settings = {"security.ssl.enabled": "true"}
    settings |= {f"security.ssl.{name}": folder / file for name, file in names.items()}
    installation.configure(**settings, **{"taskmanager.numberOfTaskSlots": 8})
    assert installation.run("cluster", "start").returncode == 0
    (conf / "cluster.secret").write_bytes((installation.conf / "cluster.secret").read_bytes())
    (conf / "cluster.secret").chmod(0o600)
    told = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    yield ["-t", "cluster", "-m", f"localhost:{installation.port}", *told], (folder / "ca.pem").read_text()
    assert "RUNNING" not in installation.run("job", "list", command=(sys.executable, "-m", "engine.cli.main")).stdout
    assert installation.run("cluster", "stop").returncode == 0


@pytest.mark.timeout(600)
def test_fifty_connections_leave_nothing_behind(serve, conf, tmp_path):
    attacked(serve, conf, tmp_path, [], {})


@pytest.mark.timeout(600)
def test_fifty_connections_leave_nothing_behind_on_a_cluster_with_tls(serve, conf, tmp_path, cluster):
    words, authority = cluster
    attacked(serve, conf, tmp_path, words, {ROOTS: authority})


def attacked(serve, conf, tmp_path, words, options):
    text = tmp_path / "first.sql"
    text.write_text(f"CREATE TABLE numbers AS SELECT unnest(range(0, {ROWS})) AS n")
    server, uri = serve("-f", text, *SETTINGS, *words)
    token = (conf / "flight-sql.token").read_text().strip()
    for bad in ({}, {"username": "me", "password": token[:-1]}, {"username": "me", "password": ""}):
        with (
            pytest.raises(dbapi.Error, match=r"(?i)unauth"),
            told(uri, **bad, **options) as one,
            one.cursor() as cursor,
        ):
            cursor.execute("SELECT 1")
            cursor.fetchall()
    process = psutil.Process(server.pid)
    options = {**options, "password": token}
    run_round(uri, **options)
    before, memory = held(process), process.memory_info().rss
    for _ in range(ROUNDS - 1):
        run_round(uri, **options)
    code = CLIENT.replace("sys.argv[1], autocommit", f"sys.argv[1], {{'username': 'k', **{options!r}}}, autocommit")
    query = "SELECT a.n AS n FROM numbers a CROSS JOIN numbers b"
    killed = subprocess.Popen([sys.executable, "-c", code, uri, query], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert int(killed.stdout.readline()) > 0
    killed.kill()
    killed.communicate()
    assert until(lambda: all(now <= then + 5 for now, then in zip(held(process), before, strict=True))), held(process)
    assert process.memory_info().rss - memory < 200 << 20
    with told(uri, username="last", **options) as connection:
        prepared(connection, 1)
