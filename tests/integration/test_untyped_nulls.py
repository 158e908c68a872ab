"""Columns of nothing but nulls, which have no type: keys like others, and numbers where they are aggregated."""

import pandas as pd
import pyarrow as pa
import pytest

from engine import avg, col, count, max_, median, min_, row_number, sum_, when

ROWS = 20_000


@pytest.fixture(params=[False, True])
def environment(request, open_environment):
    return open_environment(**{"debug.force-spill": request.param})


@pytest.fixture
def data(environment):
    return environment.from_arrow(pd.DataFrame({"k": [None] * ROWS, "x": range(ROWS)}))


def test_they_are_grouped_sorted_and_told_apart(data):
    assert data.schema.field("k").type == pa.null()
    assert data.group_by("k").agg(n=count(), most=max_("x")).collect() == [(None, ROWS, ROWS - 1)]
    assert data.group_by("k", "x").agg(n=count()).count() == ROWS
    assert data.select("k").distinct().collect() == [(None,)]
    assert data.sort(["k", "x"], descending=True).head(2).collect() == [(None, ROWS - 1), (None, ROWS - 2)]
    assert data.top(2, "k").count() == 2
    numbered = data.select("x", n=row_number().over("k", order_by="x"))
    assert numbered.filter(col("n") != col("x") + 1).count() == 0


def test_they_are_joined_as_nulls_are(environment, data):
    assert data.join(data.select("k", y=col("x")), on="k").count() == 0
    assert data.join(data, on=["k", "x"], how="left").count() == ROWS
    others = environment.from_arrow(pa.table({"k": ["a", None]}))
    assert data.join(others, on="k", how="full").count() == ROWS + 2
    assert data.intersect(data).count() == ROWS and data.except_(data).count() == 0


def test_they_are_numbers_for_aggregates_and_false_as_conditions(data):
    assert data.agg(a=min_("k"), b=sum_("k"), c=avg("x", filter=col("k")), d=median("k")).collect() == [(None,) * 4]
    assert data.agg(n=count("k"), m=count(filter=col("k"))).collect() == [(0, 0)]
    assert data.select(a=min_("k").over("k"), b=when(col("k")).then(1).otherwise(2)).distinct().collect() == [(None, 2)]
