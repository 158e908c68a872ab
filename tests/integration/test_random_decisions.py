"""Random joins of a table with itself, run for real with decisions forced, against plain Python: none ever hangs.

Rows are wide, so that queues fill, and sizes that decide are small, so that much is decided while tasks run. The
plain interpreter does the same with thousands of plans (``tests/jobmaster/test_run_time_planner.py``).
"""

from collections import Counter

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from engine import Environment, JoinHint, col

WIDE = "x" * 40_000
HINTS = [None, JoinHint.BROADCAST_HASH_SECOND, JoinHint.BROADCAST_HASH_FIRST, JoinHint.REPARTITION_HASH_SECOND]
JOINS = st.tuples(
    st.sampled_from(["cross", "inner"]),
    st.sampled_from(HINTS),
    st.booleans(),
    st.sampled_from(["nothing", "filter", "function", "distinct"]),
)
ENVIRONMENTS = st.tuples(
    st.sampled_from([2, 3, 8]), st.sampled_from(["1 kb", "100 kb", "64 mb"]), st.sampled_from(["1 kb", "64 mb"])
)


def kept(row):
    return row.k % 3 != 0


@pytest.fixture(scope="module")
def environments():
    made = {}

    def environment(parallelism, volume, skew):
        key = (parallelism, volume, skew)
        if key not in made:
            made[key] = Environment(
                config={
                    "parallelism.default": parallelism,
                    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task": volume,
                    "execution.batch.adaptive.skewed-join.skewed-threshold": skew,
                    "execution.stalled.timeout": "20 s",
                    "python.execution-mode": "thread",
                }
            )
        return made[key]

    yield environment
    for each in made.values():
        each.close()


def side_of(data, rows, kind):
    """Return one side of a join and its keys."""
    if kind == "filter":
        return data.filter(col("k") != 2), [key for key in rows if key != 2]
    if kind == "function":
        return data.filter(kept), [key for key in rows if key % 3 != 0]
    if kind == "distinct":
        return data.distinct(), sorted(set(rows))
    return data, rows


@hypothesis.settings(max_examples=12, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(ENVIRONMENTS, st.lists(st.integers(0, 6), min_size=1, max_size=24), JOINS)
def test_a_table_joined_with_itself_is_what_plain_python_says(environments, environment, keys, join):
    how, hint, is_reversed, kind = join
    env = environments(*environment)
    data = env.from_arrow(pa.table({"k": keys, "wide": [WIDE] * len(keys)}))
    other, other_keys = side_of(data.rename(wide="wide2"), keys, kind)
    if how == "cross":
        hint = hint if hint is None or "BROADCAST" in hint else None
        other = other.rename(k="k2")
    sides = ((data, keys), (other, other_keys))
    (left, left_keys), (right, right_keys) = reversed(sides) if is_reversed else sides
    joined = left.join(right, how="cross", hint=hint) if how == "cross" else left.join(right, on="k", hint=hint)
    counts = Counter(right_keys)
    expected = len(left_keys) * len(right_keys) if how == "cross" else sum(counts[key] for key in left_keys)
    assert joined.count() == expected
    assert joined.select("wide").count() == expected
