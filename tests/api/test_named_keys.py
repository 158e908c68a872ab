"""Keys of groups and broadcast data sets under names, and a text that is taken for a column."""

import pyarrow as pa
import pytest

from engine import Environment, coalesce, col, count, lit
from engine.errors import SchemaError


@pytest.fixture
def data():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment.from_arrow(pa.table({"x": [1, 2, 3, None], "y": ["a", None, "b", "a"]}))


def test_keys_have_names(data):
    found = data.group_by("y", odd=col("x") % 2).agg(n=count())
    assert found.schema.names == ["y", "odd", "n"]
    assert set(found.collect()) == {(None, 0, 1), ("a", 1, 1), ("a", None, 1), ("b", 1, 1)}
    assert sorted(data.drop_nulls().group_by(z="x").agg(n=count()).collect()) == [(1, 1), (3, 1)]
    assert data.group_by(all=lit(1)).agg(n=count()).collect() == [(1, 4)]
    with pytest.raises(SchemaError, match="a key is given twice: y, y"):
        data.group_by("y", y=col("x")).agg(n=count())


def test_a_text_in_front_of_other_values_is_no_column(data):
    with pytest.raises(SchemaError, match=r"coalesce\('y', ...\): a text is a constant .* coalesce\(col\('y'\), ...\)"):
        coalesce("y", "none")
    assert data.select(y=coalesce(col("y"), "none")).distinct().count() == 3


def test_a_broadcast_data_set_without_a_name_says_how_to_give_one(data):
    with pytest.raises(SchemaError, match="asks for a data set by its name: write name=data"):
        data.map(lambda row: (row.x,), pa.schema([("x", pa.int64())])).with_broadcast("names", data)
