"""Joins of every type, hint, parallelism and execution mode, in memory and on disk, beside DuckDB."""

import functools
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import JoinHint, PlanError, col, count, lit, sum_
from engine.graph.said_operators import JoinType
from engine.optimizer.join_alternatives import CORRECT_PAIRS, HINTED
from tests.integration.row_oracle import KEY_VALUES, assert_same_rows, duck, key_table, rows_of

KEYED = ["inner", "left", "right", "full", "semi", "anti"]
SORT_MERGE = JoinHint.REPARTITION_SORT_MERGE
#: every hint that goes with a type
HINTS = {
    how.value: [JoinHint.OPTIMIZER_CHOOSES, *(hint for hint, (pair, _) in HINTED.items() if pair in pairs)]
    for how, pairs in CORRECT_PAIRS.items()
}
ENVIRONMENTS = {
    "one": {"parallelism.default": 1},
    "three": {"parallelism.default": 3},
    "three, batch": {"parallelism.default": 3, "execution.mode": "BATCH"},
    "one, batch, spilling": {"parallelism.default": 1, "execution.mode": "BATCH", "debug.force-spill": True},
    "three, spilling": {"parallelism.default": 3, "debug.force-spill": True},
}


@pytest.fixture(scope="module", params=[name for name in ENVIRONMENTS if name != "three"])
def env(request, open_environment):
    return open_environment(**ENVIRONMENTS[request.param])


@pytest.fixture(scope="module", params=["three", "one, batch, spilling"])
def two(request, open_environment):
    """The two environments that differ most."""
    return open_environment(**ENVIRONMENTS[request.param])


@pytest.fixture(scope="module", params=["three, spilling", "one, batch, spilling"])
def spilling(request, open_environment):
    return open_environment(**ENVIRONMENTS[request.param])


def rows_by_tag(data_sets):
    """Run data sets of one schema as one job; return the rows of each under its tag."""
    tagged = [data.with_columns(tag=lit(tag)) for tag, data in data_sets.items()]
    found = {tag: [] for tag in data_sets}
    for *row, tag in rows_of(tagged[0].union(*tagged[1:]).to_arrow()):
        found[tag].append(tuple(row))
    return found


def keyed(seed, rows, domain, names):
    """Rows of (k with nulls and a heavy 0, a number with nulls, a text)."""
    chance = random.Random(seed)
    keys = [
        None if chance.random() < 0.15 else 0 if chance.random() < 0.3 else chance.randrange(domain)
        for _ in range(rows)
    ]
    numbers = [None if chance.random() < 0.1 else chance.randrange(50) for _ in range(rows)]
    texts = [f"{names[2]} {index} {'x' * (index % 40)}" for index in range(rows)]
    schema = pa.schema([(names[0], pa.int64()), (names[1], pa.int64()), (names[2], pa.string())])
    return pa.table({names[0]: keys, names[1]: numbers, names[2]: texts}, schema)


LEFT = keyed(1, 70, 25, ("k", "a", "l"))
RIGHT = keyed(2, 60, 30, ("k", "b", "r"))
WORD = {how: f"{how.upper()} JOIN" for how in KEYED}


@functools.cache
def expected_on(how, condition="true"):
    key = "l.k = r.k" if condition == "true" else f"l.k = r.k AND {condition}"
    if how in ("semi", "anti"):
        return duck(f"SELECT l.* FROM l {WORD[how]} r ON {key}", l=LEFT, r=RIGHT)
    return duck(f"SELECT coalesce(l.k, r.k), a, l.l, b, r.r FROM l {WORD[how]} r ON {key}", l=LEFT, r=RIGHT)


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_on_gives_one_key_of_the_side_that_is_there(env, how):
    left, right = env.from_arrow(LEFT), env.from_arrow(RIGHT)
    joins = {hint.value: left.join(right, on="k", how=how, hint=hint) for hint in HINTS[how]}
    names = ["k", "a", "l"] if how in ("semi", "anti") else ["k", "a", "l", "b", "r"]
    assert all(data.columns == names for data in joins.values())
    for rows in rows_by_tag(joins).values():
        assert_same_rows(rows, expected_on(how))


