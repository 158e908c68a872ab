"""What is cached is computed once, read by later jobs, and gone with the Environment."""

import datetime

import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, PlanError, col, count, sum_

NESTED = pa.table(
    {
        "k": list(range(5_000)),
        "s": [None if number % 7 == 0 else f"text {number}" for number in range(5_000)],
        "l": [None if number % 5 == 0 else [number] * (number % 4) for number in range(5_000)],
        "t": [{"a": number, "b": None if number % 3 else "x"} for number in range(5_000)],
        "d": [datetime.timedelta(seconds=number) for number in range(5_000)],
    }
)


@pytest.fixture(params=[1, 3])
def environment(request):
    with Environment(config={"parallelism.default": request.param, "python.execution-mode": "thread"}) as made:
        yield made


def test_it_is_computed_once_whatever_reads_it(environment, tmp_path):
    calls = tmp_path / "calls"

    def seen(rows):
        with calls.open("a") as file:
            file.write("x")
        yield from ((row.k,) for row in rows)

    kept = environment.from_arrow(NESTED).map_partition(seen, pa.schema([("k", pa.int64())])).set_parallelism(1).cache()
    assert not calls.exists()
    again = kept.filter(col("k") >= 10).cache()
    assert "map_partition" in kept.explain()
    assert again.count() == 4_990
    assert kept.agg(total=sum_("k")).to_arrow()["total"].to_pylist() == [sum(range(5_000))]
    assert kept.join(again, on="k").count() == 4_990
    assert calls.read_text() == "x"
    assert "map_partition" not in kept.explain()
    assert "cached rows" in kept.explain()


def test_rows_are_the_same_in_the_same_order_of_every_type(environment):
    source = environment.from_arrow(NESTED)
    kept = source.cache()
    assert kept.schema == source.schema
    assert kept.to_arrow() == source.to_arrow()
    assert kept.to_arrow() == source.to_arrow()
    ordered = source.rebalance().sort("k", descending=True).cache()
    assert ordered.to_arrow()["k"].to_pylist() == list(range(4_999, -1, -1))
    assert ordered.limit(2).to_arrow()["k"].to_pylist() == [4_999, 4_998]
    assert kept.select("t", "k").filter(col("k") == 3).to_arrow().to_pylist() == [{"t": {"a": 3, "b": "x"}, "k": 3}]


def test_malformed_rows_are_told_by_the_job_that_reads_them(environment, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("1\nbad\n3\n")
    kept_rows = tmp_path / "bad"
    schema = pa.schema([("x", pa.int64())])
    kept = environment.read_csv(source, schema, on_bad_row="skip", bad_rows_path=kept_rows).cache()
    assert kept.count() == 2
    assert [path.read_text() for path in kept_rows.glob("part-*")] != []
    for path in kept_rows.glob("part-*"):
        path.unlink()
    assert kept.count() == 2
    assert list(kept_rows.glob("part-*")) == []


def test_nothing_to_keep_is_kept_too(environment):
    kept = environment.from_arrow(NESTED).filter(col("k") < 0).cache()
    assert [kept.count(), kept.count()] == [0, 0]
    assert kept.group_by("k").agg(n=count()).to_arrow().num_rows == 0


def test_files_are_gone_with_the_environment():
    with Environment(config={"parallelism.default": 2}) as made:
        kept = made.from_arrow(NESTED).cache()
        assert kept.count() == 5_000
        folder = made.temporary_folder()
        assert list(folder.glob("cache-*/part-*.arrow"))
    assert not folder.exists()
    with pytest.raises(PlanError, match="closed"):
        kept.count()


def test_a_job_that_fails_keeps_nothing_and_is_tried_again(environment, tmp_path):
    is_fine = tmp_path / "fine"

    def sometimes(row):
        if not is_fine.exists():
            raise ValueError("not yet")
        return (row.k,)

    kept = environment.from_arrow(NESTED).map(sometimes, pa.schema([("k", pa.int64())])).cache()
    with pytest.raises(JobExecutionError, match="not yet"):
        kept.count()
    assert not list(environment.temporary_folder().glob("cache-*"))
    is_fine.touch()
    assert kept.count() == 5_000


def test_iterations_read_what_the_last_one_kept(environment):
    data = environment.from_arrow(pa.table({"x": [1, 2, 3]})).cache()
    for _ in range(4):
        data = data.with_columns(x=col("x") * 2).cache()
        assert data.count() == 3
    assert sorted(data.to_arrow()["x"].to_pylist()) == [16, 32, 48]
