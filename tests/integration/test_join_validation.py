"""What a join is told about its keys is checked while it runs, as Polars checks it; the error has key and count."""

import re

import polars as pl
import pyarrow as pa
import pytest

from engine import Environment, JobExecutionError, SchemaError, col

LEFT = pa.table({"k": ["a", "b", None, None], "j": [1, 1, 1, 1], "x": [1, 2, 3, 4]})
RIGHT = pa.table({"k": ["a", "b", "b", "c"], "j": [1, 1, 2, 1], "y": [1, 2, 3, 4]})
FORMS = ("1:1", "1:m", "m:1", "m:m")


@pytest.fixture(
    scope="module", params=[{"parallelism.default": 1}, {"parallelism.default": 3, "debug.force-spill": True}]
)
def env(request):
    with Environment(config=request.param) as made:
        yield made


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("validate", FORMS)
def test_the_forms_hold_where_keys_are_single(env, how, validate):
    left, right = env.from_arrow(LEFT.slice(0, 3)), env.from_arrow(RIGHT.slice(0, 2))
    checked = left.join(right.select("k", "y"), on="k", how=how, validate=validate)
    plain = left.join(right.select("k", "y"), on="k", how=how)
    assert checked.sort(["k", "x"] if "x" in checked.columns else "k").to_dicts() == plain.sort(["k", "x"]).to_dicts()


@pytest.mark.parametrize("validate", FORMS)
@pytest.mark.parametrize("keys", [["k"], ["k", "j"]])
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_key_that_is_there_twice_ends_the_job_where_polars_does(env, validate, keys, is_turned):
    tables = [LEFT.slice(0, 3), RIGHT]
    one, other = tables[::-1] if is_turned else tables
    try:
        wanted = pl.from_arrow(one).join(pl.from_arrow(other), on=keys, validate=validate).height
    except pl.exceptions.ComputeError:
        wanted = None
    joined = env.from_arrow(one).join(env.from_arrow(other), on=keys, validate=validate, suffix="_r")
    if wanted is not None:
        assert joined.count() == wanted
    else:
        with pytest.raises(JobExecutionError) as failure:
            joined.collect()
        by = ", ".join(keys)
        assert re.match(
            rf"join validate='{validate}': a key is there more than once on the (left|right) side; in a row with "
            rf"k='b', count\(\) over \(partition by {by}\)=2",
            str(failure.value),
        )


def test_a_key_is_checked_where_no_row_matches_it(env):
    right = env.from_arrow(RIGHT)
    for how in ("semi", "anti", "left"):
        with pytest.raises(JobExecutionError, match="right side"):
            env.from_arrow(LEFT.slice(0, 1)).join(right, on="k", how=how, validate="m:1", suffix="_r").collect()


def test_nulls_count_where_they_are_keys(env):
    left, right = env.from_arrow(LEFT), env.from_arrow(RIGHT.slice(0, 1)).select("k", "y")
    assert left.join(right, on="k", validate="1:1").count() == 1
    with pytest.raises(JobExecutionError, match=r"left side.*k=None"):
        left.join(right, on="k", validate="1:1", null_safe=True).collect()


def test_what_is_wrong_is_said(env):
    left, right = env.from_arrow(LEFT), env.from_arrow(RIGHT).select("k", "y")
    with pytest.raises(SchemaError, match="choose one of 1:1, 1:m, m:1, m:m"):
        left.join(right, on="k", validate="2:1")
    with pytest.raises(SchemaError, match="no keys that are equal"):
        left.join(right.rename(k="z"), how="cross", validate="1:1")
    with pytest.raises(SchemaError, match="a key is an expression"):
        left.join(right, left_on=col("k").str.upper(), right_on="k", validate="1:m", suffix="_r")