@pytest.mark.quick
@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_a_condition_is_part_of_the_match(two, how):
    left, right = two.from_arrow(LEFT), two.from_arrow(RIGHT)
    condition = (col("a") < col("b")) & (col("k") != 3)
    joins = {hint.value: left.join(right, on="k", how=how, hint=hint, condition=condition) for hint in HINTS[how]}
    for rows in rows_by_tag(joins).values():
        assert_same_rows(rows, expected_on(how, "a < b AND l.k <> 3"))


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_left_on_and_right_on_keep_both_keys(two, how):
    left, right = two.from_arrow(LEFT), two.from_arrow(RIGHT).rename(k="k2")
    joins = {hint.value: left.join(right, left_on="k", right_on="k2", how=how, hint=hint) for hint in HINTS[how]}
    columns = "l.*" if how in ("semi", "anti") else "l.*, r.*"
    expected = duck(f"SELECT {columns} FROM l {WORD[how]} r ON l.k = r.k", l=LEFT, r=RIGHT)
    for rows in rows_by_tag(joins).values():
        assert_same_rows(rows, expected)


ONE_SIDED = {
    "a > 20": col("a") > 20,
    "b > 20": col("b") > 20,
    "(b IS NULL OR a > 5)": col("b").is_null() | (col("a") > 5),
    "false": lit(value=False),
}


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_a_condition_over_one_side_keeps_the_rows_that_an_outer_join_returns(two, how):
    left, right = two.from_arrow(LEFT), two.from_arrow(RIGHT)
    found = rows_by_tag(
        {
            f"{hint.value} {sql}": left.join(right, on="k", how=how, hint=hint, condition=condition)
            for sql, condition in ONE_SIDED.items()
            for hint in (JoinHint.OPTIMIZER_CHOOSES, SORT_MERGE)
        }
    )
    for tag, rows in found.items():
        assert_same_rows(rows, expected_on(how, tag.partition(" ")[2]))


@pytest.mark.quick
def test_null_aware_anti_is_not_in(env):
    lefts = {"with": LEFT, "without": LEFT.filter(LEFT["k"].is_valid())}
    rights = {"with": RIGHT, "without": RIGHT.filter(pa.compute.less(RIGHT["k"], 9)), "empty": RIGHT.slice(0, 0)}
    cases = [(one, other) for one in lefts for other in rights]
    found = rows_by_tag(
        {
            f"{one} {other}": env.from_arrow(lefts[one]).join(
                env.from_arrow(rights[other]), on="k", how="anti", null_aware=True
            )
            for one, other in cases
        }
    )
    for one, other in cases:
        expected = duck("SELECT * FROM l WHERE k NOT IN (SELECT k FROM r)", l=lefts[one], r=rights[other])
        assert_same_rows(found[f"{one} {other}"], expected)


def test_a_cross_join_gives_every_pair_and_takes_a_condition(env):
    left, right = env.from_arrow(LEFT).rename(k="lk"), env.from_arrow(RIGHT)
    assert left.join(right, how="cross").count() == LEFT.num_rows * RIGHT.num_rows
    condition = (col("a") < col("b")) & (col("b") < col("a") + 3)
    joins = {hint.value: left.join(right, how="cross", hint=hint, condition=condition) for hint in HINTS["cross"]}
    expected = duck("SELECT l.k, a, l.l, r.k, b, r.r FROM l, r WHERE a < b AND b < a + 3", l=LEFT, r=RIGHT)
    for rows in rows_by_tag(joins).values():
        assert_same_rows(rows, expected)


