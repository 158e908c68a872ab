"""Programs of several blocking operators each over tables without skew, and the same in SQL."""

from engine import (
    DataSet,
    JoinHint,
    avg,
    col,
    count,
    count_distinct,
    first,
    last,
    lit,
    max_,
    min_,
    stddev,
    sum_,
    variance,
)
from tests.acceptance.program import Inputs, Order, Program


def seven_stages(inputs: Inputs) -> DataSet:
    """Three joins, two aggregates, distinct rows and a sort."""
    pairs = inputs.facts.join(inputs.others, on="v", hint=JoinHint.REPARTITION_HASH_SECOND)
    sums = pairs.group_by("g").agg(n=count(), w=sum_(col("w")), other=max_(col("other")))
    wide = inputs.facts.join(sums, on="g", how="left", hint=JoinHint.REPARTITION_HASH_FIRST)
    kinds = wide.group_by("g", "k").agg(m=count(), n=max_(col("n")), w=max_(col("w")), text=min_(col("text")))
    named = kinds.join(
        inputs.others.select(col("v").alias("g"), "o"), on="g", how="left", hint=JoinHint.REPARTITION_SORT_MERGE
    )
    return named.distinct().sort(["w", "g", "k"], descending=[True, False, False], nulls_last=[True, False, False])


SEVEN_STAGES = Program(
    seven_stages,
    """
    WITH sums AS (SELECT g, count(*) n, sum(w)::BIGINT w, max(other) other FROM facts JOIN others USING (v) GROUP BY g),
    kinds AS (SELECT g, k, count(*) m, max(n) n, max(w) w, min("text") "text" FROM facts LEFT JOIN sums USING (g)
        GROUP BY g, k)
    SELECT DISTINCT kinds.*, o FROM kinds LEFT JOIN others ON g = v
    """,
    (Order("w", True, True), Order("g"), Order("k")),
)


def outer_joins(inputs: Inputs) -> DataSet:
    """Left, right and full joins, one of them with a condition, one by sort-merge."""
    facts = inputs.facts.filter(col("id") % 2 == 0).select("v", "id", "price", "text")
    others = inputs.others.select("v", "w", "other")
    left = facts.join(others, on="v", how="left", condition=col("w") % 3 != 0, hint=JoinHint.REPARTITION_HASH_SECOND)
    right = facts.join(others, on="v", how="right", hint=JoinHint.REPARTITION_HASH_FIRST)
    full = facts.join(others, on="v", how="full", hint=JoinHint.REPARTITION_SORT_MERGE)
    tagged = [each.with_columns(kind=lit(number)) for number, each in enumerate((left, right, full))]
    return tagged[0].union(*tagged[1:])


OUTER_JOINS = Program(
    outer_joins,
    """
    WITH f AS (SELECT v, id, price, "text" FROM facts WHERE id % 2 = 0)
    SELECT f.v, id, price, "text", w, other, 0::BIGINT kind FROM f LEFT JOIN others ON f.v = others.v AND w % 3 <> 0
    UNION ALL SELECT others.v, id, price, "text", w, other, 1 FROM f RIGHT JOIN others ON f.v = others.v
    UNION ALL SELECT coalesce(f.v, others.v), id, price, "text", w, other, 2 FROM f FULL JOIN others ON f.v = others.v
    """,
)


def semi_and_anti_joins(inputs: Inputs) -> DataSet:
    """Semi, anti and null-aware anti joins one after another, groups, a sort."""
    others = inputs.others
    there = inputs.facts.join(others, on="v", how="semi", hint=JoinHint.REPARTITION_HASH_SECOND)
    gone = there.join(
        others.filter(col("o") < 300), left_on="id", right_on="v", how="anti", hint=JoinHint.REPARTITION_HASH_SECOND
    )
    thirds = inputs.names.filter(col("h") % 3 == 0).select(col("h").alias("k"))
    kept = gone.join(thirds, on="k", how="anti", null_aware=True)
    groups = kept.group_by("g").agg(n=count(), price=sum_(col("price")), at=max_(col("at")), text=min_(col("text")))
    return groups.sort(["at", "g"], descending=[True, False])


SEMI_AND_ANTI_JOINS = Program(
    semi_and_anti_joins,
    """
    SELECT g, count(*) n, sum(price) price, max("at") "at", min("text") "text" FROM facts
    WHERE v IN (SELECT v FROM others) AND NOT EXISTS (SELECT 1 FROM others WHERE others.v = facts.id AND o < 300)
        AND k NOT IN (SELECT h FROM names WHERE h % 3 = 0)
    GROUP BY g
    """,
    (Order("at", True), Order("g")),
)


def ranges_by_cross_join(inputs: Inputs) -> DataSet:
    """A cross join with a condition, an inner join, groups."""
    facts = inputs.facts.select("id", "v", "k", "text")
    within = facts.join(inputs.ranges, how="cross", condition=(col("k") >= col("low")) & (col("k") < col("high")))
    joined = within.join(inputs.others.select("v", "w"), on="v", hint=JoinHint.REPARTITION_HASH_FIRST)
    return joined.group_by("label", "w").agg(n=count(), ids=sum_(col("id")), text=max_(col("text")))


