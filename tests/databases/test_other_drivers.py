"""Databases of other drivers: what is read, what decides there, what is shown of places, what is refused."""

import base64
import datetime
from decimal import Decimal
from urllib.parse import quote

import pytest

from engine import Environment, col
from engine.databases import database_connection
from engine.databases.database_connection import _full, connected, kept_apart, needs_password, open_connection
from engine.errors import ConfigurationError, DataError, ResourceError, SchemaError
from tests.databases.flight_sql_server import PASSWORD, USER, flight_sql

MADE = """CREATE TABLE things AS SELECT range AS id, 'it''s ' || range AS s, range / 8 AS f, (range / 8)::DECIMAL(20, 3)
 AS d, DATE '2020-01-01' + range::INT AS day, TIMESTAMPTZ '2020-01-01 01:00+01' AS moment, range % 2 = 0 AS even,
 CASE WHEN range > 0 THEN [range, NULL] END AS many, 'x'::BLOB AS bytes, INTERVAL 1 DAY AS later FROM range(5000)"""
COLUMNS = "id, s, f, d, day, moment, even, many, bytes"


@pytest.fixture(params=["duckdb", "flightsql"])
def place(request, tmp_path):
    """A driver, and a place of it that is as fast as it is safe to have for each test."""
    pytest.importorskip("adbc_driver_manager")
    pytest.importorskip(f"adbc_driver_{request.param}")
    if request.param == "flightsql":
        with flight_sql(MADE) as uri:
            yield "flightsql", uri.replace("://", f"://{USER}:{quote(PASSWORD, safe='')}@")
        return
    path = f"{tmp_path}/a b.duckdb"
    with duckdb_at(path) as cursor:
        cursor.execute(MADE)
    yield "duckdb", path


def duckdb_at(path):
    import duckdb

    return duckdb.connect(path)


@pytest.mark.parametrize("parts", [1, 3])
def test_rows_are_read_in_ranges(place, parts):
    driver, uri = place
    query = f"SELECT {COLUMNS} FROM things"
    with Environment({"parallelism.default": "2"}) as env:
        data = env.read_database(query, uri, partition_on="id", partitions=parts, driver=driver)
        table = data.to_arrow().sort_by("id")
        assert table.column("id").to_pylist() == list(range(5000))
        assert table.slice(3, 1).to_pylist() == [
            {
                "id": 3,
                "s": "it's 3",
                "f": 0.375,
                "d": Decimal("0.375"),
                "day": datetime.date(2020, 1, 4),
                "moment": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
                "even": False,
                "many": [3, None],
                "bytes": b"x",
            }
        ]
        kept = data.filter((col("id") >= 10) & (col("s") != "it's 12") & col("even") & (col("d") < 2)).select("id")
        assert sorted(row["id"] for row in kept.collect()) == [10, 14]
        explained = kept.explain()
        assert PASSWORD not in explained
        assert quote(PASSWORD, safe="") not in explained
        # What integers are compared with is the same everywhere.
        assert '(q."id" >= 10)' in explained
        assert '"even" AND' not in explained
        assert data.select("s").filter(col("s") == "it's 7").count() == 1


def test_types_without_values_are_refused_with_a_cast(place):
    driver, uri = place
    with Environment() as env:
        with pytest.raises(SchemaError, match=r"'later' is of type month.*; select CAST"):
            env.read_database("things", uri, driver=driver)
        with pytest.raises((DataError, ResourceError), match="nothing_there"):
            env.read_database("nothing_there", uri, driver=driver)


@pytest.mark.parametrize(
    ("driver", "uri", "shown"),
    [
        ("duckdb", "/a b/c.duckdb", "adbc:duckdb:/a b/c.duckdb"),
        ("flightsql", "grpc+tls://host:31337/x", "adbc:flightsql:grpc+tls://host:31337/x"),
        ("flightsql", "grpc://me:pw@host:1", "adbc:flightsql:grpc://host:1#hidden-"),
        ("flightsql", "grpc://host:1?adbc.flight.sql.authorization_header=pw", "adbc:flightsql:grpc://host:1#hidden-"),
        ("snowflake", "me:pw@account/db", "adbc:snowflake:hidden-"),
        ("/lib/libodd.so", "Server=h;Pwd=pw;", "adbc:/lib/libodd.so:hidden-"),
        ("flightsql", "env:NAME", "adbc:flightsql:env:NAME"),
    ],
)
def test_secrets_of_places_are_not_shown(driver, uri, shown):
    found = kept_apart(uri, driver)
    assert found.startswith(shown.partition("hidden-")[0])
    assert ("hidden-" in found) == ("hidden-" in shown)
    assert "pw" not in found
    assert needs_password(found) == ("pw" in uri)


def test_places_that_differ_in_what_is_not_shown_are_two_places():
    # The same host, and two databases of it.
    ours, theirs = (kept_apart(f"grpc://host:1/?database={name}", "flightsql") for name in ("ours", "theirs"))
    assert ours != theirs
    assert ours == kept_apart("grpc://host:1/?database=ours", "flightsql")
    assert _full(ours).endswith("database=ours")


@pytest.mark.parametrize("shown", ["hidden-0763440d", "a;b", "grpc://host:1#hidden-0763440d"])
def test_what_is_shown_in_place_of_a_place_is_never_connected_to(shown, monkeypatch, tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("adbc_driver_manager")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(database_connection, "_FULL", {})
    place = kept_apart(shown, "duckdb") if shown == "a;b" else f"adbc:duckdb:{shown}"
    monkeypatch.setattr(database_connection, "_FULL", {})
    with pytest.raises(ConfigurationError, match="does not know the place"):
        open_connection(place)
    with Environment() as env, pytest.raises(ConfigurationError, match="does not know the place"):
        env.read_database("t", "hidden-0763440d", driver="duckdb")
    assert list(tmp_path.iterdir()) == []


def test_errors_have_no_secrets():
    pytest.importorskip("adbc_driver_flightsql")
    with flight_sql() as uri:
        shown = kept_apart(uri.replace("://", "://reader:5ecret@"), "flightsql")
        with (
            pytest.raises((DataError, ResourceError), match="reader is not let in") as caught,
            connected(shown, has_password=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT 1")
    assert "5ecret" not in str(caught.value)
    assert base64.b64encode(b"reader:5ecret").decode().rstrip("=") not in str(caught.value)


def test_what_is_not_there_or_not_supported_is_told(monkeypatch, tmp_path):
    pytest.importorskip("adbc_driver_manager")
    with Environment() as env:
        with pytest.raises(ConfigurationError, match="leave it out"):
            env.read_database("t", "sqlite://x.db", driver="sqlite")
        with pytest.raises(ConfigurationError, match="quotes names in its own way"):
            env.read_database("t", "x", driver="mysql")
        with pytest.raises(ConfigurationError, match="no driver 'nobody'"):
            env.read_database("t", "x", driver="nobody")
        monkeypatch.setenv("PLACE", f"{tmp_path}/none.duckdb")
        with pytest.raises(ResourceError, match=r"none\.duckdb"):
            env.read_database("t", "env:PLACE", driver="duckdb")
        assert list(tmp_path.iterdir()) == []
