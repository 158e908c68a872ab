"""A function that uses some columns is given these; its errors show whole rows, and a filter keeps whole rows."""

import pyarrow as pa
import pytest

from engine import JobExecutionError

SCHEMA = pa.schema([("x", pa.float64())])


@pytest.mark.parametrize("count", [3, 300_000])
@pytest.mark.parametrize(
    "failing",
    [
        lambda rows: rows.map(lambda row: (1 / row.price,), SCHEMA),
        lambda rows: rows.filter(lambda row: 1 / row.price),
        lambda rows: rows.flat_map(lambda row: [(1 / row.price,)], SCHEMA),
        lambda rows: rows.map(lambda row: (row.price or "none",), SCHEMA),
    ],
    ids=["map", "filter", "flat_map", "bad value"],
)
def test_an_error_shows_the_whole_row(count, failing, open_environment):
    table = pa.table({"id": range(count), "text": ["a"] * count, "price": [1.0] * (count - 1) + [0.0]})
    with pytest.raises(JobExecutionError) as raised:
        failing(open_environment(**{"parallelism.default": 1}).from_arrow(table)).collect()
    assert f"Row(id={count - 1}, text='a', price=0.0)" in str(raised.value)


def test_a_filter_keeps_whole_rows_of_many_batches(open_environment):
    table = pa.table({"id": range(200_000), "text": [f"t{n}" for n in range(200_000)]})
    kept = open_environment().from_arrow(table).filter(lambda row: row.id % 1000 == 7).sort("id").to_arrow()
    assert kept.to_pydict() == {"id": list(range(7, 200_000, 1000)), "text": [f"t{n}" for n in range(7, 200_000, 1000)]}


@pytest.mark.parametrize("wrong", [len, lambda rows: rows[0]], ids=["len", "item"])
@pytest.mark.parametrize(
    "call",
    [
        lambda data, wrong: data.map_partition(lambda rows: [(wrong(rows),)], SCHEMA),
        lambda data, wrong: data.group_by("id").reduce(lambda rows: [(wrong(rows),)], SCHEMA),
    ],
    ids=["map_partition", "reduce"],
)
def test_rows_that_are_taken_for_a_list_are_told_to_be_none(wrong, call, open_environment):
    data = open_environment().from_arrow(pa.table({"id": [1, 2, 3]}))
    with pytest.raises(JobExecutionError, match=r"rows are read one by one; rows = list\(rows\) has them all"):
        call(data, wrong).collect()
