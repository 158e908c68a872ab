"""A PostgreSQL server for all tests of a process here, and a place for tables in each kind of database."""

import uuid

import pytest

from tests.postgresql_server import postgresql


@pytest.fixture(scope="session")
def postgresql_uri():
    with postgresql() as uri:
        yield uri


@pytest.fixture(params=["postgresql", "sqlite"])
def place(request, tmp_path):
    """A database, and the name of a table that is not there."""
    name = f"t{uuid.uuid4().hex[:8]}"
    if request.param == "sqlite":
        pytest.importorskip("adbc_driver_sqlite.dbapi")
        return f"sqlite://{tmp_path}/a b.db", name
    pytest.importorskip("adbc_driver_postgresql.dbapi")
    return request.getfixturevalue("postgresql_uri"), name
