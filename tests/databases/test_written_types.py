"""Types that are written: values that a driver would change are refused, before the job or with their column."""

import datetime

import pyarrow as pa
import pytest

from engine.databases.sent_rows import SentRows
from engine.databases.written_table import WrittenTable
from engine.databases.written_types import affinity_of, assigned_to, is_kept_by, sent_type
from engine.errors import DataError, SchemaError


@pytest.mark.parametrize(
    ("data_type", "sql", "sent"),
    [
        (pa.uint8(), "smallint", pa.int16()),
        (pa.uint32(), "bigint", pa.int64()),
        (pa.uint64(), "numeric(20,0)", pa.decimal128(20, 0)),
        (pa.float16(), "real", pa.float32()),
        (pa.decimal128(20, 6), "numeric(20,6)", pa.decimal128(20, 6)),
        (pa.decimal256(50, 10), "numeric(50,10)", pa.decimal256(50, 10)),
        (pa.date64(), "date", pa.date32()),
        (pa.time32("ms"), "time without time zone", pa.time64("us")),
        (pa.timestamp("s"), "timestamp without time zone", pa.timestamp("us")),
        (pa.timestamp("ms", "Europe/Paris"), "timestamp with time zone", pa.timestamp("us", "UTC")),
        (pa.binary(4), "bytea", pa.binary()),
        (pa.large_list(pa.int8()), "smallint[]", pa.list_(pa.int16())),
    ],
)
def test_types_of_postgresql_hold_all_values(data_type, sql, sent):
    assert sent_type("x", data_type, "postgresql") == (sql, sent)


@pytest.mark.parametrize(
    ("data_type", "dialect", "remedy"),
    [
        (pa.timestamp("ns"), "postgresql", "cast it to microseconds"),
        (pa.time64("ns"), "postgresql", "cast it to microseconds"),
        (pa.decimal128(5, -2), "postgresql", "cast it to another type"),
        (pa.duration("us"), "postgresql", "cast it to a text"),
        (pa.list_(pa.list_(pa.int32())), "postgresql", "write its elements as columns"),
        (pa.list_(pa.decimal128(5, 1)), "postgresql", "write its elements as columns"),
        (pa.struct({"a": pa.int32()}), "postgresql", "write its elements as columns"),
        (pa.null(), "postgresql", "cast it to another type"),
        (pa.uint64(), "sqlite", "cast it to a text"),
        (pa.decimal128(5, 1), "sqlite", "cast it to a text or a float"),
        (pa.timestamp("us"), "sqlite", "cast it to a text"),
        (pa.date32(), "sqlite", "cast it to a text"),
        (pa.list_(pa.int32()), "sqlite", "write its elements as columns"),
    ],
)
def test_types_that_are_not_kept_are_refused(data_type, dialect, remedy):
    with pytest.raises(SchemaError, match=f"column 'x' is .*, which {dialect} does not keep; {remedy}"):
        sent_type("x", data_type, dialect)


@pytest.mark.parametrize(
    ("values", "dialect", "words"),
    [
        (pa.array([1.5, float("nan")]), "sqlite", "NaN, for which SQLite stores null"),
        (pa.array([-(2**63)], pa.timestamp("us")), "postgresql", "before the year -4712"),
        (pa.array([-(2**31)], pa.date32()), "postgresql", "before the year -4712"),
        (pa.array([[-(2**31)]], pa.list_(pa.date32())), "postgresql", "before the year -4712"),
        (pa.array([2**62], pa.timestamp("s")), "postgresql", "out of bounds"),
    ],
)
def test_values_that_would_change_are_errors(values, dialect, words):
    written = WrittenTable("u", False, dialect, "", "t", "error", ())
    rows = SentRows(written, pa.schema({"x": values.type}), lambda schema: Collected([]))
    with pytest.raises(DataError, match=f"table t: column 'x' has a value .*{words}"):
        rows.write(pa.record_batch({"x": values}))


def test_the_first_and_the_last_day_are_sent():
    found = []
    written = WrittenTable("u", False, "postgresql", "", "t", "error", ())
    rows = SentRows(written, pa.schema({"x": pa.date32()}), lambda schema: Collected(found))
    days = [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)]
    rows.write(pa.record_batch({"x": pa.array(days, pa.date32())}))
    assert found[0].column("x").to_pylist() == days


class Collected:
    def __init__(self, found):
        self.write = found.append


@pytest.mark.parametrize(
    ("sql_type", "column_type", "assigned"),
    [
        ("integer", "integer", "{}"),
        ("smallint", "bigint", "{}"),
        ("bigint", "integer", None),
        ("bigint", "numeric", "{}"),
        ("bigint", "numeric(19,0)", "{}"),
        ("bigint", "numeric(19,1)", None),
        ("numeric(10,2)", "numeric(12,4)", "{}"),
        ("numeric(10,2)", "numeric(12,1)", None),
        ("numeric(10,2)", "double precision", None),
        ("double precision", "real", None),
        ("real", "double precision", "{}"),
        ("text", "character varying(5)", "{}"),
        ("text", "jsonb", "CAST({} AS jsonb)"),
        ("text", "uuid", "CAST({} AS uuid)"),
        ("text", "integer", None),
        ("timestamp without time zone", "date", None),
        ("timestamp without time zone", "timestamp(0) without time zone", None),
        ("timestamp with time zone", "timestamp without time zone", None),
        ("integer[]", "integer[]", "{}"),
    ],
)
def test_columns_of_postgresql_take_what_they_keep(sql_type, column_type, assigned):
    assert assigned_to(sql_type, column_type, is_enum=False) == assigned


def test_enumerations_take_texts():
    assert assigned_to("text", "mood", is_enum=True) == "CAST({} AS mood)"
    assert assigned_to("text", "mood", is_enum=False) is None


@pytest.mark.parametrize(
    ("declared", "affinity"),
    [
        ("BIGINT", "INTEGER"),
        ("varchar(9)", "TEXT"),
        ("FLOATING POINT", "INTEGER"),
        ("DOUBLE", "REAL"),
        ("", "BLOB"),
        ("DECIMAL(5, 1)", "NUMERIC"),
    ],
)
def test_affinities_are_those_of_sqlite(declared, affinity):
    assert affinity_of(declared) == affinity
    kept = {sql_type for sql_type in ("INTEGER", "REAL", "TEXT", "BLOB") if is_kept_by(sql_type, declared)}
    assert (
        kept
        == {
            "INTEGER": {"INTEGER", "BLOB"},
            "TEXT": {"TEXT", "BLOB"},
            "REAL": {"REAL", "BLOB"},
            "BLOB": {"INTEGER", "REAL", "TEXT", "BLOB"},
            "NUMERIC": {"INTEGER", "BLOB"},
        }[affinity]
    )
