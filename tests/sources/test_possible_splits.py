"""Row groups that no filter would leave a row of are no splits of a plan any more."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count
from engine.graph.plan import Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.lowering.logical_node import LogicalNode, build_plan
from engine.sources.possible_splits import with_possible_splits
from engine.sources.source_filters import source_filters


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


@pytest.fixture
def rows(tmp_path, env):
    """Ten row groups of a hundred rows, in two files."""
    for part in range(2):
        numbers = range(500 * part, 500 * part + 500)
        table = pa.table({"n": numbers, "t": [f"{number:04d}" for number in numbers], "k": [n % 7 for n in numbers]})
        pq.write_table(table, tmp_path / f"part-{part}.parquet", row_group_size=100)
    return env.read_parquet(tmp_path)


def sources(*data_sets):
    sinks = [LogicalNode(Sink(SinkSpec("arrow", "(client)")), (one._node,), one._node.schema) for one in data_sets]
    built = build_plan(sinks, "test")
    plan = with_possible_splits(built, source_filters(built).sole)
    return [node.operator for node in plan.nodes if isinstance(node.operator, Source)]


def test_a_source_has_the_splits_that_its_filter_leaves(rows):
    (source,) = sources(rows.filter((col("n") >= 250) & (col("t") < "0420")))
    assert [(split.path[-9], split.start) for split in source.spec.splits] == [("0", 2), ("0", 3), ("0", 4)]
    assert source.spec.pruned_groups == 7
    known = source.statistics
    assert (known.row_count, known.columns["n"].minimum, known.columns["n"].maximum) == (300.0, 200, 499)
    assert known.columns["k"].maximum == 6
    assert known.origin == "parquet metadata, 3 of 10 row groups"


def test_a_filter_counts_where_it_will_be_evaluated(rows, env, tmp_path):
    named = env.read_parquet(tmp_path).rename({"n": "number"})
    joined = named.join(rows.select("k").distinct(), on="k").filter(col("number") < 100)
    left, right = sources(joined)
    assert (len(left.spec.splits), len(right.spec.splits)) == (1, 10)
    assert right.spec.pruned_groups is None


def test_a_source_that_others_read_too_is_read_whole(rows):
    (source,) = sources(rows.filter(col("n") < 100), rows)
    assert (len(source.spec.splits), source.spec.pruned_groups) == (10, None)


def test_a_filter_that_no_row_can_meet_leaves_nothing_to_read(rows):
    (source,) = sources(rows.filter(col("n") < 0))
    assert source.spec.splits == ()
    assert rows.filter(col("n") < 0).collect() == []
    assert [row.c for row in rows.filter(col("n") < 0).group_by().agg(c=count()).collect()] == [0]


def test_rows_are_those_of_the_filter_and_explain_says_what_was_left_out(rows):
    few = rows.filter(col("n").between(190, 210))
    assert sorted(row.n for row in few.collect()) == list(range(190, 211))
    text = few.explain()
    assert "reads 2 of 10 row groups" in text
    assert "2 of 10 row groups" in few.explain(analyze=True)


def test_a_file_that_is_gone_is_left_to_the_job(rows, tmp_path):
    (tmp_path / "part-1.parquet").unlink()
    (source,) = sources(rows.filter(col("n") < 100))
    assert source.spec.pruned_groups is None


def test_tasks_leave_out_what_the_plan_could_not_and_say_so(rows):
    last = rows.filter(col("n") >= 990).select("k", col("n").alias("later"))
    met = rows.filter(col("n") < 7).join(last, on="k")
    assert len(met.collect()) == 10
    assert met.explain(analyze=True).count("left out 9 row groups") == 2
