"""How window functions run: what is moved and sorted for them, what passes below them, and what explain says."""

import pyarrow as pa
import pytest

from engine import Environment, avg, col, collect_list, count, cume_dist, median, quantile, rank, row_number, sum_
from engine.optimizer import sort_planning, window_planning

TABLE = pa.table({"k": ["a", "b"] * 50, "j": list(range(100)), "x": [1.5] * 100})


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setattr(sort_planning, "SMALL_SORT_BYTES", 0)
    monkeypatch.setattr(window_planning, "SMALL_SORT_BYTES", 0)
    return Environment(config={"parallelism.default": 3}).from_arrow(TABLE)


def test_rows_are_moved_by_partition_and_sorted(data):
    text = data.select(rank().over("k", order_by="j").alias("r")).explain()
    assert "PARTITION_HASH(k)" in text
    assert "sort for window by k in order of j: rank()" in text
    assert "WINDOW, parallelism 3" in text


def test_small_inputs_in_one_subtask_stay_there(monkeypatch):
    data = Environment(config={"parallelism.default": 3}).from_arrow(TABLE)
    text = data.select(rank().over("k", order_by="j").alias("r")).explain()
    assert "PARTITION_HASH" not in text
    assert "WINDOW, parallelism 1" in text


def test_without_partition_keys_there_is_one_subtask(data):
    text = data.rebalance().select(cume_dist().over(order_by="j").alias("r")).explain()
    assert "WINDOW, parallelism 1" in text
    assert "GLOBAL" in text


def test_an_order_that_is_there_is_used(data):
    ordered = data.sort(["k", "j"]).set_parallelism(1)
    assert "SORT, " not in ordered.select(rank().over("k", order_by="j").alias("r")).explain().split("sort by k, j")[0]
    twice = data.with_columns(r=rank().over("k", order_by="j")).with_columns(s=sum_("x").over("k", order_by="j"))
    renamed = data.with_columns(r=rank().over("k", order_by="j")).rename(k="key").with_columns(s=count().over("key"))
    for made in (twice, renamed):
        text = made.explain()
        assert text.count("sort for window") == 1
        assert text.count("PARTITION_HASH") == 1
    other = data.with_columns(r=rank().over("k", order_by="j")).with_columns(s=sum_("x").over("k", order_by="x"))
    assert other.explain().count("sort for window") == 2
    assert other.explain().count("PARTITION_HASH") == 1


def test_a_name_that_another_column_took_is_no_order(data):
    made = data.with_columns(r=rank().over("k", order_by="j")).select(col("x").alias("k"), "j")
    assert made.select(rank().over("k", order_by="j").alias("r")).explain().count("sort for window") == 1


def test_filters_on_partition_keys_pass_and_others_stay(data):
    ranked = data.with_columns(r=rank().over("k", order_by="j"))
    below = ranked.filter((col("k") == "a") & (col("j") > 5)).explain()
    assert below.index("j > 5") < below.index("window by k") < below.index("k == 'a'")


def test_functions_that_nobody_reads_are_not_computed(data):
    made = data.with_columns(r=rank().over("k", order_by="j"), m=avg("x").over("k"))
    assert "avg" not in made.select("k", "r").explain()
    assert "window" not in made.select("k", "x").explain()


def test_groups_of_values_share_a_pass_and_take_filters_on_their_keys(data):
    made = data.group_by("k").agg(a=median("j"), b=quantile("j", 0.9), c=median("x")).filter(col("k") == "a")
    text = made.explain()
    assert text.count("PARTITIONED, ") == 1
    assert "SORT" not in text
    lists = data.group_by("k").agg(a=median("j"), b=collect_list("x", order_by="x"), c=collect_list("j", order_by="j"))
    # one for each order, and one for the one value that there is of each part's columns
    assert lists.explain().count("PARTITIONED, ") == 4
    # parts by the same keys lie together already when they are put together
    assert lists.explain().count("PARTITION_HASH") == 3
    assert text.index("quantile(") < text.index("k == 'a'")
    alone = data.group_by("k").agg(a=median("j"), b=quantile("j", 0.9))
    assert "0.5), quantile(" in alone.explain()
    assert "quantile(__sorted0, 0.5) by k" in alone.select("k", "a").explain()


def test_groups_are_sorted_only_where_a_list_wants_an_order_of_texts_or_of_all_rows(data):
    assert "PARTITIONED, " in data.group_by("k").agg(a=collect_list("x")).explain()
    assert "PARTITIONED, " in data.group_by("k").agg(a=collect_list("x", order_by=["j", "x"])).explain()
    assert "SORTED, " in data.group_by("j").agg(a=collect_list("x", order_by=["x", "k"])).explain()
    assert "SORTED, " in data.group_by().agg(a=collect_list("x", order_by="j")).explain()
    for whole in (data, data.rebalance()):
        assert "SORT," not in whole.group_by().agg(a=median("x")).explain()
    by_key = data.sort("k").set_parallelism(1).group_by("k").agg(a=median("x"), b=collect_list("j"))
    assert by_key.explain().count("SORT,") == 1
    assert "PARTITIONED" not in by_key.explain()


def test_sorted_groups_over_rows_in_their_order_are_not_sorted_again(data):
    ordered = data.sort(["k", "j"]).set_parallelism(1)
    assert ordered.group_by("k").agg(a=collect_list("x", order_by="j")).explain().count("SORT,") == 1
    assert "PARTITIONED, " in ordered.group_by("k").agg(a=collect_list("x", order_by="x")).explain()
    by_number = data.sort(["j", "x"]).set_parallelism(1).group_by("j")
    assert by_number.agg(a=collect_list("x", order_by="k")).explain().count("SORT,") == 2


def test_functions_that_keep_rows_have_a_weight(data):
    def weight(expression):
        (window,) = [node for node in _nodes(data.select(expression.alias("a"))) if hasattr(node.operator, "calls")]
        return window_planning.window_weight(window.operator.calls, 1.0)

    assert weight(row_number().over("k")) == window_planning.LIGHT_WEIGHT
    assert weight(sum_("x").over("k", order_by="j")) == window_planning.LIGHT_WEIGHT
    assert weight(sum_("x").over("k")) == window_planning.HEAVY_WEIGHT
    assert weight(sum_("x").over("k", order_by="j", rows=(-1, 0))) == window_planning.HEAVY_WEIGHT


def _nodes(data):
    nodes = [data._node]
    for node in nodes:
        nodes += node.inputs
    return nodes


def test_a_filter_on_a_rank_says_which_rows_of_each_group_are_enough(data):
    ranked = data.with_columns(r=rank().over("k", order_by="j"), n=row_number().over("k", order_by="j"))
    assert "rank up to 3: sort for" in ranked.filter(col("r") <= 3).explain()
    assert "row_number up to 1: sort for" in ranked.filter((col("n") < 2) & (col("x") > 0)).explain()
    assert "rank up to 2: sort for" in data.filter(rank().over("k", order_by="j") == 2).explain()
    assert "up to" not in ranked.filter((col("r") <= 3) | (col("x") > 0)).explain()
    assert "up to" not in ranked.filter(col("r") >= 3).explain()
    totals = data.with_columns(r=rank().over("k", order_by="j"), t=sum_("x").over("k"))
    assert "up to" not in totals.filter(col("r") <= 3).explain()
    both = ranked.filter(col("r") <= 3).select("k", "r").union(ranked.select("k", "r"))
    assert "up to" not in both.explain().replace("up to 4 MB", "")
