"""No null gets into a part of a column that may have none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from engine import Environment
from engine.delta_tables.required_parts import null_part, required_parts
from engine.errors import EngineError
from engine.outputs.table_targets import delta

deltalake = pytest.importorskip("deltalake")

_X = {"name": "x", "type": "long", "nullable": False}
_STRUCT = {"type": "struct", "fields": [_X, {"name": "y", "type": "long", "nullable": True}]}
_LIST = {"type": "array", "elementType": _STRUCT, "containsNull": False}
_MAP = {"type": "map", "keyType": "string", "valueType": _LIST, "valueContainsNull": False}
_ARROW = pa.struct({"x": pa.int64(), "y": pa.int64()}.items())


@pytest.mark.parametrize(
    ("values", "data_type", "arrow", "part"),
    [
        ([None, {"x": 1, "y": None}], _STRUCT, _ARROW, None),
        ([{"x": 1}, {"x": None}], _STRUCT, _ARROW, "c.x"),
        ([None, [], [{"x": 1}]], _LIST, pa.list_(_ARROW), None),
        ([[None]], _LIST, pa.list_(_ARROW), "c.element"),
        ([[], [{"x": 1}, {"y": 1}]], _LIST, pa.list_(_ARROW), "c.element.x"),
        ([None, [("k", [{"x": 1}])]], _MAP, pa.map_(pa.string(), pa.list_(_ARROW)), None),
        ([[("k", None)]], _MAP, pa.map_(pa.string(), pa.list_(_ARROW)), "c.value"),
        ([[("k", []), ("j", [{"y": 1}])]], _MAP, pa.map_(pa.string(), pa.list_(_ARROW)), "c.value.element.x"),
    ],
)
def test_the_first_part_with_a_null_is_found_wherever_rows_begin(values, data_type, arrow, part) -> None:
    assert required_parts({"fields": [{"name": "c", "type": data_type}]}) == {"c": data_type}
    array = pa.array(values, arrow)
    assert null_part(array, data_type, "c") == part
    # rows that are not among those that are written
    assert null_part(pa.concat_arrays([array, array])[len(values) :], data_type, "c") == part
    assert null_part(array[:0], data_type, "c") is None


def test_types_without_such_parts_are_not_looked_at() -> None:
    free = {"type": "struct", "fields": [{"name": "y", "type": "long", "nullable": True}]}
    assert required_parts({"fields": [{"name": "c", "type": free}, {**_X, "name": "d"}]}) == {}


def test_rows_with_such_nulls_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "t"
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    elements = pa.list_(pa.field("element", pa.int64(), nullable=False))
    there = pa.table({"id": [1, 2], "s": pa.array([{"x": 1}, None], inner), "l": pa.array([[1], None], elements)})
    deltalake.write_deltalake(place, there)
    with Environment() as env:

        def rows(x: int | None, element: int | None) -> pa.Table:
            columns = {"id": [1], "s": [{"x": x}], "l": [[element]]}
            free = {"id": pa.int64(), "s": pa.struct({"x": pa.int64()}.items()), "l": pa.list_(pa.int64())}
            return pa.table(columns, schema=pa.schema(free))

        for lacking, part in ((rows(None, 1), "'s' has nulls in s.x"), (rows(1, None), "'l' has nulls in l.element")):
            with pytest.raises(EngineError, match=part):
                env.from_arrow(lacking).write_delta(place, mode="append")
                env.execute()
            with pytest.raises(EngineError, match=part):
                env.from_arrow(lacking).merge_into(delta(place), "id", "update", "insert")
        with pytest.raises(EngineError, match=r"'s' has nulls in s\.x"):
            env.sql(f"""UPDATE delta."{place}" SET s = {{'x': nullif(id, 1)}} WHERE id = 1""")
        assert env.read_delta(place).sort("id").to_arrow().to_pylist() == there.to_pylist()
        env.from_arrow(rows(5, 6)).write_delta(place, mode="append")
        env.execute()
    assert deltalake.DeltaTable(place).to_pyarrow_table().num_rows == 3
