"""Window functions as a step of a chain: results behind the columns, and nothing left when a job ends early."""

import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, count, row_number, sum_

TABLE = pa.table({"k": [number % 7 for number in range(5_000)], "x": list(range(5_000))})


@pytest.fixture
def environment(tmp_path):
    with Environment(
        config={
            "parallelism.default": 2,
            "taskmanager.memory.managed.size": "2mb",
            "io.tmp.dirs": str(tmp_path),
            "debug.force-spill": True,
        }
    ) as environment:
        yield environment


def test_results_stand_behind_the_columns(environment, tmp_path):
    made = (
        environment.from_arrow(TABLE).rebalance().with_columns(n=count().over("k"), i=row_number().over("k")).to_arrow()
    )
    assert made.column_names == ["k", "x", "n", "i"]
    assert sorted(made.column("x").to_pylist()) == list(range(5_000))
    assert set(made.column("n").to_pylist()) == {714, 715}
    assert [path for path in tmp_path.rglob("*.spill") if path.is_file()] == []


def test_a_limit_ends_it_early(environment, tmp_path):
    made = environment.from_arrow(TABLE).select(count().over("k").alias("n")).limit(3).to_arrow()
    assert made.num_rows == 3
    assert [path for path in tmp_path.rglob("*.spill") if path.is_file()] == []


def test_a_sum_beyond_its_type_fails_the_job_with_the_name_of_the_function(environment):
    data = environment.from_arrow(pa.table({"x": [2**62, 2**62]}))
    with pytest.raises(JobExecutionError, match="beyond the range"):
        data.select(sum_("x").over().alias("total")).to_arrow()
