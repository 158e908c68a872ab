"""URIs: a password is shown nowhere, and does not leave its process."""

import subprocess
import sys

import pytest

from engine.databases import database_connection
from engine.databases.database_connection import connected, dialect_of, kept_apart, needs_password
from engine.errors import ConfigurationError, ResourceError


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://me:pw@host:5432/db", "postgresql://me@host:5432/db"),
        ("postgres://me:p%40w@host/db?sslmode=require", "postgres://me@host/db?sslmode=require"),
        ("postgresql:///db?host=%2Ftmp&user=me&password=pw", "postgresql:///db?host=%2Ftmp&user=me"),
        ("postgresql://host/db?sslpassword=pw", "postgresql://host/db"),
    ],
)
def test_passwords_are_kept_apart(uri, shown):
    assert kept_apart(uri) == shown
    assert needs_password(shown)


def test_a_uri_without_a_password_stays_as_it_is(tmp_path, monkeypatch):
    assert kept_apart("postgresql://me@other:1/db") == "postgresql://me@other:1/db"
    assert not needs_password("postgresql://me@other:1/db")
    monkeypatch.chdir(tmp_path)
    assert kept_apart("sqlite://a.db") == f"sqlite://{tmp_path}/a.db"
    assert kept_apart(f"sqlite:///{tmp_path}/a.db") == f"sqlite://{tmp_path}/a.db"


@pytest.mark.parametrize("uri", ["postgresql://me:a/b@host/db", "postgresql://me:a#b@host/db", "postgresql://[a:b@h/x"])
def test_what_cannot_be_taken_apart_is_refused_and_not_shown(uri):
    with pytest.raises(ConfigurationError, match="write / as %2F") as caught:
        kept_apart(uri)
    assert "b@" not in str(caught.value)


def test_three_slashes_before_a_name_alone_are_refused(monkeypatch):
    monkeypatch.setenv("ROOT_URI", "sqlite:///x.db")
    for uri in ("sqlite:///x.db", "env:ROOT_URI"):
        with pytest.raises(ConfigurationError, match=r"write sqlite://x\.db for a file of the current folder"):
            kept_apart(uri)
    assert kept_apart("sqlite:////x.db") == "sqlite:///x.db"


def test_other_schemes_are_refused_and_not_shown():
    with pytest.raises(ConfigurationError, match="mysql:// is not supported") as caught:
        kept_apart("mysql://me:pw@host/db")
    assert "pw" not in str(caught.value)


def test_a_variable_is_looked_up_by_each_process(monkeypatch):
    monkeypatch.setenv("SALES_URI", "sqlite://x.db")
    assert kept_apart("env:SALES_URI") == "env:SALES_URI"
    assert dialect_of("env:SALES_URI") == "sqlite"
    monkeypatch.delenv("SALES_URI")
    with pytest.raises(ConfigurationError, match="no environment variable SALES_URI; set it"):
        dialect_of("env:SALES_URI")


def test_another_process_says_how_it_gets_the_password():
    with (
        pytest.raises(ConfigurationError, match="on a cluster pass uri='env:NAME'"),
        connected("postgresql://me@nowhere/db", has_password=True),
    ):
        pass


def test_texts_of_drivers_have_no_password(tmp_path):
    pytest.importorskip("adbc_driver_postgresql")
    shown = kept_apart(f"postgresql://me:5ecr%20et@/5ecr%20et?host={tmp_path}")
    with pytest.raises(ResourceError, match="is the server there") as caught, connected(shown, has_password=True):
        pass
    assert "5ecr" not in str(caught.value).replace(shown, "")
    assert caught.value.__cause__ is None


def test_a_package_that_is_missing_or_too_old_is_told(monkeypatch, tmp_path):
    pytest.importorskip("adbc_driver_sqlite")
    place = tmp_path / "a.db"
    place.touch()
    monkeypatch.setattr("adbc_driver_sqlite.__version__", "1.11.0")
    too_old = "adbc-driver-sqlite 1.11.0 changes values of NUMERIC"
    with pytest.raises(ConfigurationError, match=too_old), connected(f"sqlite://{place}"):
        pass
    monkeypatch.setitem(database_connection._DRIVERS, "sqlite", "adbc_driver_of_nobody")
    missing = r"adbc-driver-of-nobody; install it: pip install 'drey-engine\[databases\]'"
    with pytest.raises(ConfigurationError, match=missing), connected(f"sqlite://{place}"):
        pass


_WRITER = """
import sqlite3, sys, time
writer = sqlite3.connect(sys.argv[1])
writer.execute("CREATE TABLE t (i INTEGER)")
writer.commit()
writer.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(2.5)  # longer than the driver waits of itself
writer.execute("INSERT INTO t VALUES (1)")
writer.commit()
"""


def test_a_statement_waits_for_another_process_that_writes_to_the_file(tmp_path):
    path = tmp_path / "a.db"
    with subprocess.Popen([sys.executable, "-c", _WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "locked\n"
        with connected(kept_apart(f"sqlite://{path}")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM t")
            assert cursor.rows() == [(1,)]
    assert writer.returncode == 0
