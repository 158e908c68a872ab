"""Structs keep their nulls when fields are added, renamed and dropped; maps and their entries are the same values."""

import pyarrow as pa
import pytest

from engine import DataError, SchemaError, array, col, map_from, map_from_entries, struct
from engine.expressions.infer import infer_type
from tests.expressions.function_oracle import values

S = col("s").struct
STRUCTS = pa.array([{"a": 9, "b": "z"}, {"a": 1, "b": "x"}, None, {"a": None, "b": None}]).slice(1)
M = col("m").map
MAPS = pa.array([[("z", 9)], [("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())).slice(1)


def test_fields_are_replaced_in_their_place_and_added_at_the_end():
    made = S.with_fields(c=True, a=col("s").field("a") + col("y"))
    found = values(made, s=STRUCTS, y=[10, 20, 30])
    assert found == [{"a": 11, "b": "x", "c": True}, None, {"a": None, "b": None, "c": True}]
    assert list(found[0]) == ["a", "b", "c"]


def test_fields_are_renamed_and_dropped():
    found = values(S.rename_fields({"a": "b", "b": "a"}), s=STRUCTS)
    assert found == [{"b": 1, "a": "x"}, None, {"b": None, "a": None}]
    assert values(S.drop("a"), s=STRUCTS) == [{"b": "x"}, None, {"b": None}]
    assert values(S.field("b"), s=STRUCTS) == ["x", None, None]
    assert S.field("b").output_name == "b"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (S.drop("q"), "there is no field 'q'; there are: a, b"),
        (S.drop("a", "b"), "no field would be left"),
        (S.rename_fields({"q": "a"}), "there is no field 'q'"),
        (S.rename_fields({"a": "b"}), "a field would be there twice: b, b"),
        (col("i").struct.drop("a"), "field.. works on structs"),
        (map_from_entries(array(col("i"))), "entries are structs of a key and a value"),
    ],
)
def test_what_a_struct_has_not_is_said_before_anything_runs(expression, message):
    schema = pa.schema({"s": STRUCTS.type, "i": pa.int64()})
    with pytest.raises(SchemaError, match=message):
        infer_type(expression.expression, schema)
    for wrong in (S.drop, S.with_fields, lambda: S.rename_fields({}), lambda: S.rename_fields("a")):
        with pytest.raises(SchemaError, match="give it"):
            wrong()


def test_entries_of_maps_go_out_and_back():
    entries = [[{"key": "a", "value": 1}, {"key": "b", "value": None}], [], None]
    assert values(M.entries(), m=MAPS) == entries
    assert values(map_from_entries(M.entries()), m=MAPS) == MAPS.to_pylist()
    assert values(M.length(), m=MAPS) == [2, 0, None]
    assert values(M.contains("a"), m=MAPS) == [True, False, None]
    assert values(M.filter(lambda _key, value: value.is_null()), m=MAPS) == [[("b", None)], [], None]
    assert values(M.transform_values(lambda _key, value: value + col("y")), m=MAPS, y=[5, 6, 7]) == [
        [("a", 6), ("b", None)],
        [],
        None,
    ]
    assert values(M.transform_keys(lambda key, value: key + "-"), m=MAPS)[0] == [("a-", 1), ("b-", None)]


def test_entries_that_make_no_map_are_errors():
    with pytest.raises(DataError, match="has the key 'x' twice"):
        values(M.transform_keys(lambda key, value: "x"), m=MAPS)
    with pytest.raises(DataError, match="a key of a map is null"):
        values(map_from_entries(array(struct(k=col("k"), v=1))), k=pa.array([None], pa.string()))
    with pytest.raises(DataError, match="an entry of a map is null"):
        values(map_from_entries(col("e")), e=pa.array([[{"k": "a", "v": 1}, None]]))
    assert values(map_from(array(col("k")), array(1)), k=["a", "b"]) == [[("a", 1)], [("b", 1)]]
