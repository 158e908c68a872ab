"""Functions that follow from other rows: the values of Polars, over types, nulls, equal values, one group and none."""

import datetime
import math
import random

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    Environment,
    NotYetSupportedError,
    SchemaError,
    backward_fill,
    col,
    cum_count,
    cum_max,
    cum_min,
    cum_prod,
    cum_sum,
    cut,
    diff,
    ewm_mean,
    first_value,
    forward_fill,
    interpolate,
    is_duplicated,
    is_first_distinct,
    is_last_distinct,
    is_unique,
    lag,
    last_value,
    lead,
    nth_value,
    pct_change,
    qcut,
    quantile,
    rank,
    rolling_max,
    rolling_mean,
    rolling_median,
    rolling_min,
    rolling_quantile,
    rolling_std,
    rolling_sum,
    rolling_var,
)

ROWS = 500
MODES = ({"parallelism.default": 1}, {"parallelism.default": 3, "debug.force-spill": True})
KINDS = ("i", "f", "day", "s", "b")


def table(rows=ROWS, groups=4, holes=0.4):
    rng = random.Random(rows + groups)

    def some(make):
        return [None if rng.random() < holes else make() for _ in range(rows)]

    return pa.table(
        {
            "n": pa.array(rng.sample(range(rows), rows), pa.int64()),
            "k": pa.array([rng.choice([None, *range(groups - 1)]) for _ in range(rows)], pa.int64()),
            "i": pa.array(some(lambda: rng.randrange(-5, 6)), pa.int32()),
            "f": pa.array(some(lambda: rng.choice([0.0, 1.5, -2.25, 1e6])), pa.float64()),
            "day": pa.array(some(lambda: datetime.date(2026, 1, rng.randrange(1, 20))), pa.date32()),
            "s": pa.array(some(lambda: rng.choice(["", "a", "ä" * 9])), pa.string()),
            "b": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
        }
    )


TABLES = {"groups": table(), "one group": table(60, 1), "no nulls": table(50, 3, 0.0), "empty": table(0, 2)}


@pytest.fixture(scope="module", params=MODES, ids=["one subtask", "three that spill"])
def env(request):
    with Environment(config={**request.param, "taskmanager.memory.managed.size": "8mb"}) as made:
        yield made


def over(function):
    return function.over("k", order_by="n")


def same(found, wanted, most=1e-9):
    """Whether values are the same, numbers but for their last digits."""
    pairs = list(zip(found, wanted, strict=True))
    numbers = [pair for pair in pairs if all(isinstance(one, int | float) for one in pair)]
    close = (math.isclose(*pair, rel_tol=most, abs_tol=most) or pair[0] != pair[0] for pair in numbers)
    return all(close) and all(
        one == other for one, other in pairs if not all(isinstance(each, int | float) for each in (one, other))
    )


def check(env, rows, ours, theirs, most=1e-9):
    """Compare functions of ours, over k in the order of n, with those of Polars."""
    found = env.from_arrow(rows).select("n", **{name: over(one) for name, one in ours.items()}).sort("n").to_arrow()
    frame = pl.from_arrow(rows).sort("n")
    wanted = frame.select(**{name: one.over("k", order_by="n") for name, one in theirs.items()})
    for name in ours:
        assert same(found[name].to_pylist(), wanted[name].to_list(), most), name


@pytest.mark.parametrize("name", TABLES)
def test_fills_are_those_of_polars(env, name):
    ours, theirs = {}, {}
    for kind in KINDS:
        ours |= {f"f{kind}": forward_fill(kind), f"b{kind}": backward_fill(kind)}
        ours |= {f"f1{kind}": forward_fill(kind, 1), f"b2{kind}": backward_fill(kind, limit=2)}
        theirs |= {f"f{kind}": pl.col(kind).forward_fill(), f"b{kind}": pl.col(kind).backward_fill()}
        theirs |= {f"f1{kind}": pl.col(kind).forward_fill(1), f"b2{kind}": pl.col(kind).backward_fill(2)}
    ours |= {"li": interpolate("i"), "lf": interpolate("f")}
    theirs |= {"li": pl.col("i").interpolate(), "lf": pl.col("f").interpolate()}
    check(env, TABLES[name], ours, theirs)


