"""``now()`` is one moment for all rows, subtasks and restarts of a job, and another one for the next job."""

import datetime

import pyarrow as pa
import pytest

from engine import Environment, col, count, current_date, expr, max_, min_, now, struct, sum_, when
from engine.errors import SchemaError
from engine.graph.expression import JOB_MOMENT
from engine.graph.plan import encode_plan
from engine.lowering.job_moment import asks_for_it
from engine.lowering.logical_node import build_plan, reachable

ROWS = pa.table({"k": list(range(5000)), "l": [[1, 2], []] * 2500})


def moments(data):
    """Return the different moments in a column ``at`` of a data set."""
    return set(data.to_arrow().column("at").to_pylist())


#: data sets with the moment in a column ``at``, in each kind of operator
PLACES = {
    "projection": lambda data: data.select(at=now()),
    "subtasks": lambda data: data.rebalance().set_parallelism(3).select(at=now()),
    "two projections": lambda data: data.with_columns(a=now()).shuffle().select(
        at=when(col("a") == now()).then(now())
    ),
    "filter": lambda data: data.filter(now() > datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)).select(at=now()),
    "aggregate": lambda data: data.group_by().agg(a=min_(now()), b=max_(now())).select(
        at=when(col("a") == col("b")).then(col("a"))
    ),
    "filter of an aggregate": lambda data: data.agg(
        n=sum_("k", filter=now().dt.year() > 2000), at=max_(now())
    ).filter(col("n") > 0),
    "condition of a join": lambda data: data.join(
        data.rename({"l": "m"}), on="k", condition=now().dt.year() > 2000
    ).select(at=now()),
    "window": lambda data: data.select(at=max_(now()).over("k")),
    "function of elements": lambda data: data.select(
        s=col("l").list.transform(lambda one: struct(one=one, at=now())).list.get(0)
    ).unnest("s").drop_nulls().select("at"),
    "text of SQL": lambda data: data.select(at=expr("now()")),
    "key of a group": lambda data: data.group_by(at=now()).agg(n=count()),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_all_rows_of_a_job_have_its_moment(place):
    with Environment(config={"parallelism.default": 2}) as env:
        before = datetime.datetime.now(datetime.UTC)
        data = PLACES[place](env.from_arrow(ROWS))
        first, second = moments(data), moments(data)
        after = datetime.datetime.now(datetime.UTC)
        assert len(first) == len(second) == 1 and None not in first
        assert before <= next(iter(first)) < next(iter(second)) <= after


@pytest.mark.parametrize("place", PLACES)
def test_the_plan_of_a_job_has_the_moment_and_no_question_for_it(place):
    with Environment() as env:
        node = PLACES[place](env.from_arrow(ROWS))._node
        assert asks_for_it(each.operator for each in reachable([node]))
        plan = build_plan([node], "job")
        assert not asks_for_it(each.operator for each in plan.nodes)
        assert encode_plan(plan) != encode_plan(build_plan([node], "job"))
        assert f'"{JOB_MOMENT}()"' not in str(plan)


def test_a_plan_without_it_is_the_same_each_time():
    with Environment() as env:
        node = env.from_arrow(ROWS).with_columns(now=col("k") + 1)._node
        assert encode_plan(build_plan([node], "job")) == encode_plan(build_plan([node], "job"))


def test_the_date_is_that_of_a_zone():
    with Environment() as env:
        row = env.sequence(1, 1).select(
            east=current_date("Pacific/Kiritimati"), west=current_date("Pacific/Pago_Pago"), here=current_date()
        ).to_dicts()[0]  # fmt: skip
    assert (row["east"] - row["west"]).days in (1, 2)
    assert row["west"] <= row["here"] <= row["east"]


def test_a_query_in_from_has_the_moment_at_which_it_is_bound():
    with Environment() as env:
        days = env.sql("SELECT * FROM generate_series(current_date - 2, current_date, INTERVAL 1 DAY) AS d (day)")
        assert len(days.to_dicts()) == 3


def test_outside_of_a_job_it_has_no_value():
    from tests.expressions.function_oracle import compute

    with pytest.raises(SchemaError, match="outside of a job it has no value"):
        compute(now(), x=[1])
