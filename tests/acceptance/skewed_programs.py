"""Programs over rows of which 99 % have one key, on the side that probes, on the one that is built on, and on both."""

from engine import DataSet, JoinHint, col, count, lit, max_, min_, sum_
from tests.acceptance.program import Inputs, Order, Program


def heavy_probe(inputs: Inputs) -> DataSet:
    """Heavy rows probe; groups and a sort behind."""
    joined = inputs.heavy.join(inputs.names, on="h", hint=JoinHint.REPARTITION_HASH_SECOND)
    groups = joined.group_by("name").agg(n=count(), least=min_(col("pad")))
    return joined.join(groups, on="name", hint=JoinHint.REPARTITION_HASH_SECOND).sort(["n", "id"])


HEAVY_PROBE = Program(
    heavy_probe,
    """
    WITH joined AS (SELECT heavy.*, name FROM heavy JOIN names USING (h)),
    groups AS (SELECT name, count(*) n, min(pad) least FROM joined GROUP BY name)
    SELECT joined.*, n, least FROM joined JOIN groups USING (name)
    """,
    (Order("n"), Order("id")),
)


def heavy_build(inputs: Inputs) -> DataSet:
    """A table is built on heavy rows, for an inner and a full join."""
    few = inputs.names.filter(col("h") % 2 == 1)
    inner = few.join(inputs.heavy, on="h", hint=JoinHint.REPARTITION_HASH_SECOND)
    full = few.join(inputs.heavy.filter(col("id") % 3 == 0), on="h", how="full", hint=JoinHint.REPARTITION_HASH_SECOND)
    return inner.with_columns(kind=lit(0)).union(full.with_columns(kind=lit(1)))


HEAVY_BUILD = Program(
    heavy_build,
    """
    WITH few AS (SELECT * FROM names WHERE h % 2 = 1)
    SELECT h, name, id, pad, 0::BIGINT kind FROM few JOIN heavy USING (h)
    UNION ALL SELECT coalesce(few.h, t.h), name, id, pad, 1 FROM few
    FULL JOIN (SELECT * FROM heavy WHERE id % 3 = 0) t ON few.h = t.h
    """,
)


def heavy_on_both_sides(inputs: Inputs) -> DataSet:
    """Semi and anti joins of heavy rows with heavy rows."""
    there = inputs.heavy.join(inputs.weights, on="h", how="semi", hint=JoinHint.REPARTITION_HASH_SECOND)
    some = inputs.weights.filter((col("h") < 500) & (col("id") % 2 == 0))
    gone = inputs.heavy.join(some, on="h", how="anti", hint=JoinHint.REPARTITION_HASH_SECOND)
    both = there.with_columns(kind=lit(0)).union(gone.with_columns(kind=lit(1)))
    return both.group_by("id").agg(n=count(), kinds=sum_(col("kind")), pad=max_(col("pad")))


HEAVY_ON_BOTH_SIDES = Program(
    heavy_on_both_sides,
    """
    SELECT id, count(*) n, sum(kind)::BIGINT kinds, max(pad) pad FROM (
        SELECT id, pad, 0 kind FROM heavy WHERE h IN (SELECT h FROM weights)
        UNION ALL SELECT id, pad, 1 kind FROM heavy
        WHERE h NOT IN (SELECT h FROM weights WHERE h < 500 AND id % 2 = 0)) GROUP BY id
    """,
)


def heavy_pairs(inputs: Inputs) -> DataSet:
    """Every pair of two sides of wide rows with one key, one of them as large as the memory; condition and groups."""
    right = inputs.right_pairs.rename({"id": "right_id", "pad": "right_pad"})
    pairs = inputs.left_pairs.join(
        right, on="h", condition=col("pad") < col("right_pad"), hint=JoinHint.REPARTITION_HASH_SECOND
    )
    return pairs.group_by("h", "id").agg(n=count(), least=min_(col("right_id")), total=sum_(col("right_id"))).sort("id")


HEAVY_PAIRS = Program(
    heavy_pairs,
    """
    SELECT l.h, l.id, count(*) n, min(r.id) least, sum(r.id)::BIGINT total
    FROM left_pairs l JOIN right_pairs r ON l.h = r.h AND l.pad < r.pad GROUP BY l.h, l.id
    """,
    (Order("id"),),
)

PROGRAMS = (HEAVY_PROBE, HEAVY_BUILD, HEAVY_ON_BOTH_SIDES, HEAVY_PAIRS)
