"""Functions over batches in every format, against plain Python."""

import pyarrow as pa
import pytest

from engine import JobExecutionError, SchemaError
from tests.integration.row_oracle import assert_same_rows

ONE = pa.schema([("a", pa.int64())])


def arrow_twice(batch):
    yield batch
    yield batch


def add_one(values):
    values["a"] = values["a"] + 1
    return values


@pytest.mark.parametrize("parallelism", [1, 3])
def test_map_batches_gives_what_plain_python_does(open_environment, parallelism):
    env = open_environment()
    data = env.from_arrow(pa.table({"a": range(20_000)})).set_parallelism(parallelism)
    assert_same_rows(data.map_batches(arrow_twice, ONE).collect(), [(n,) for n in range(20_000)] * 2)
    for kind in ("pandas", "numpy"):
        result = data.map_batches(add_one if kind == "pandas" else lambda d: {"a": d["a"] + 1}, ONE, format=kind)
        assert result.to_arrow().schema.equals(ONE)
        assert_same_rows(result.collect(), [(n + 1,) for n in range(20_000)])


def test_a_failing_or_unfitting_batch_names_the_function(open_environment):
    data = open_environment().from_arrow(pa.table({"a": range(5)}))

    def fails(batch):
        raise ValueError("no such batch")

    def wrong(batch):
        return 7

    with pytest.raises(JobExecutionError, match=r"(?s)ValueError: no such batch.*fails.*test_functional.py"):
        data.map_batches(fails, ONE).collect()
    with pytest.raises(
        JobExecutionError, match=r"(?s)TypeError.*wrong returned int, which is no batch of format arrow"
    ):
        data.map_batches(wrong, ONE).collect()
    with pytest.raises(SchemaError, match="format 'csv'"):
        data.map_batches(fails, ONE, format="csv")
