"""Clients that hold what they do not use: sockets half open, rows not taken, statements never closed. Others go on."""

import contextlib
import gc
import socket
import threading
from urllib.parse import urlsplit

import psutil
import pytest

from tests.flight_sql.conftest import until
from tests.flight_sql.test_many_connections import held, prepared, told

pytest.importorskip("adbc_driver_flightsql")
import adbc_driver_flightsql.dbapi as dbapi

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

WORKING, STALLED, HALF_OPEN, NEVER_CLOSED = 50, 12, 100, 1000
SETTINGS = [
    word
    for setting in ("max-running=4", "max-waiting=200", "reader.timeout=3 s")
    for word in ("-D", f"flight-sql.{setting}")
]
#: begins of calls that never go on: nothing, half a preface, a preface, a frame of which only the head comes
BEGINS = (b"", b"PRI * HTTP", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x40\x00\x00")


@pytest.fixture
def place(serve, tmp_path):
    """Start a server with a table; return its address and process."""
    text = tmp_path / "first.sql"
    text.write_text("CREATE TABLE numbers AS SELECT unnest(range(0, 200000)) AS n")
    server, uri = serve("-f", text, "--no-token", "-D", "parallelism.default=1", *SETTINGS)
    return uri, psutil.Process(server.pid)


def half_open(stack, uri):
    """Open connections that go no further."""
    at = urlsplit(uri)
    for number in range(HALF_OPEN):
        raw = stack.enter_context(socket.create_connection((at.hostname, at.port), 10))
        raw.sendall(BEGINS[number % len(BEGINS)])


def stall(stack, uri):
    """Begin statements of which no more than one batch is taken; return their rows."""
    begun = []

    def begin():
        cursor = stack.enter_context(stack.enter_context(told(uri)).cursor())
        cursor.execute("SELECT a.n AS n FROM numbers a CROSS JOIN numbers b")
        rows = cursor.fetch_record_batch()
        assert rows.read_next_batch().num_rows
        begun.append(rows)

    at_once(begin for _ in range(STALLED))
    assert len(begun) == STALLED
    return begun


def never_closed(stack, uri):
    """Prepare statements, some with values, and close none."""
    connection = stack.enter_context(told(uri))
    for number in range(NEVER_CLOSED):
        cursor = connection.cursor()
        stack.push(lambda *_, cursor=cursor: cursor.close())
        cursor.adbc_prepare(f"SELECT n + {number} FROM numbers WHERE n = $1")
        if number % 100 == 0:
            cursor.execute(f"SELECT n + {number} FROM numbers WHERE n = $1", (number,))
            assert cursor.fetchall() == [(2 * number,)]


def at_once(calls):
    """Make calls in threads of their own; raise the first of their errors."""
    failed = []

    def run(call):
        try:
            call()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    if failed:
        raise failed[0]


def work(uri, number):
    with told(uri) as connection:
        prepared(connection, number)


def all_of_it(uri):
    """Have careless clients, and others that work beside them."""
    with contextlib.ExitStack() as stack:
        half_open(stack, uri)
        never_closed(stack, uri)
        stalled = stall(stack, uri)
        at_once(lambda number=number: work(uri, number) for number in range(WORKING))
        for rows in stalled:
            with pytest.raises((dbapi.Error, OSError), match="no row was taken for 3 s"):
                while rows.read_next_batch().num_rows:
                    pass
    gc.collect()


def test_careless_clients_hold_up_no_others_and_leave_nothing_behind(place):
    uri, process = place
    all_of_it(uri)
    assert until(lambda: process.num_fds() < HALF_OPEN), held(process)
    before, memory = held(process), process.memory_info().rss
    all_of_it(uri)
    assert until(lambda: all(now <= then + 5 for now, then in zip(held(process), before, strict=True))), held(process)
    grown = process.memory_info().rss - memory
    print(
        f"{memory >> 20} MB after one round, {grown / 2**20:+.1f} MB after two more; {held(process)}, before {before}"
    )
    assert grown < 64 << 20