@pytest.mark.parametrize("name", TABLES)
def test_cumulated_values_are_those_of_polars(env, name):
    ours, theirs = {}, {}
    for kind in ("i", "f"):
        column = pl.col(kind)
        both = {
            "sum": (cum_sum(kind), column.cum_sum()),
            "down": (cum_sum(kind, reverse=True), column.cum_sum(reverse=True)),
            "min": (cum_min(kind), column.cum_min()),
            "max": (cum_max(kind, reverse=True), column.cum_max(reverse=True)),
            "count": (cum_count(kind), column.cum_count()),
            "back": (cum_count(kind, reverse=True), column.cum_count(reverse=True)),
            "product": (cum_prod(kind), column.cast(pl.Float64).cum_prod()),
            "diff": (diff(kind), column.diff()),
            "diff3": (diff(kind, 3), column.diff(3)),
            "ahead": (diff(kind, -1), column.diff(-1)),
            "change": (pct_change(kind), (column / column.shift(1) - 1)),
        }
        ours |= {f"{kind}{one}": pair[0] for one, pair in both.items()}
        theirs |= {f"{kind}{one}": pair[1] for one, pair in both.items()}
    check(env, TABLES[name], ours, theirs)


@pytest.mark.parametrize("name", TABLES)
def test_rolling_values_are_those_of_polars(env, name):
    column, all_of = pl.col("f"), {"window_size": 3, "min_samples": 3}
    ours = {
        "sum": rolling_sum("f", 3),
        "mean": rolling_mean("f", 4, min_samples=1, center=True),
        "odd": rolling_mean("f", 3, min_samples=2, center=True),
        "min": rolling_min("f", 3, min_samples=1),
        "max": rolling_max("f", 3, min_samples=2),
        "std": rolling_std("f", 5, min_samples=2),
        "var": rolling_var("f", 5, min_samples=2),
        "median": rolling_median("f", 4),
        "middle": rolling_median("f", 6, min_samples=1, center=True),
        "quantile": rolling_quantile("f", 0.3, 5, min_samples=2),
    }
    theirs = {
        "sum": column.rolling_sum(**all_of),
        "mean": column.rolling_mean(4, min_samples=1, center=True),
        "odd": column.rolling_mean(3, min_samples=2, center=True),
        "min": column.rolling_min(3, min_samples=1),
        "max": column.rolling_max(3, min_samples=2),
        "std": column.rolling_std(5, min_samples=2),
        "var": column.rolling_var(5, min_samples=2),
        "median": column.rolling_median(4),
        "middle": column.rolling_median(6, min_samples=1, center=True),
        "quantile": column.rolling_quantile(0.3, "linear", 5, min_samples=2),
    }
    # Polars adds and takes away, and keeps what it rounds
    check(env, TABLES[name], ours, theirs, 1e-4)


@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("ignore_nulls", [True, False])
def test_exponential_means_are_those_of_polars(env, adjust, ignore_nulls):
    shares = ({"alpha": 0.3}, {"span": 3.0}, {"half_life": 2.0}, {"com": 1.0}, {"alpha": 1.0})
    options = {"adjust": adjust, "ignore_nulls": ignore_nulls}
    ours = {
        f"{number}{kind}": ewm_mean(kind, **share, **options) for number, share in enumerate(shares) for kind in "if"
    }
    theirs = {
        f"{number}{kind}": pl.col(kind).cast(pl.Float64).ewm_mean(**share, **options)
        for number, share in enumerate(shares)
        for kind in "if"
    }
    check(env, TABLES["groups"], ours, theirs)


