"""Row groups between which no value is shared: groups without an exchange, given out run by run."""

import datetime
import random
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, count, max_, row_number, sum_
from engine.aggregate import grouping_phase
from engine.graph.plan import Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.lowering.logical_node import LogicalNode, build_plan
from engine.sources.value_runs import with_value_runs

GROUPS, ROWS = 40, 50


@pytest.fixture
def env():
    with Environment({"parallelism.default": "2"}) as environment:
        yield environment


def shuffled(numbers, seed):
    listed = list(numbers)
    random.Random(seed).shuffle(listed)
    return listed


def write(path, lists, **columns):
    """Write one row group for each list of keys."""
    keys = [key for each in lists for key in each]
    table = pa.table({"k": keys, "x": range(len(keys)), **columns})
    with pq.ParquetWriter(path, table.schema) as writer:
        begin = 0
        for each in lists:
            writer.write_table(table.slice(begin, len(each)))
            begin += len(each)
    return table


def in_order(groups=GROUPS):
    """Keys in no order inside of groups, most of which share one with the next: 40 groups are 18 runs."""
    return [shuffled([(ROWS * g + i) // 7 + g // 3 for i in range(ROWS)], g) for g in range(groups)]


def cuts(data_set):
    built = build_plan(
        [LogicalNode(Sink(SinkSpec("arrow", "(client)")), (data_set._node,), data_set._node.schema)], "t"
    )
    (source,) = (node.operator for node in with_value_runs(built).nodes if isinstance(node.operator, Source))
    return source.cuts


def grouped(data_set):
    return data_set.group_by("k").agg(n=count(), total=sum_("x"), last=max_("x"))


def in_python(table):
    found = {}
    for key, x in zip(table["k"].to_pylist(), table["x"].to_pylist(), strict=True):
        found.setdefault(key, []).append(x)
    return sorted((key, len(xs), sum(xs), max(xs)) for key, xs in found.items())


def rows_of(data_set):
    return sorted(tuple(row.values()) for row in data_set.to_arrow().to_pylist())


def test_a_column_is_cut_where_all_values_before_are_less(env, tmp_path):
    write(tmp_path / "t.parquet", [[2, 1], [2, 3], [4, 6], [5, 6], [9], [7, 8], [10]])
    assert cuts(grouped(env.read_parquet(tmp_path))) == {"k": (2, 4, 6)}


def test_only_columns_that_are_grouped_by_are_looked_at(env, tmp_path):
    write(tmp_path / "t.parquet", [[1], [2], [3]])
    rows = env.read_parquet(tmp_path)
    assert cuts(rows.filter(col("k") > 1)) == {}
    assert cuts(rows.with_columns(n=row_number().over(partition_by="x", order_by="k"))) == {"x": (1, 2)}
    assert cuts(rows.group_by("k", "x").agg(n=count())) == {"k": (1, 2), "x": (1, 2)}


@pytest.mark.parametrize(
    ("lists", "found"),
    [
        ([[1, None], [2], [3]], {}),
        ([[1.0], [2.0], [float("nan")]], {}),
        ([["a"], ["b"], ["c"]], {"k": (1, 2)}),
        ([[datetime.date(2020, 1, day)] for day in (1, 2, 3)], {"k": (1, 2)}),
        ([[True], [False], [True]], {}),
        ([[1], [1], [1]], {}),
    ],
)
def test_nothing_is_concluded_from_nulls_floats_and_shared_values(env, tmp_path, lists, found):
    write(tmp_path / "t.parquet", lists)
    assert cuts(grouped(env.read_parquet(tmp_path))) == found


def test_a_value_that_lies_in_two_files_rules_the_column_out(env, tmp_path):
    write(tmp_path / "a.parquet", [[1], [2]])
    write(tmp_path / "b.parquet", [[3], [4]])
    assert cuts(grouped(env.read_parquet(tmp_path))) == {"k": (1, 2, 3)}
    write(tmp_path / "b.parquet", [[2], [4]])
    assert cuts(grouped(env.read_parquet(tmp_path))) == {}


def test_groups_of_runs_need_no_exchange(env, tmp_path):
    table = write(tmp_path / "t.parquet", in_order())
    data_set = grouped(env.read_parquet(tmp_path))
    text = data_set.explain()
    assert "WHOLE_RUNS" in text
    assert "SINGLE" in text
    assert "PARTITION_HASH" not in text
    assert "groups are complete with each of 18 runs of row groups" in text
    assert rows_of(data_set) == in_python(table)


def test_few_or_unequal_runs_are_read_as_ever(env, tmp_path):
    lists = in_order()
    write(tmp_path / "t.parquet", [*lists[:3], shuffled([k for each in lists[3:20] for k in each], 0), *lists[20:]])
    assert "WHOLE_RUNS" not in grouped(env.read_parquet(tmp_path)).explain()
    write(tmp_path / "t.parquet", in_order(6))
    assert "WHOLE_RUNS" not in grouped(env.read_parquet(tmp_path)).explain()


@pytest.mark.parametrize("parallelism", ["1", "2", "3"])
@pytest.mark.parametrize("smallest", [1, 40, 10**9])
@pytest.mark.parametrize("force_spill", ["false", "true"])
def test_groups_are_complete_whenever_they_are_given_out(tmp_path, monkeypatch, parallelism, smallest, force_spill):
    monkeypatch.setattr(grouping_phase, "RUN_GROUPS_MIN", smallest)
    table = write(tmp_path / "t.parquet", in_order(60))
    with Environment({"parallelism.default": parallelism, "debug.force-spill": force_spill}) as env:
        rows = env.read_parquet(tmp_path)
        assert "WHOLE_RUNS" in grouped(rows).explain()
        assert rows_of(grouped(rows)) == in_python(table)
        # Filters put rows of several batches together, and leave row groups in the middle of a run out.
        kept = pa.Table.from_pylist([row for row in table.to_pylist() if row["x"] % 1000 < 300])
        assert rows_of(grouped(rows.filter(col("x") % 1000 < 300))) == in_python(kept)
        kept = pa.Table.from_pylist([row for row in table.to_pylist() if not 120 <= row["x"] <= 470])
        assert rows_of(grouped(rows.filter((col("x") < 120) | (col("x") > 470)))) == in_python(kept)


def test_groups_come_out_before_the_end(env, tmp_path, monkeypatch):
    monkeypatch.setattr(grouping_phase, "RUN_GROUPS_MIN", 1)
    given = []
    end_run = grouping_phase.GroupingPhase.end_run

    def noted(phase):
        found = list(end_run(phase))
        given.append(sum(batch.num_rows for batch in found))
        return iter(found)

    monkeypatch.setattr(grouping_phase.GroupingPhase, "end_run", noted)
    table = write(tmp_path / "t.parquet", in_order())
    assert len(rows_of(grouped(env.read_parquet(tmp_path)))) == len(set(table["k"].to_pylist()))
    # Each of two subtasks gives its last groups out at the end.
    assert len([groups for groups in given if groups]) == 18 - 2


def test_runs_of_a_part_of_the_keys_are_runs_of_all(env, tmp_path):
    table = write(tmp_path / "t.parquet", in_order(), j=[n % 3 for n in range(GROUPS * ROWS)])
    data_set = env.read_parquet(tmp_path).group_by("j", "k").agg(n=count(), total=sum_("x"))
    assert "WHOLE_RUNS" in data_set.explain()
    expected = table.group_by(["j", "k"]).aggregate([([], "count_all"), ("x", "sum")])
    assert rows_of(data_set) == sorted(
        zip(*(expected[name].to_pylist() for name in expected.column_names), strict=True)
    )


def test_another_key_than_that_of_the_runs_keeps_its_groups_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(grouping_phase, "RUN_GROUPS_MIN", 1)
    table = write(tmp_path / "t.parquet", in_order(), j=[n % 3 for n in range(GROUPS * ROWS)])
    with Environment({"parallelism.default": "1"}) as env:
        rows = env.read_parquet(tmp_path)
        counts = (
            rows.group_by("j").agg(n=count()).join(grouped(rows).select("k"), left_on="j", right_on="k", how="left")
        )
        assert rows_of(counts.select("j", "n")) == [(j, table["j"].to_pylist().count(j)) for j in range(3)]


def test_windows_over_runs_need_no_exchange(env, tmp_path):
    table = write(tmp_path / "t.parquet", in_order())
    data_set = env.read_parquet(tmp_path).with_columns(n=row_number().over(partition_by="k", order_by="x"))
    assert "PARTITION_HASH" not in data_set.explain()
    seen = {}
    expected = []
    for key, x in zip(table["k"].to_pylist(), table["x"].to_pylist(), strict=True):
        seen[key] = seen.get(key, 0) + 1
        expected.append((key, x, seen[key]))
    assert rows_of(data_set) == sorted(expected)


def test_columns_are_looked_at_under_the_names_that_projections_gave_them(env, tmp_path):
    table = write(tmp_path / "t.parquet", in_order())
    source = env.read_parquet(tmp_path / "t.parquet")
    renamed = source.select("x", first=col("k")).filter(col("x") >= 0).select("x", key=col("first"))
    groups = renamed.group_by("key").agg(n=count())
    assert list(cuts(groups)) == ["k"]
    assert "groups are complete with each of 18 runs" in groups.explain()
    assert sorted(groups.collect()) == sorted(Counter(table.column("k").to_pylist()).items())
    env.register("t", source)
    assert list(cuts(env.sql("SELECT l.k AS key, count(*) FROM t AS l GROUP BY l.k"))) == ["k"]
    # made by an expression: nothing is known
    assert cuts(source.select(key=col("k") + 1).group_by("key").agg(n=count())) == {}
