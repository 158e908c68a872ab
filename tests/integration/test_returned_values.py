"""What a function returns is a value of its column, or an error that names function, row and column."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from engine import JobExecutionError, col, udf

ROWS = pa.table({"i": range(20), "g": [place % 2 for place in range(20)]})
MOMENT = datetime.datetime(2024, 1, 1, 12)
#: type, a value that fits, one that would be cut and its own type in Arrow, why it does not fit
CASES = {
    "range": (pa.float32(), 0.5, 1e300, pa.float64(), "beyond the range of float"),
    "member": (
        pa.struct([("a", pa.int64())]),
        {"a": 1},
        {"a": 1, "b": 2},
        pa.struct([("a", pa.int64()), ("b", pa.int64())]),
        "the type has no member 'b'",
    ),
    "zone": (
        pa.timestamp("us"),
        MOMENT,
        MOMENT.replace(tzinfo=datetime.UTC),
        pa.timestamp("us", "UTC"),
        "it has (a|the) time zone",
    ),
    "date": (pa.date32(), MOMENT.date(), MOMENT, pa.timestamp("us"), "time of day|not the same as date32"),
    "text": (pa.int64(), 1, "1", pa.string(), "str|string"),
}


def _of_rows(rows, value):
    return [(row.i, value(row.i)) for row in rows]


def _of_arrow(data, value, schema, own_type):
    def made(batch):
        values = list(map(value, batch["i"].to_pylist()))
        fits = value(7) == value(8)
        others = values if fits else [each if place == 7 else None for place, each in enumerate(values)]
        return pa.record_batch({"i": batch["i"], "v": pa.array(others, schema.field("v").type if fits else own_type)})

    return data.map_batches(made, schema)


def _of_pandas(data, value, schema, _):
    def made(frame):
        return pd.DataFrame({"i": frame["i"], "v": pd.Series(list(map(value, frame["i"])), dtype=object)})

    return data.map_batches(made, schema, format="pandas")


def _of_numpy(data, value, schema, _):
    def made(columns):
        return {"i": columns["i"], "v": np.array(list(map(value, columns["i"])), dtype=object)}

    return data.map_batches(made, schema, format="numpy")


def _of_columns(data, value, schema, _):
    @udf(schema.field("v").type, kind="pandas")
    def made(column):
        return pd.Series(list(map(value, column)), dtype=object)

    return data.select("i", v=made(col("i")))


KINDS = {
    "map": lambda data, value, schema, _: data.map(lambda row: (row.i, value(row.i)), schema),
    "flat_map": lambda data, value, schema, _: data.flat_map(lambda row: _of_rows([row], value), schema),
    "map_partition": lambda data, value, schema, _: data.map_partition(lambda rows: _of_rows(rows, value), schema),
    "reduce": lambda data, value, schema, _: data.group_by("g").reduce(lambda rows: _of_rows(rows, value), schema),
    "co_group": lambda data, value, schema, _: data.co_group(
        data, on="g", fn=lambda left, right: _of_rows(left, value), schema=schema
    ),
    "on_error": lambda data, value, schema, _: data.map(lambda row: (row.i, value(row.i)), schema, on_error="collect"),
    "arrow": _of_arrow,
    "pandas": _of_pandas,
    "numpy": _of_numpy,
    "udf": lambda data, value, schema, _: data.select("i", v=udf(schema.field("v").type)(value)(col("i"))),
    "udf of columns": _of_columns,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_would_be_cut_is_an_error_with_its_function_row_and_column(environment, kind, case):
    data_type, fitting, unfit, own_type, reason = CASES[case]
    schema = pa.schema([("i", pa.int64()), ("v", data_type)])
    data = environment.from_arrow(ROWS)
    found = KINDS[kind](data, lambda place: fitting, schema, own_type).to_arrow()
    assert found.column("v").to_pylist() == [fitting] * 20
    made = KINDS[kind](data, lambda place: unfit if place == 7 else fitting, schema, own_type)
    if kind == "on_error":
        (failed,) = [row for row in made.collect() if row.i is None]
        text = failed.error
    else:
        with pytest.raises(JobExecutionError, match=r"test_returned_values.py, line") as caught:
            made.to_arrow()
        text = str(caught.value)
        # an array of another kind is refused as a whole
        assert "row: Row(i=" in text or "in row 7 of it" in text or kind == "arrow"
    assert re.search(reason, text), text
    assert "column 'v'" in text or kind.startswith("udf"), text
