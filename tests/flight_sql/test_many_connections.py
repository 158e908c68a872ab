"""Fifty connections as a tool of many users has: prepared statements, cancelled ones, slow and killed readers."""

import subprocess
import sys
import threading
import time

import psutil
import pytest

from tests.flight_sql.conftest import until
from tests.flight_sql.test_processes import CLIENT

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi

pytestmark = pytest.mark.processes

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


KINDS = (prepared, listed, wrong, slow, left)


def run_round(uri, token):
    failed = []

    def run(number):
        try:
            with told(uri, username=f"user{number}", password=token) as connection:
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


@pytest.mark.timeout(600)
def test_fifty_connections_leave_nothing_behind(serve, conf, tmp_path):
    text = tmp_path / "first.sql"
    text.write_text(f"CREATE TABLE numbers AS SELECT unnest(range(0, {ROWS})) AS n")
    server, uri = serve("-f", text, *SETTINGS)
    token = (conf / "flight-sql.token").read_text().strip()
    for bad in ({}, {"username": "me", "password": token[:-1]}, {"username": "me", "password": ""}):
        with pytest.raises(dbapi.Error, match=r"(?i)unauth"), told(uri, **bad) as one, one.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchall()
    process = psutil.Process(server.pid)
    run_round(uri, token)
    before, memory = held(process), process.memory_info().rss
    for _ in range(ROUNDS - 1):
        run_round(uri, token)
    code = CLIENT.replace(
        "sys.argv[1], autocommit", f"sys.argv[1], {{'username': 'k', 'password': {token!r}}}, autocommit"
    )
    query = "SELECT a.n AS n FROM numbers a CROSS JOIN numbers b"
    killed = subprocess.Popen([sys.executable, "-c", code, uri, query], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert int(killed.stdout.readline()) > 0
    killed.kill()
    killed.communicate()
    assert until(lambda: all(now <= then + 5 for now, then in zip(held(process), before, strict=True))), held(process)
    assert process.memory_info().rss - memory < 200 << 20
    with told(uri, username="last", password=token) as connection:
        prepared(connection, 1)