@settings(max_examples=15)
@given(
    values=st.lists(st.none() | st.integers(-3, 3), max_size=12),
    limit=st.none() | st.integers(0, 3),
    alpha=st.sampled_from([0.25, 0.5, 1.0]),
)
def test_any_few_values_are_filled_and_averaged_as_polars_does(small, values, limit, alpha):
    rows = pa.table({"n": list(range(len(values))), "x": pa.array(values, pa.int64())})
    ours = small.from_arrow(rows).select(
        "n",
        filled=forward_fill("x", limit).over(order_by="n"),
        back=backward_fill("x", limit).over(order_by="n"),
        line=interpolate("x").over(order_by="n"),
        mean=ewm_mean("x", alpha=alpha).over(order_by="n"),
    )
    x = pl.col("x")
    wanted = pl.from_arrow(rows).select(
        "n",
        filled=x.forward_fill(limit),
        back=x.backward_fill(limit),
        line=x.cast(pl.Float64).interpolate(),
        mean=x.cast(pl.Float64).ewm_mean(alpha=alpha),
    )
    found = ours.sort("n").to_arrow().to_pydict()
    for name, each in wanted.to_dict(as_series=False).items():
        assert same(found[name], each), name


@pytest.fixture(scope="module")
def small():
    with Environment(config={"parallelism.default": 1}) as made:
        yield made


@pytest.mark.parametrize("method", ["min", "max", "average", "dense", "ordinal"])
def test_ranks_are_those_of_polars_but_nulls_have_one(env, method):
    order = ["i", "n"] if method == "ordinal" else "i"
    rows = TABLES["groups"]
    ranked = env.from_arrow(rows).select("n", "i", r=rank(method).over("k", order_by=order, nulls_last=True)).sort("n")
    frame = pl.from_arrow(rows).sort("n")
    wanted = frame.select("i", r=pl.col("i").rank(method).over("k")).to_dicts()
    found = ranked.to_arrow().to_pylist()
    assert [row["r"] for row in found if row["i"] is not None] == [row["r"] for row in wanted if row["i"] is not None]
    assert all(row["r"] is not None for row in found)