RANGES_BY_CROSS_JOIN = Program(
    ranges_by_cross_join,
    """
    SELECT label, w, count(*) n, sum(id)::BIGINT ids, max("text") "text" FROM facts
    JOIN ranges ON k >= low AND k < high JOIN others ON facts.v = others.v GROUP BY label, w
    """,
)


def many_groups(inputs: Inputs) -> DataSet:
    """All aggregates, of a quarter as many groups as rows, and distinct values of few groups, joined and sorted."""
    facts = inputs.facts.with_columns(twice=2 * col("g"))
    groups = facts.group_by("g").agg(
        n=count(),
        known=count(col("k")),
        kinds=count_distinct(col("k")),
        total=sum_(col("id")),
        price=sum_(col("price")),
        least=min_(col("text")),
        most=max_(col("at")),
        ratio=max_(col("ratio")),
        mean=avg(col("level")),
        spread=stddev(col("level")),
        width=variance(col("id")),
        head=first(col("twice")),
        tail=last(col("twice")),
    )
    values = inputs.facts.group_by("k").agg(values=count_distinct(col("v")), texts=count_distinct(col("text")))
    return groups.join(values, left_on="kinds", right_on="k", how="left").sort("g", descending=True)


MANY_GROUPS = Program(
    many_groups,
    """
    WITH groups AS (SELECT g, count(*) n, count(k) known, count(DISTINCT k) kinds, sum(id)::BIGINT total,
        sum(price) price, min("text") least, max("at") most, max(ratio) ratio, avg(level) mean, stddev(level) spread,
        variance(id) width, 2 * g head, 2 * g tail FROM facts GROUP BY g),
    counts AS (SELECT k, count(DISTINCT v) AS "values", count(DISTINCT "text") texts FROM facts GROUP BY k)
    SELECT groups.*, k, "values", texts FROM groups LEFT JOIN counts ON kinds = k
    """,
    (Order("g", True),),
)


def sort_of_many_keys(inputs: Inputs) -> DataSet:
    """A sort in several directions, with nulls at either end, of all columns."""
    return inputs.facts.sort(
        ["k", "ratio", "price", "text", "id"],
        descending=[True, False, True, False, True],
        nulls_last=[True, False, False, False, False],
    )


SORT_OF_MANY_KEYS = Program(
    sort_of_many_keys,
    "SELECT * FROM facts",
    (Order("k", True, True), Order("ratio"), Order("price", True), Order("text"), Order("id", True)),
)


def nested_values(inputs: Inputs) -> DataSet:
    """Lists, structs and maps carried through two joins and a sort."""
    joined = inputs.nested.join(
        inputs.others.select("v", "w"), left_on="key", right_on="v", how="left", hint=JoinHint.REPARTITION_HASH_FIRST
    )
    again = joined.join(
        inputs.nested.select(col("key").alias("id"), col("parts").alias("more"), col("tags").alias("marks")),
        on="id",
        hint=JoinHint.REPARTITION_HASH_SECOND,
    )
    return again.sort(["w", "id"], nulls_last=[True, False])


NESTED_VALUES = Program(
    nested_values,
    """
    SELECT a.*, v, w, b.parts more, b.tags marks FROM nested a LEFT JOIN others ON a."key" = v
    JOIN nested b ON a.id = b."key"
    """,
    (Order("w", False, True), Order("id")),
)


def sets_and_top(inputs: Inputs) -> DataSet:
    """A union, distinct rows, groups by text and a number with NaN, a join with their top, a sort."""
    facts = inputs.facts.select("id", "text", "price", "at", "ratio", "k")
    both = facts.filter(col("id") % 2 == 0).union(facts.filter(col("id") % 3 == 0)).distinct()
    groups = both.group_by("k", "ratio").agg(n=count(), prices=count_distinct(col("price")), at=max_(col("at")))
    best = groups.top(1000, ["n", "at", "k", "ratio"], descending=[True, True, False, False]).select("k", "n")
    many = best.group_by("k").agg(best=max_(col("n")), times=count())
    return both.join(many, on="k").drop("ratio").sort(["best", "id"], descending=[True, False])


SETS_AND_TOP = Program(
    sets_and_top,
    """
    WITH twice AS (SELECT DISTINCT id, "text", price, "at", ratio, k FROM
        (SELECT * FROM facts WHERE id % 2 = 0 UNION ALL SELECT * FROM facts WHERE id % 3 = 0)),
    groups AS (SELECT k, ratio, count(*) n, max("at") "at" FROM twice GROUP BY k, ratio),
    best AS (SELECT k, n FROM groups
        ORDER BY n DESC NULLS LAST, "at" DESC NULLS LAST, k NULLS LAST, ratio NULLS LAST LIMIT 1000),
    many AS (SELECT k, max(n) best, count(*) times FROM best GROUP BY k)
    SELECT id, "text", price, "at", k, best, times FROM twice JOIN many USING (k)
    """,
    (Order("best", True), Order("id")),
)

PROGRAMS = (
    SEVEN_STAGES,
    OUTER_JOINS,
    SEMI_AND_ANTI_JOINS,
    RANGES_BY_CROSS_JOIN,
    MANY_GROUPS,
    SORT_OF_MANY_KEYS,
    NESTED_VALUES,
    SETS_AND_TOP,
)