def test_an_equality_behind_a_cross_join_is_its_key(two):
    left, right = two.from_arrow(LEFT).rename(k="lk"), two.from_arrow(RIGHT)
    data = left.join(right, how="cross").filter((col("lk") == col("k")) & (col("a") < col("b")))
    assert "inner join on lk" in data.explain()
    expected = duck("SELECT l.k, a, l.l, r.k, b, r.r FROM l, r WHERE l.k = r.k AND a < b", l=LEFT, r=RIGHT)
    assert_same_rows(data.collect(), expected)


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_empty_sides(two, how):
    sides = {
        "left": (LEFT.slice(0, 0), RIGHT),
        "right": (LEFT, RIGHT.slice(0, 0)),
        "both": (LEFT.slice(0, 0), RIGHT.slice(0, 0)),
    }
    joins = {
        f"{empty} {hint.value}": two.from_arrow(left).join(two.from_arrow(right), on="k", how=how, hint=hint)
        for empty, (left, right) in sides.items()
        for hint in (JoinHint.OPTIMIZER_CHOOSES, SORT_MERGE)
    }
    column = "l.k" if how in ("semi", "anti") else "coalesce(l.k, r.k)"
    for tag, rows in rows_by_tag({tag: data.select("k", "a") for tag, data in joins.items()}).items():
        left, right = sides[tag.partition(" ")[0]]
        assert_same_rows(rows, duck(f"SELECT {column}, a FROM l {WORD[how]} r ON l.k = r.k", l=left, r=right))


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_groups_of_a_joined_key_are_whole(two, how):
    """Null keys are spread over subtasks before a join and are one group behind it."""
    left, right = two.from_arrow(LEFT), two.from_arrow(RIGHT)
    found = rows_by_tag(
        {
            hint.value: left.join(right, on="k", how=how, hint=hint)
            .group_by("k")
            .agg(rows=count(), total=sum_(col("a")))
            for hint in HINTS[how]
        }
    )
    table = pa.table(list(zip(*expected_on(how), strict=True))[:2], names=["k", "a"])
    expected = duck("SELECT k, count(*), sum(a)::BIGINT FROM t GROUP BY k", t=table)
    for rows in found.values():
        assert_same_rows(rows, expected)


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_filters_behind_a_join_mean_what_they_say(two, how):
    joined = two.from_arrow(LEFT).join(two.from_arrow(RIGHT), on="k", how=how)
    predicates = {
        "k > 5": (col("k") > 5, lambda row: row[0] is not None and row[0] > 5),
        "k null": (col("k").is_null(), lambda row: row[0] is None),
        "a null": (col("a").is_null(), lambda row: row[1] is None),
        "all": (lit(value=True), lambda row: True),
    }
    if how not in ("semi", "anti"):
        predicates["b null"] = (col("b").is_null(), lambda row: row[3] is None)
    found = rows_by_tag(
        {name: joined.filter(predicate).select("a", "k") for name, (predicate, _) in predicates.items()}
    )
    for name, (_, keeps) in predicates.items():
        assert_same_rows(found[name], [(row[1], row[0]) for row in expected_on(how) if keeps(row)])


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", ["full", "semi", "anti"])
@pytest.mark.parametrize("data_type", KEY_VALUES, ids=str)
def test_keys_of_every_type_merge_and_hash_alike(spilling, data_type, how):
    left, right = key_table(data_type, 60), key_table(data_type, 50, seed=2).rename_columns(["k", "m"])
    columns = ["n", *([] if how in ("semi", "anti") else ["m"])]
    found = rows_by_tag(
        {
            hint.value: spilling.from_arrow(left)
            .join(spilling.from_arrow(right), on="k", how=how, hint=hint)
            .select(*columns)
            for hint in (JoinHint.REPARTITION_HASH_FIRST, SORT_MERGE)
        }
    )
    assert_same_rows(found["REPARTITION_HASH_FIRST"], found["REPARTITION_SORT_MERGE"])
    assert found["REPARTITION_SORT_MERGE"]


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", KEYED)
def test_keys_of_two_types_match_and_several_match_together(two, how):
    left = LEFT.set_column(0, "k", LEFT["k"].cast(pa.int32()))
    right = RIGHT.rename_columns(["k", "a", "r"])
    joins = {
        hint.value: two.from_arrow(left).join(two.from_arrow(right), on=["k", "a"], how=how, hint=hint)
        for hint in (JoinHint.OPTIMIZER_CHOOSES, SORT_MERGE)
    }
    columns = "l.k, l.a, l.l"
    if how not in ("semi", "anti"):
        columns = "coalesce(l.k, r.k), coalesce(l.a, r.a), l.l, r.r"
    for tag, rows in rows_by_tag(joins).items():
        assert joins[tag].schema.field("k").type == (pa.int64() if how in ("right", "full") else pa.int32())
        sql = f"SELECT {columns} FROM l {WORD[how]} r ON l.k = r.k AND l.a = r.a"
        assert_same_rows(rows, duck(sql, l=left, r=right))