def test_values_of_other_rows_that_pass_nulls(env):
    rows = TABLES["groups"]
    made = env.from_arrow(rows).select(
        "n",
        "k",
        "s",
        one=over(lag("s", ignore_nulls=True)),
        three=over(lag("s", 3, ignore_nulls=True)),
        ahead=over(lead("s", 2, "none", ignore_nulls=True)),
        none=over(lag("s", 0, ignore_nulls=True)),
        second=over(nth_value("s", 2, ignore_nulls=True)),
        first=first_value("s", ignore_nulls=True).over("k", order_by="n", rows=(-2, -1)),
        last=last_value("s", ignore_nulls=True).over("k", order_by="n", rows=(1, None)),
    )
    found = made.sort("n").to_arrow().to_pylist()
    for key in {row["k"] for row in found}:
        part = [row for row in found if row["k"] == key]
        for place, row in enumerate(part):
            before = [one["s"] for one in part[:place] if one["s"] is not None]
            behind = [one["s"] for one in part[place + 1 :] if one["s"] is not None]
            so_far = [one["s"] for one in part[: place + 1] if one["s"] is not None]
            near = [one["s"] for one in part[max(place - 2, 0) : place] if one["s"] is not None]
            assert row["one"] == (before[-1] if before else None)
            assert row["three"] == (before[-3] if len(before) > 2 else None)
            assert row["ahead"] == (behind[1] if len(behind) > 1 else "none")
            assert row["none"] == row["s"]
            assert row["second"] == (so_far[1] if len(so_far) > 1 else None)
            assert row["first"] == (near[0] if near else None)
            assert row["last"] == (behind[-1] if behind else None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_values_are_cut_as_polars_does(env):
    rows = TABLES["groups"]
    x = pl.col("i")
    data, frame = env.from_arrow(rows), pl.from_arrow(rows).sort("n")
    for closed in (False, True):
        found = data.select(
            "n",
            cut=cut("i", [-2, 0, 3], left_closed=closed),
            named=cut("i", [0], ["low", "high"], left_closed=closed),
            quarter=qcut("i", 4, ["a", "b", "c", "d"], left_closed=closed).over(),
        )
        wanted = frame.select(
            "n",
            cut=x.cut([-2, 0, 3], left_closed=closed).cast(pl.String),
            named=x.cut([0], labels=["low", "high"], left_closed=closed).cast(pl.String),
            quarter=x.qcut(4, labels=["a", "b", "c", "d"], left_closed=closed).cast(pl.String),
        )
        assert found.sort("n").to_arrow().to_pylist() == wanted.to_dicts()
    shares = data.select(part=qcut("i", [0.25, 0.5]).over()).distinct().sort("part").to_arrow()["part"].to_pylist()
    assert shares == [None, "(-inf, 0.25]", "(0.25, 0.5]", "(0.5, inf]"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_equal_values_are_those_of_polars(env, kind):
    rows = TABLES["groups"].sort_by("n")
    # one subtask reads them in their order
    data = env.from_arrow(rows).sort("n")
    found = data.select(
        "n",
        unique=is_unique("k", kind),
        twice=is_duplicated("k", kind),
        first=is_first_distinct("k", kind),
        last=is_last_distinct("k", kind),
    )
    pair = pl.struct("k", kind)
    wanted = pl.from_arrow(rows).select(
        "n",
        unique=pair.is_unique(),
        twice=pair.is_duplicated(),
        first=pair.is_first_distinct(),
        last=pair.is_last_distinct(),
    )
    assert found.sort("n").to_arrow().to_pylist() == wanted.to_dicts()


def test_several_quantiles_are_a_list(env):
    data = env.from_arrow(TABLES["groups"])
    both = data.group_by("k").agg(q=quantile("f", [0.1, 0.5]), low=quantile("f", 0.1), mid=quantile("f", 0.5))
    assert all(row.q == [row.low, row.mid] for row in both.collect())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: forward_fill("x").over("k"), "forward_fill needs an order"),
        (lambda: ewm_mean("x", alpha=0.5).over("k"), "ewm_mean needs an order"),
        (lambda: interpolate("x").over("k"), "interpolate needs an order"),
        (lambda: cum_sum("x").over("k", order_by="n", rows=(-1, 0)), "takes no rows="),
        (lambda: cum_prod("x").over("k", order_by="n", rows=(-1, 0)), "takes no rows="),
        (lambda: cum_sum("x") + 1, "is a window function"),
        (lambda: ewm_mean("x"), "give one of com, span, half_life, alpha; none given"),
        (lambda: ewm_mean("x", alpha=1.5), "over 0, up to 1"),
        (lambda: ewm_mean("x", span=0.5), "from 1.0 on"),
        (lambda: ewm_mean("x", alpha=0.5, com=1), "com and alpha given"),
        (lambda: rolling_sum("x", 2, min_samples=3), "min_samples=3 of a window of 2 rows"),
        (lambda: rolling_sum("x", 0), "no whole number from 1 on"),
        (lambda: rolling_quantile("x", 1.5, 2), "no share of the values"),
        (lambda: forward_fill("x", -1), "no whole number from 0 on"),
        (lambda: diff("x", 0.5), "no whole number"),
        (lambda: rank("first"), "choose one of min, dense, ordinal, max, average"),
        (lambda: cut("x", [2, 1]), "must rise"),
        (lambda: cut("x", []), "one at least"),
        (lambda: cut("x", [1], ["a"]), "2 texts"),
        (lambda: qcut("x", [0.5, 0.1]), "which rise"),
        (lambda: qcut("x", [2.0]), "share of the values"),
        (is_unique, "at least one column"),
        (lambda: quantile("x", []), "no shares"),
    ],
)
def test_what_is_wrong_is_said(call, text):
    with pytest.raises(SchemaError, match=text):
        call()


def test_what_is_not_there_is_said(small):
    data = small.from_arrow(pa.table({"n": [1], "x": pa.array([[1]], pa.list_(pa.int64())), "y": [1]}))
    with pytest.raises(NotYetSupportedError, match=r"values of list<.*> that ignore nulls"):
        data.select(forward_fill("x").over(order_by="n"))
    with pytest.raises(NotYetSupportedError, match="begins behind the partition's first row"):
        data.select(nth_value("y", 2, ignore_nulls=True).over(order_by="n", rows=(-1, 0)))
    with pytest.raises(SchemaError, match="takes numbers"):
        data.select(interpolate(col("y").cast("string")).over(order_by="n"))
