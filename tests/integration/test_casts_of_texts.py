"""Casts of texts to integers, dates and timestamps: a column, a constant, the API and SQL agree, as DuckDB has them."""

import duckdb
import pyarrow as pa
import pytest

from engine import DataError, col

DAYS = ["2024-2-9", "2024-02-9", "2024-2-09", "24-2-9", "9-12-31", "199-1-1", "2024-02-09", None]
NO_DAYS = ["2024-2-30", "2024-2", "2024-2-9x", "2024--9", "-2-9", "2024-2-009", "02024-2-9"]
MOMENTS = ["2024-2-9 1:2:3", "2024-02-09 01:2:03", "2024-02-09 1:02:03.5", "2024-2-9", "2024-02-09 01:02:3", None]
NO_MOMENTS = ["2024-2-9 25:0:0", "2024-2-9 1", "2024-2-9 1:2:3x", "2024-2-9 1:60:00"]
INTEGERS = ["+5", "5", "-5", "+0", "+9223372036854775807", None]
NO_INTEGERS = ["++5", "+-5", "+", "+x", "+9223372036854775808", "5+", "+0x1F"]
CASES = [("DATE", DAYS, NO_DAYS), ("TIMESTAMP", MOMENTS, NO_MOMENTS), ("BIGINT", INTEGERS, NO_INTEGERS)]
TYPES = {"DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us"), "BIGINT": pa.int64()}


@pytest.mark.parametrize(("name", "good", "bad"), CASES, ids=list(TYPES))
def test_a_column_and_a_constant_are_cast_as_duckdb_casts_them(environment, name, good, bad):
    environment.register("texts", environment.from_arrow(pa.table({"s": good})))
    query = f"SELECT CAST(s AS {name}) AS x FROM texts"
    wanted = [row[0] for row in duckdb.from_arrow(pa.table({"s": good})).query("texts", query).fetchall()]
    assert environment.sql(query).to_arrow()["x"].to_pylist() == wanted
    of_constants = ", ".join(f"CAST('{text}' AS {name}) AS x{place}" for place, text in enumerate(good) if text)
    assert list(environment.sql(f"SELECT {of_constants}").to_arrow().to_pylist()[0].values()) == wanted[:-1]
    data = environment.from_arrow(pa.table({"s": good}))
    assert data.select(x=col("s").cast(TYPES[name])).to_arrow()["x"].to_pylist() == wanted


@pytest.mark.parametrize(("name", "good", "bad"), CASES, ids=list(TYPES))
def test_what_is_no_value_stays_none_and_an_error(environment, name, good, bad):
    environment.register("texts", environment.from_arrow(pa.table({"s": [*bad, good[0]]})))
    found = environment.sql(f"SELECT TRY_CAST(s AS {name}) AS x FROM texts").to_arrow()["x"].to_pylist()
    assert found[:-1] == [None] * len(bad)
    assert found[-1] is not None
    for text in bad:
        data = environment.from_arrow(pa.table({"s": [text]}))
        with pytest.raises(DataError):
            data.select(x=col("s").cast(TYPES[name])).to_arrow()
