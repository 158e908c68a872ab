"""A value that a column takes without a cast is the same there, or an error: no part of it is lost in silence."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from engine import Environment, col
from engine.errors import DataError, PlanError, SchemaError
from engine.expressions.common_type import is_number
from engine.expressions.evaluate import evaluate
from engine.expressions.schema_bridge import type_to_ipc
from engine.graph.expression import Cast, ColumnRef
from engine.outputs.assigned_types import may_lose
from engine.outputs.table_targets import delta
from tests.sql.test_table_changes import KINDS, rows_of, table_of

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

MOMENT = datetime.datetime(2020, 1, 2, 23, 4, 5, 6)
#: type -> values of it that narrower or other types do not have
VALUES = {
    pa.bool_(): [True],
    pa.int8(): [100, -1],
    pa.int32(): [70_000, -1],
    pa.int64(): [2**53 + 1, 5],
    pa.uint64(): [2**64 - 1, 5],
    pa.float32(): [1.25, 2.0],
    pa.float64(): [1.1, 1e300, 2.0, 1.005],
    pa.decimal128(10, 0): [Decimal(7), Decimal(10**9 + 1)],
    pa.decimal128(10, 2): [Decimal("1.25"), Decimal("3.00")],
    pa.decimal128(38, 20): [Decimal("1.12345678901234567891")],
    pa.string(): ["x", "5", "1.5", "2020-01-02", "2020-01-02 03:04:05"],
    pa.binary(): [b"\xff", b"5"],
    pa.date32(): [datetime.date(2020, 1, 2)],
    pa.timestamp("us"): [MOMENT],
    pa.timestamp("ns"): [1577934245000000001],
    pa.timestamp("s"): [MOMENT.replace(microsecond=0)],
    pa.timestamp("us", "UTC"): [MOMENT],
    pa.timestamp("us", "Asia/Tokyo"): [MOMENT],
    pa.time64("us"): [MOMENT.time()],
    pa.time32("s"): [MOMENT.time().replace(microsecond=0)],
    pa.duration("us"): [5_000_001],
    pa.list_(pa.float64()): [[1.5]],
    pa.list_(pa.int64()): [[1]],
}


def test_what_is_taken_without_a_cast_comes_back_as_it_was() -> None:
    taken = refused = 0
    for own, values in VALUES.items():
        for wanted in VALUES:
            for value in values:
                kept = _is_kept(pa.array([value], own), wanted)
                if may_lose(own, wanted):
                    refused += 1
                else:
                    taken += bool(kept)
                    assert kept is not False, f"{value!r} of {own} is another one as {wanted}"
    assert taken > 100
    assert refused > 50


def test_each_pair_that_is_refused_has_a_value_that_would_be_lost() -> None:
    # digits of decimals and floats are more than the values above show
    shown = [one for one in VALUES if not pa.types.is_decimal(one) and not pa.types.is_nested(one)]
    for own in shown:
        for wanted in shown:
            if may_lose(own, wanted):
                assert not all(_is_kept(pa.array([value], own), wanted) for value in VALUES[own]), (own, wanted)


def test_structs_are_taken_with_the_same_fields() -> None:
    wanted = pa.struct({"x": pa.int64(), "y": pa.date32()}.items())
    for other, is_lost in (
        ({"y": pa.date32(), "x": pa.int32()}, False),
        ({"x": pa.int64()}, True),
        ({"x": pa.int64(), "y": pa.date32(), "z": pa.null()}, True),
        ({"f0": pa.int64(), "f1": pa.date32()}, True),
        ({"x": pa.int64(), "y": pa.timestamp("us")}, True),
    ):
        own = pa.struct(other.items())
        assert may_lose(own, wanted) is is_lost, other
        assert may_lose(pa.list_(own), pa.list_(wanted)) is is_lost, other


def _is_kept(values: pa.Array, wanted: pa.DataType) -> bool | None:
    """Return whether a value is the same in another type; None for an error."""
    found = _cast(values, wanted)
    if found is None:
        return None
    if is_number(values.type) and pa.types.is_temporal(wanted):
        return False
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return not pa.types.is_boolean(wanted)
    if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted):
        return bool(found.cast(pa.timestamp("ns")).cast(pa.int64()) == values.cast(pa.timestamp("ns")).cast(pa.int64()))
    if pa.types.is_floating(values.type) and pa.types.is_floating(wanted):
        return bool(found[0].as_py() == values[0].as_py())
    if pa.types.is_decimal(values.type) and pa.types.is_floating(wanted):
        return bool(Decimal(str(found[0].as_py())) == values[0].as_py())
    if pa.types.is_string(wanted):
        return not pa.types.is_duration(values.type)
    if pa.types.is_boolean(wanted):
        return pa.types.is_boolean(values.type)
    back = _cast(found, values.type)
    return back is not None and back.equals(values)


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    try:
        return evaluate(Cast(ColumnRef("a"), type_to_ipc(wanted), str(wanted)), pa.record_batch({"a": values}))
    except (DataError, SchemaError):
        return None


@pytest.fixture
def env() -> Iterator[Environment]:
    """Return an environment."""
    with Environment({"parallelism.default": "2"}) as found:
        yield found


@pytest.mark.parametrize("kind", KINDS[:2])
def test_statements_refuse_values_of_which_a_part_may_be_lost(env: Environment, tmp_path: Path, kind: str) -> None:
    name = table_of(env, tmp_path, kind)
    rows = rows_of(env, name)
    merge = f"MERGE INTO {name} AS t USING (SELECT key AS id, v * 0.5e0 AS v FROM changes) AS s ON t.id = s.id"
    lost = "a value of DOUBLE for the column v, which is BIGINT and may lose a part of it; write CAST(... AS BIGINT)"
    for text in (
        f"UPDATE {name} SET v = v * 1.5e0",
        f"{merge} WHEN MATCHED THEN UPDATE SET v = s.v",
        f"{merge} WHEN MATCHED THEN UPDATE SET *",
        f"{merge} WHEN NOT MATCHED THEN INSERT *",
        f"{merge} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
        f"{merge} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = t.v / 2e0",
    ):
        with pytest.raises(PlanError) as caught:
            env.sql(text)
        assert lost in str(caught.value)
        assert "line 1, column" in str(caught.value)
    assert rows_of(env, name) == rows
    env.sql(f"UPDATE {name} SET v = CAST(v * 1.5e0 AS BIGINT) WHERE id = 1")
    # each clause has the type of the column
    env.sql(f"{merge} WHEN MATCHED AND t.id = 2 THEN UPDATE SET v = 7.0 WHEN MATCHED THEN UPDATE SET v = t.v + 1")
    assert rows_of(env, name)[1:3] == [(1, 16, "b"), (2, 7, "a")]


def test_a_merge_of_python_refuses_them_too(env: Environment, tmp_path: Path) -> None:
    there = pa.table({"id": [1], "day": pa.array([MOMENT.date()]), "n": [1]})
    env.from_arrow(there).write_delta(tmp_path / "t")
    env.execute()
    source = env.from_arrow(pa.table({"id": [1], "day": pa.array([MOMENT], pa.timestamp("us")), "n": [1.5]}))
    lost = r"the value of the column 'day' is timestamp\[us\], of which date32\[day\] may lose a part; cast it"
    for clauses in (
        {"when_matched": "update", "when_not_matched": "ignore"},
        {"when_matched": "ignore", "when_not_matched": "insert"},
        {"when_matched": {"set": {"day": col("source.day")}}},
    ):
        with pytest.raises(SchemaError, match=lost):
            source.merge_into(delta(tmp_path / "t"), "id", **clauses)
    changed = source.with_columns(day=col("day").cast("date32"), n=col("n").cast("float32"))
    with pytest.raises(
        SchemaError, match=r"column 'n' is float, of which int64 may lose a part; cast it: .cast\('int64"
    ):
        changed.merge_into(delta(tmp_path / "t"), "id", when_matched="update")
    changed.drop("n").merge_into(delta(tmp_path / "t"), "id", when_matched="update")


def test_a_number_is_no_time_in_a_column(env: Environment, tmp_path: Path) -> None:
    for data_type in (pa.date32(), pa.timestamp("us"), pa.time64("us"), pa.duration("us")):
        assert may_lose(pa.int64(), data_type)
        assert may_lose(pa.list_(pa.float64()), pa.list_(data_type))
        assert not may_lose(pa.string(), data_type)
    there = pa.table({"id": [1], "day": [MOMENT.date()], "at": pa.array([MOMENT], pa.timestamp("us"))})
    env.from_arrow(there).write_delta(tmp_path / "t")
    env.execute()
    name = f'delta."{tmp_path / "t"}"'
    merge = f"MERGE INTO {name} AS t USING (VALUES (1, 7)) AS s(id, n) ON t.id = s.id WHEN MATCHED THEN UPDATE SET"
    for text, words in (
        (f"UPDATE {name} SET day = id", "a value of BIGINT for the column day, which is DATE; .* write CAST of a text"),
        (f"UPDATE {name} SET at = id + 1.5", "for the column at, which is TIMESTAMP; a number is no date or time"),
        (f"UPDATE {name} SET at = 5", "5 is no value of the column at, which is TIMESTAMP; write CAST"),
        (f"{merge} day = s.n", "line 1, column .* for the column day, which is DATE; a number is no date or time"),
    ):
        with pytest.raises(PlanError, match=words):
            env.sql(text)
    with pytest.raises(SchemaError, match=r"'day' is int64, of which date32\[day\] may lose a part; cast it"):
        env.from_arrow(pa.table({"id": [1], "day": [7]})).merge_into(delta(tmp_path / "t"), "id", "update", "ignore")
    env.sql(f"UPDATE {name} SET day = CAST('2020-01-03' AS DATE), at = from_unixtime(id)")
    (row,) = env.sql(f"SELECT day, CAST(at AS VARCHAR) FROM {name}").collect()
    assert tuple(row) == (datetime.date(2020, 1, 3), "1970-01-01 00:00:01")
