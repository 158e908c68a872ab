"""What becomes of nulls in each call that has an order: a case for each row of the guide's table "Where nulls go".

A case is called with rows, their environment and a path for output, and raises where the table is wrong.
"""

import pyarrow as pa
import pyarrow.parquet as pq

from engine import (
    array,
    col,
    collect_list,
    collect_set,
    first,
    first_value,
    histogram,
    last,
    last_value,
    lead,
    max_,
    max_by,
    median,
    min_,
    min_by,
    mode,
    quantile,
    rank,
    row_number,
    string_agg,
)
from tests.docs.pages import FOLDER

#: two groups with nulls among their values, which are not in order
ROWS = {
    "k": ["a", "a", "a", "a", "b", "b", "b", "b"],
    "v": [3, None, 1, 2, None, 5, 4, 6],
    "x": ["a3", "a-", "a1", "a2", "b-", "b5", "b4", "b6"],
}
UP, DOWN = ["a-", "a1", "a2", "a3", "b-", "b4", "b5", "b6"], ["a-", "a3", "a2", "a1", "b-", "b6", "b5", "b4"]
UP_BEHIND = ["a1", "a2", "a3", "a-", "b4", "b5", "b6", "b-"]


def xs(found):
    return [row.x for row in found.collect()]


def of_groups(data, **aggregates):
    return [tuple(row)[1:] for row in data.group_by("k").agg(**aggregates).sort("k").collect()]


def check_sort(data, *_):
    for descending in (False, True):
        found = [row.v for row in data.sort("v", descending=descending).collect()]
        assert found == [None, None, *sorted(range(1, 7), reverse=descending)]
        found = [row.v for row in data.sort("v", descending=descending, nulls_last=True).collect()]
        assert found == [*sorted(range(1, 7), reverse=descending), None, None]
    assert xs(data.sort(["k", "v"], descending=[False, True])) == DOWN
    assert xs(data.sort(["k", "v"], nulls_last=[False, True])) == UP_BEHIND
    assert {row.v for row in data.sort("v").limit(2).collect()} == {None}


def check_top(data, *_):
    assert [row.v for row in data.top(7, "v").collect()] == [6, 5, 4, 3, 2, 1, None]
    assert [row.v for row in data.top(7, "v", descending=False).collect()] == [1, 2, 3, 4, 5, 6, None]
    assert [row.v for row in data.top(3, "v", nulls_last=False).collect()] == [None, None, 6]


def check_windows(data, *_):
    for flags, order in (({}, UP), ({"descending": True}, DOWN), ({"nulls_last": True}, UP_BEHIND)):
        found = data.select(
            "x",
            "k",
            n=row_number().over("k", "v", **flags),
            r=rank().over("k", "v", **flags),
            least=first_value("x").over("k", "v", **flags),
            most=last_value("x").over("k", "v", rows=(None, None), **flags),
            next=lead("x").over("k", "v", **flags),
        )
        rows = found.sort(["k", "n"]).collect()
        assert [row.x for row in rows] == order
        assert [row.n for row in rows] == [row.r for row in rows] == [1, 2, 3, 4] * 2
        assert [(row.least, row.most) for row in rows] == [(order[0], order[3])] * 4 + [(order[4], order[7])] * 4
        assert [row.next for row in rows] == [*order[1:4], None, *order[5:8], None]


def check_head(data, *_):
    heads = data.group_by("k")
    assert sorted(xs(heads.head(2, "v"))) == ["a-", "a1", "b-", "b4"]
    assert sorted(xs(heads.head(2, "v", descending=True))) == ["a-", "a3", "b-", "b6"]
    assert sorted(xs(heads.head(2, "v", nulls_last=True))) == ["a1", "a2", "b4", "b5"]
    assert xs(data.filter(col("k") == "a").group_by().head(2, "v")) == ["a-", "a1"]


def check_kept_first(data, *_):
    assert sorted(xs(data.drop_duplicates("k", order_by="v"))) == ["a-", "b-"]
    assert sorted(xs(data.drop_duplicates("k", order_by="v", nulls_last=True))) == ["a1", "b4"]
    assert sorted(xs(data.drop_duplicates("k", order_by=["k", "v"], nulls_last=[False, True]))) == ["a1", "b4"]


def check_kept_last(data, *_):
    assert sorted(xs(data.drop_duplicates("k", keep="last", order_by="v"))) == ["a3", "b6"]
    assert sorted(xs(data.drop_duplicates("k", keep="last", order_by=col("v") * -1))) == ["a1", "b4"]
    assert sorted(xs(data.drop_duplicates("k", keep="last", order_by="v", nulls_last=True))) == ["a-", "b-"]
    assert sorted(xs(data.drop_duplicates("k", "last", ["k", "v"], nulls_last=[False, True]))) == ["a-", "b-"]


def check_lists(data, *_):
    for flags, order in (({}, UP), ({"descending": True}, DOWN), ({"nulls_last": True}, UP_BEHIND)):
        found = of_groups(
            data,
            list=collect_list("x", order_by="v", **flags),
            text=string_agg("x", ",", order_by="v", **flags),
        )
        assert found == [(part, ",".join(part)) for part in (order[:4], order[4:])]
    assert of_groups(data, v=collect_list("v", order_by="v")) == [([None, 1, 2, 3],), ([None, 4, 5, 6],)]


