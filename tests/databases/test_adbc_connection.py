"""Connections of drivers: results, interrupted ones too, errors with their codes, and what is not imported."""

import subprocess
import sys
from pathlib import Path

import pytest

adbc_driver_postgresql = pytest.importorskip("adbc_driver_postgresql")
pytest.importorskip("adbc_driver_sqlite")

from engine.databases.adbc_connection import AdbcConnection, Error  # noqa: E402


@pytest.fixture
def connection(postgresql_uri):
    database = adbc_driver_postgresql.connect(postgresql_uri)
    connection = AdbcConnection(database, in_transaction=True, is_shared=False)
    yield connection
    connection.close()


def test_a_result_ends_with_the_next_statement(connection):
    with connection.cursor() as cursor:
        cursor.execute("SELECT n, n AS n FROM generate_series(1, 1000000) AS n")
        assert next(iter(cursor.reader())).num_rows > 0
        cursor.execute("SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, NULL")
        assert cursor.rows() == [(1, 2), (3, None)]
        cursor.execute("CREATE TEMP TABLE nothing (a int)")
        assert cursor.rows() == []
        assert cursor.schema_of("SELECT 1::int8 AS a").names == ["a"]


def test_a_cursor_that_fails_leaves_a_connection_that_closes(connection):
    with pytest.raises(Error) as caught, connection.cursor() as cursor:
        cursor.execute("SELECT 1 / (3 - n) FROM generate_series(1, 5) AS n")
        cursor.rows()
    assert "division by zero" in str(caught.value)
    connection.close()
    connection.close()


def test_no_library_of_data_frames_is_imported(tmp_path):
    """Each process that reads would pay 0.4 s and 60 MB for it."""
    program = (
        "import sys; from engine.databases.database_connection import connected\n"
        f"with connected('sqlite://{tmp_path}/a.db', in_transaction=True) as one, one.cursor() as cursor:\n"
        "    cursor.execute('SELECT 1'); assert cursor.rows() == [(1,)]\n"
        "print([name for name in ('pandas', 'polars', 'pyarrow.dataset') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