@pytest.mark.quick
@pytest.mark.parametrize("how", [how.value for how in JoinType])
def test_a_hint_that_does_not_go_with_a_type_is_refused_before_anything_runs(open_environment, how):
    env = open_environment(**ENVIRONMENTS["three"])
    left, right = env.from_arrow(LEFT).rename(k="lk"), env.from_arrow(RIGHT)
    keys = {} if how == "cross" else {"left_on": "lk", "right_on": "k"}
    refused = [hint for hint in HINTED if hint not in HINTS[how]]
    for hint in refused:
        with pytest.raises(PlanError, match=f"{hint.value} would make an? {how} join wrong"):
            left.join(right, how=how, hint=hint, **keys).collect()
    assert bool(refused) is (how != "inner")


@pytest.mark.quick
def test_explain_names_type_condition_and_strategy(open_environment):
    env = open_environment(**ENVIRONMENTS["three"])
    left, right = env.from_arrow(LEFT), env.from_arrow(RIGHT)
    text = left.join(right, on="k", how="full", hint=SORT_MERGE, condition=col("a") != col("b")).explain()
    for part in ("full join on k, SORT_MERGE", "condition a != b", "hint REPARTITION_SORT_MERGE", "coalesce keys"):
        assert part in text
    text = left.join(right, on="k", how="anti", null_aware=True).explain()
    assert "null-aware anti join on k, HASH_BUILD_SECOND (BROADCAST_HASH_SECOND)" in text
    assert "not REPARTITION_SORT_MERGE: not correct for a null-aware anti join" in text


@pytest.fixture(scope="module")
def large():
    """One key has most rows on both sides, and does not fit a megabyte on either."""
    chance = random.Random(7)

    def rows(count_of, heavy, word):
        keys = [5 if chance.random() < heavy else chance.randrange(4000) for _ in range(count_of)]
        texts = [f"{word} {index} {'y' * (index % 150)}" for index in range(count_of)]
        return pa.table({"k": pa.array(keys, pa.int64()), word: range(count_of), f"{word}_text": texts})

    return rows(20_000, 0.6, "l"), rows(3000, 0.1, "r")


@pytest.mark.sample("values")
@pytest.mark.parametrize("how", ["full", "anti", "semi", "right"])
@pytest.mark.parametrize("size", ["16mb", "1mb"])
def test_sort_merge_of_a_heavy_key_in_little_memory(open_environment, large, how, size):
    env = open_environment(**{"parallelism.default": 2, "taskmanager.memory.managed.size": size})
    left, right = large
    condition = (col("l") + col("r")) % 50 == 0
    joined = env.from_arrow(left).join(env.from_arrow(right), on="k", how=how, hint=SORT_MERGE, condition=condition)
    rows = joined.group_by().agg(rows=count(), l=sum_(col("l")), k=sum_(col("k"))).collect()
    columns = "l.l, l.k" if how in ("semi", "anti") else "l.l, coalesce(l.k, r.k) AS k"
    sql = f"SELECT count(*), sum(l)::BIGINT, sum(k)::BIGINT FROM (SELECT {columns} FROM l {WORD[how]} r"
    assert rows == duck(f"{sql} ON l.k = r.k AND (l + r) % 50 = 0)", l=left, r=right)


@pytest.mark.parametrize("how", ["left", "right", "anti"])
@pytest.mark.parametrize("nulls", [3, 400])
def test_groups_by_the_key_of_a_join_that_returns_null_keys_are_whole(env, tmp_path, how, nulls):
    """Few null keys are in one subtask, and groups behind the join need no exchange; many are spread."""
    tables = {}
    for name, step in (("l", 2), ("r", 3)):
        keys = [None] * nulls + [key * step % 211 for key in range(1000)]
        tables[name] = pa.table({"k": pa.array(keys, pa.int64()), name: range(len(keys))})
        pq.write_table(tables[name], tmp_path / f"{name}.parquet")
    left, right = (env.read_parquet(tmp_path / f"{name}.parquet") for name in tables)
    joined = left.join(right, on="k", how=how, hint=JoinHint.REPARTITION_HASH_FIRST)
    found = joined.group_by("k").agg(rows=count()).to_arrow()
    rows = "l ANTI JOIN r USING (k)" if how == "anti" else f"l {how} JOIN r ON l.k = r.k"
    key = "r.k" if how == "right" else "l.k"
    assert_same_rows(rows_of(found), duck(f"SELECT {key}, count(*) FROM {rows} GROUP BY 1", **tables))