def check_first_and_last(data, *_):
    for flags, order in (({}, UP), ({"descending": True}, DOWN), ({"nulls_last": True}, UP_BEHIND)):
        found = of_groups(data.sort("v", **flags), first=first("x"), last=last("x"))
        assert found == [(order[0], order[3]), (order[4], order[7])]
    assert of_groups(data.sort("v"), first=first("v"), last=last("v")) == [(None, 3), (None, 6)]


def check_lists_of_rows(data, *_):
    lists = data.agg(all=collect_list("v"))
    assert lists.select(v=col("all").list.sort()).collect()[0].v == [None, None, 1, 2, 3, 4, 5, 6]
    assert lists.select(v=col("all").list.sort(descending=True)).collect()[0].v == [None, None, 6, 5, 4, 3, 2, 1]
    assert lists.select(v=col("all").list.sort(nulls_last=True)).collect()[0].v == [1, 2, 3, 4, 5, 6, None, None]


def check_sinks(data, environment, path):
    data.write_parquet(path, sort_by="v")
    environment.execute("sorted files")
    parts = [pq.read_table(part)["v"].to_pylist() for part in sorted(path.iterdir())]
    assert [value for part in parts for value in part] == [None, None, 1, 2, 3, 4, 5, 6]


def check_extremes(data, *_):
    assert of_groups(data, least=min_by("x", "v"), most=max_by("x", "v")) == [("a1", "a3"), ("b4", "b6")]
    # of lists the first row of each group by the key is taken, of texts the least pair
    found = of_groups(data, least=min_by(array(col("x")), "v"), most=max_by(array(col("x")), "v"))
    assert found == [(["a1"], ["a3"]), (["b4"], ["b6"])]
    spread = data.select("k", least=min_by("x", "v").over("k"), most=max_by("x", "v").over("k")).distinct()
    assert [tuple(row) for row in spread.sort("k").collect()] == [("a", "a1", "a3"), ("b", "b4", "b6")]
    named = data.with_columns(x=col("x").nullif("a1"))
    assert of_groups(named, least=min_by("x", "v")) == [("a2",), ("b4",)]


def check_values(data, *_):
    found = of_groups(data, a=min_("v"), b=max_("v"), c=median("v"), d=quantile("v", 0.5), e=mode("v"))
    assert found == [(1, 3, 2.0, 2.0, 1), (4, 6, 5.0, 5.0, 4)]


def check_sets(data, *_):
    assert of_groups(data, v=collect_set("v")) == [([1, 2, 3],), ([4, 5, 6],)]
    assert of_groups(data, v=histogram("v")) == [([(1, 1), (2, 1), (3, 1)],), ([(4, 1), (5, 1), (6, 1)],)]


def check_asof(data, environment, _path):
    other = environment.from_arrow(pa.table({"v": [None, 2], "y": ["none", "two"]}))
    for direction, wanted in (("backward", {2, 3, 4, 5, 6}), ("forward", {1, 2}), ("nearest", {1, 2, 3, 4, 5, 6})):
        found = data.asof_join(other, on="v", direction=direction).collect()
        assert {row.v: row.y for row in found} == {v: "two" if v in wanted else None for v in (None, 1, 2, 3, 4, 5, 6)}


CASES = {
    '`sort("v")`, `sort("v", descending=True)`': check_sort,
    '`top(n, "v")`, `top(n, "v", descending=False)`': check_top,
    '`row_number().over("k", order_by="v")` and all other windows': check_windows,
    '`group_by("k").head(n, "v")`': check_head,
    '`drop_duplicates("k", keep="first", order_by="v")`': check_kept_first,
    '`drop_duplicates("k", keep="last", order_by="v")`': check_kept_last,
    '`collect_list("x", order_by="v")`, `string_agg("x", order_by="v")`': check_lists,
    '`first("x")`, `last("x")` behind a sort': check_first_and_last,
    '`col("x").list.sort()`': check_lists_of_rows,
    '`write_parquet(path, sort_by="v")` and other sinks': check_sinks,
    '`min_by("x", "v")`, `max_by("x", "v")`': check_extremes,
    '`min_("v")`, `max_("v")`, `median("v")`, `quantile("v", q)`, `mode("v")`': check_values,
    '`collect_set("v")`, `histogram("v")`': check_sets,
    '`asof_join(other, on="v")`': check_asof,
}


def _tables():
    """Return the rows of the two tables: of calls, and of engines."""
    text = (FOLDER / "guide" / "grouping.md").read_text()
    section = text.partition("### Where nulls go\n")[2].partition("\n## ")[0]
    found = [[]]
    for line in section.splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1]:
            found.append([])
    calls, engines = [rows for rows in found if rows]
    return calls[2:], engines[2:]


def calls_of_the_guide():
    """Return the first cells of the table of calls."""
    return [row[0] for row in _tables()[0]]


def engines_of_the_guide():
    """Return where nulls go by default, (ascending, descending), by name of an engine."""
    return {name.strip(): tuple(row[1:]) for row in _tables()[1] for name in row[0].split(",")}
