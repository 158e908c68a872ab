"""What a column may be called, wherever a name comes from."""

import pandas
import pyarrow as pa
import pytest

from engine import Environment, SchemaError, col, count
from engine.expressions.column_names import check_column_name, column_field

HALF = "a\ud800"


@pytest.fixture
def rows():
    with Environment() as environment:
        yield environment.from_rows([(1, "x")], pa.schema([("a", pa.int64()), ("b", pa.string())]))


@pytest.mark.parametrize("name", ["a", " ", "größe", "\U0001f600", "a\nb"])
def test_any_text_is_a_name(name):
    assert check_column_name(name, "alias") == name
    assert column_field(name, pa.int8(), "schema", nullable=False) == pa.field(name, pa.int8(), False)


@pytest.mark.parametrize("name", ["", None, 1, b"a"])
def test_what_is_no_text_is_no_name(name):
    with pytest.raises(SchemaError, match="a column name is a non-empty string"):
        check_column_name(name, "alias")


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda data: data.select(col("a").alias(HALF)), "alias"),
        (lambda data: data.rename(a=HALF), "rename"),
        (lambda data: data.with_columns(**{HALF: col("a")}), "with_columns"),
        (lambda data: data.group_by("b").agg(**{HALF: count()}), "agg"),
        (lambda data: data.group_by((col("a") + 1).alias(HALF)), "alias"),
        (lambda data: data._environment.from_rows([{HALF: 1}]), "from_rows"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_wherever_a_name_enters(rows, call, where):
    with pytest.raises(SchemaError, match="without surrogates") as error:
        call(rows)
    assert str(error.value).startswith(f"{where}('a\\ud800')")


def test_a_frame_of_pandas_with_such_a_name_is_refused(rows):
    with pytest.raises(SchemaError, match="from_arrow: a column name, or a string, is no text"):
        rows._environment.from_arrow(pandas.DataFrame({HALF: [1]}))


def test_what_asks_for_a_column_of_such_a_name_is_told_that_there_is_none(rows):
    with pytest.raises(SchemaError, match="no column"):
        rows.group_by(HALF)
    with pytest.raises(SchemaError, match="no column"):
        rows.filter(col(HALF) > 1)
